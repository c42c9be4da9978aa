// Anthropic's TypeScript SDK against known turns.

import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.BASE_URL.replace(/\/v1$/, ""), apiKey: process.env.API_KEY ?? "none", maxRetries: 0 });
const ask = { model: "gpt-oss:20b", max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 2048 } };
const user = (content) => [{ role: "user", content }];

test("a stream with thinking", async () => {
  const stream = client.messages.stream({ ...ask, messages: user("[[think They greet.]] [[say Hello to you.]]") });
  let text = "";
  stream.on("text", (delta) => (text += delta));
  const final = await stream.finalMessage();
  assert.equal(text, "Hello to you.");
  assert.deepEqual(final.content.map((b) => b.type), ["thinking", "text"]);
  assert.ok(final.content[0].signature);
});

test("a loop with a tool", async () => {
  const tools = [{ name: "get_weather", input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }];
  const messages = user('[[call get_weather {"city":"Paris"}]] [[say Sunny.]]');
  const first = await client.messages.create({ ...ask, messages, tools });
  const call = first.content.at(-1);
  assert.deepEqual([first.stop_reason, call.input], ["tool_use", { city: "Paris" }]);
  messages.push({ role: "assistant", content: first.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }] });
  const second = await client.messages.stream({ ...ask, messages, tools }).finalMessage();
  assert.equal(second.content.at(-1).text, "Sunny.");
});

test("tokens are counted", async () => {
  const n = await client.messages.countTokens({ model: ask.model, messages: user("Hi") });
  assert.ok(n.input_tokens > 0);
});

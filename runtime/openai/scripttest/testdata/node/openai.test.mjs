// openai-node against known turns; what the model says stands in the prompt (scripttest/script.go).

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI, { toFile } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY ?? "none", maxRetries: 0 });
const model = "gpt-oss:20b";
const SAY = "[[think They greet.]] [[say Hello to you.]]";
const CALL = '[[think A tool knows.]] [[call get_weather {"city":"Paris"}]] [[think So.]] [[say Sunny.]]';
const DAY = '{"name":"Monday","warm":true}';
const Day = z.object({ name: z.string(), warm: z.boolean() });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const tool = { type: "function", name: "get_weather", description: "Weather of a city", parameters, strict: true };
const user = (content) => [{ role: "user", content }];

function usageHolds(u) {
  assert.equal(u.total_tokens, u.input_tokens + u.output_tokens);
  assert.ok(u.input_tokens_details.cached_tokens <= u.input_tokens);
  assert.ok(u.output_tokens_details.reasoning_tokens <= u.output_tokens);
}

test("chat, whole and streamed", async () => {
  const { data, request_id } = await client.chat.completions.create({ model, messages: user(SAY) }).withResponse();
  assert.equal(data.choices[0].message.content, "Hello to you.");
  assert.equal(data.choices[0].message.reasoning, "They greet.");
  assert.match(request_id, /^req_/);
  const stream = client.chat.completions.stream({ model, messages: user(SAY), stream_options: { include_usage: true } });
  let text = "";
  stream.on("content", (delta) => (text += delta));
  const final = await stream.finalChatCompletion();
  assert.equal(text, "Hello to you.");
  assert.equal(final.usage.total_tokens, final.usage.prompt_tokens + final.usage.completion_tokens);
});

test("chat runs tools", async () => {
  for (const stream of [false, true]) {
    const cities = [];
    const runner = client.chat.completions.runTools({
      model, stream, messages: user(CALL),
      tools: [{ type: "function", function: { name: "get_weather", description: "Weather", parameters, parse: JSON.parse,
        function: ({ city }) => (cities.push(city), "sunny") } }],
    });
    assert.equal(await runner.finalContent(), "Sunny.");
    assert.deepEqual(cities, ["Paris"]);
  }
});

test("chat parses", async () => {
  const r = await client.chat.completions.parse({ model, messages: user(`[[say ${DAY}]]`), response_format: zodResponseFormat(Day, "day") });
  assert.deepEqual(r.choices[0].message.parsed, JSON.parse(DAY));
});

test("faults have their class and code", async () => {
  await assert.rejects(client.chat.completions.create({ model: "none", messages: user("x") }), OpenAI.NotFoundError);
  await assert.rejects(client.responses.create({ model, input: "x", temperature: 9 }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
  await assert.rejects(client.chat.completions.create({ model, messages: user("[[fail]]") }), (e) => e.code === "non_finite_logits");
  await assert.rejects(async () => {
    for await (const _ of await client.chat.completions.create({ model, messages: user("[[think x]] [[fail]]"), stream: true }));
  }, (e) => e.code === "non_finite_logits");
});

test("a stream is left", async () => {
  const stream = await client.chat.completions.create({ model, messages: user("[[slow 5ms]] [[loop la]]"), stream: true, detect_loops: false });
  let n = 0;
  for await (const _ of stream) if (++n === 5) break;
  assert.equal(n, 5);
});

test("responses, whole and streamed", async () => {
  const r = await client.responses.create({ model, input: SAY, metadata: { k: "v" } });
  assert.equal(r.output_text, "Hello to you.");
  assert.deepEqual(r.output.map((i) => i.type), ["reasoning", "message"]);
  usageHolds(r.usage);
  assert.deepEqual((await client.responses.retrieve(r.id)).output, r.output);
  const items = await client.responses.inputItems.list(r.id);
  assert.equal(items.data[0].content[0].text, SAY);
  await client.responses.delete(r.id);
  const stream = client.responses.stream({ model, input: SAY });
  let text = "";
  stream.on("response.output_text.delta", (e) => (text += e.delta));
  const final = await stream.finalResponse();
  assert.equal(text, "Hello to you.");
  usageHolds(final.usage);
});

test("responses parse", async () => {
  const r = await client.responses.parse({ model, input: `[[say ${DAY}]]`, text: { format: zodTextFormat(Day, "day") } });
  assert.deepEqual(r.output_parsed, JSON.parse(DAY));
});

test("responses with a tool, by id and by conversation", async () => {
  const talk = await client.conversations.create({});
  for (const how of ["previous", "conversation"]) {
    const more = how === "conversation" ? { conversation: talk.id } : {};
    const first = await client.responses.create({ model, input: CALL, tools: [tool], ...more });
    const call = first.output.at(-1);
    assert.deepEqual([call.type, call.arguments], ["function_call", '{"city":"Paris"}']);
    const result = [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }];
    const then = how === "conversation" ? more : { previous_response_id: first.id };
    const second = await client.responses.create({ model, input: result, tools: [tool], ...then });
    assert.equal(second.output_text, "Sunny.");
  }
  const items = [];
  for await (const i of client.conversations.items.list(talk.id)) items.push(i.type);
  assert.equal(items.length, 6);
  assert.ok((await client.conversations.delete(talk.id)).deleted);
});

test("responses in the background: polled, cancelled, resumed", async () => {
  let r = await client.responses.create({ model, input: SAY, background: true });
  for (let i = 0; i < 500 && r.status !== "completed"; i++) {
    await new Promise((go) => setTimeout(go, 10));
    r = await client.responses.retrieve(r.id);
  }
  assert.equal(r.output_text, "Hello to you.");
  const endless = await client.responses.create({ model, input: "[[slow 10ms]] [[loop la]]", background: true, detect_loops: false });
  assert.equal((await client.responses.cancel(endless.id)).status, "cancelled");
  const slow = { model, input: "[[slow 10ms]] [[say One two three four five six.]]", background: true, stream: true };
  const seen = [];
  for await (const e of await client.responses.create(slow)) {
    seen.push(e);
    if (e.type === "response.output_text.delta") break;
  }
  const id = seen[0].response.id;
  for await (const e of await client.responses.retrieve(id, { stream: true, starting_after: seen.at(-1).sequence_number })) seen.push(e);
  assert.deepEqual(seen.map((e) => e.sequence_number), seen.map((_, i) => i));
  const text = seen.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join("");
  assert.equal(text, "One two three four five six.");
});

test("input tokens, compaction, models", async () => {
  const n = await client.responses.inputTokens.count({ model, input: SAY });
  assert.equal(n.input_tokens, (await client.responses.create({ model, input: SAY })).usage.input_tokens);
  const short = await client.responses.compact({ model, input: user(SAY) });
  assert.equal(short.output.at(-1).type, "compaction");
  const names = [];
  for await (const m of client.models.list()) names.push(m.id);
  assert.ok(names.includes(model));
  assert.equal((await client.models.retrieve("openai/gpt-oss-20b")).id, "openai/gpt-oss-20b");
});

const SUMS = { type: "mcp", server_label: "sums", server_url: "https://example.org/", require_approval: "never" };
const TOOLS = [
  { type: "web_search" }, { type: "code_interpreter", container: { type: "auto" } }, SUMS,
  { type: "custom", name: "apply_patch", description: "Patches." },
];
const MANY = '[[call browser.search {"query":"ossrun"}]] [[call python print(6*7)]] [[call sums_add {"a":2,"b":3}]] ' +
  "[[call apply_patch *** Begin\n+x {\n*** End]] [[say It is so.]]";

test("responses with the server's tools and a custom one", async () => {
  for (const streamed of [false, true]) {
    const ask = { model, input: MANY, tools: TOOLS, include: ["code_interpreter_call.outputs"] };
    const said = {};
    let r;
    if (streamed) {
      const stream = client.responses.stream(ask);
      for await (const e of stream) if (e.delta) said[e.type] = (said[e.type] ?? "") + e.delta;
      r = await stream.finalResponse();
    } else r = await client.responses.create(ask);
    const item = (type) => r.output.find((i) => i.type === type);
    assert.deepEqual(item("web_search_call").action.query, "ossrun");
    assert.deepEqual(item("code_interpreter_call").outputs, [{ type: "logs", logs: "ran: print(6*7)" }]);
    assert.deepEqual(item("mcp_list_tools").tools.map((t) => t.name), ["add"]);
    assert.deepEqual([item("mcp_call").arguments, item("mcp_call").output], ['{"a":2,"b":3}', "5"]);
    const custom = item("custom_tool_call");
    assert.equal(custom.input, "*** Begin\n+x {\n*** End");
    if (streamed) {
      assert.equal(said["response.custom_tool_call_input.delta"], custom.input);
      assert.equal(said["response.code_interpreter_call_code.delta"], "print(6*7)");
      assert.equal(said["response.mcp_call_arguments.delta"], '{"a":2,"b":3}');
    }
    const result = [{ type: "custom_tool_call_output", call_id: custom.call_id, output: "ok" }];
    const then = await client.responses.create({ model, input: result, tools: TOOLS, previous_response_id: r.id });
    assert.equal(then.output_text, "It is so.");
  }
});

test("an MCP call that wants approval", async () => {
  const tools = [{ ...SUMS, require_approval: "always" }];
  for (const streamed of [false, true]) {
    const ask = (a) => streamed ? client.responses.stream(a).finalResponse() : client.responses.create(a);
    const first = await ask({ model, input: '[[call sums_add {"a":2,"b":3}]] [[say Five.]]', tools });
    const request = first.output.at(-1);
    assert.deepEqual([request.type, request.name], ["mcp_approval_request", "add"]);
    for (const approve of [false, true]) {
      const input = [{ type: "mcp_approval_response", approval_request_id: request.id, approve }];
      const then = await ask({ model, input, tools, previous_response_id: first.id });
      assert.deepEqual(then.output.filter((i) => i.type === "mcp_call").map((i) => i.output), approve ? ["5"] : []);
      assert.equal(then.output.at(-1).content[0].text, "Five.");
    }
  }
});

test("files and batches", async () => {
  const body = { model, messages: user(SAY) };
  const line = (i) => JSON.stringify({ custom_id: `r${i}`, method: "POST", url: "/v1/chat/completions", body: i === 3 ? { ...body, temperature: 9 } : body });
  const text = Array.from({ length: 10 }, (_, i) => line(i)).join("\n");
  const file = await client.files.create({ file: await toFile(Buffer.from(text), "in.jsonl"), purpose: "batch" });
  assert.equal(await (await client.files.content(file.id)).text(), text);
  let batch = await client.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" });
  while (batch.status !== "completed") {
    assert.ok(["validating", "in_progress", "finalizing"].includes(batch.status));
    batch = await client.batches.retrieve(batch.id);
  }
  assert.deepEqual(batch.request_counts, { total: 10, completed: 9, failed: 1 });
  const lines = async (id) => (await (await client.files.content(id)).text()).trim().split("\n").map(JSON.parse);
  const output = await lines(batch.output_file_id);
  assert.deepEqual(new Set(output.map((l) => l.custom_id)), new Set([0, 1, 2, 4, 5, 6, 7, 8, 9].map((i) => `r${i}`)));
  assert.ok(output.every((l) => l.error === null && l.response.body.choices[0].message.content === "Hello to you."));
  const [refused] = await lines(batch.error_file_id);
  assert.deepEqual([refused.custom_id, refused.response.status_code, refused.response.body.error.param], ["r3", 400, "temperature"]);
  for await (const b of client.batches.list({ limit: 1 })) assert.equal(b.object, "batch");
  assert.equal((await client.files.delete(file.id)).deleted, true);
  await assert.rejects(client.batches.cancel(batch.id), OpenAI.ConflictError);
});

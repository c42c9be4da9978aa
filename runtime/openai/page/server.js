// The server: what it has, the key that it asks for, and an answer as it comes.
//
// What must stay true: the key is the tab's, unless its user asks for more; a message that is sent
// while the model loads waits; an answer that fails leaves what was said before as it was.

let key = "";
try { key = sessionStorage.getItem("ossrun.key") ?? ""; } catch { /* no storage */ }
key ||= kept.read("key", "");
function keepKey(text, stay) {
  key = text; kept.write("key", stay ? key : "");
  try { sessionStorage.setItem("ossrun.key", key); } catch { /* no storage */ }
}
const has = { models: [], tools: [], servers: [], body: Infinity }; // of the server
const later = (seconds, signal) => new Promise((go, fail) => {
  const t = setTimeout(go, seconds * 1000);
  signal?.addEventListener("abort", () => { clearTimeout(t); fail(signal.reason); });
});

async function ask(path, init = {}) {
  for (let healthy = 0; ;) {
    const headers = { "Content-Type": "application/json" };
    if (key) headers.Authorization = "Bearer " + key;
    const r = await fetch(path, { ...init, headers });
    if (r.status === 401) await unlock();
    else if (r.status !== 503) return r;
    // The model may have loaded after this answer, so a healthy server is asked once more.
    else if (!(await loads(init.signal)) && ++healthy > 1) return r;
  }
}
// loads tells whether the server loads its model, after waiting for it a while.
async function loads(signal) {
  const now = await health(signal);
  if (!/^loading/.test(now)) return false;
  status(now[0].toUpperCase() + now.slice(1) + "."); await later(1, signal);
  return true;
}
async function health(signal) { return (await (await fetch("health", { signal })).json()).status; }
let unlocking = null;
function unlock() {
  unlocking ??= new Promise((go) => {
    $("key").value = "";
    $("locked").onclose = () => {
      keepKey($("key").value.trim(), $("stay").checked); unlocking = null; go();
    };
    $("locked").showModal();
  });
  return unlocking;
}
async function fault(r) {
  try { return (await r.json()).error.message; } catch { return r.status + " " + r.statusText; }
}
const sentence = (text) => {
  const t = text.trim();
  return t && t[0].toUpperCase() + t.slice(1) + (/[.!?]$/.test(t) ? "" : ".");
};
async function look() {
  try {
    const r = await ask("v1/models");
    if (!r.ok) throw new Error(await fault(r));
    const list = await r.json(), first = new Map(), was = JSON.stringify(has); // one name a model
    for (const m of list.data)
      if (![m.id, ...(m.aliases ?? [])].some((n) => first.has(n))) first.set(m.id, m);
    Object.assign(has, { models: [...first.values()], tools: list.tools ?? [],
      servers: list.servers ?? [], sessions: list.sessions, body: list.max_body });
    status("");
    if (JSON.stringify(has) !== was) offers(); // not under a person's hand
    while (await loads()) { /* and says how far it is */ }
    status("");
    if (has.sessions) await sync();
    if (has.servers.some((s) => s.state === "connecting")) setTimeout(look, 2000);
  } catch (e) {
    status("The server does not answer. Trying again every 3 seconds. " + e.message);
    setTimeout(look, 3000);
  }
}

// What is asked.

const spoken = (i) => i && i.status !== "incomplete" && i.status !== "in_progress" &&
  (i.id !== undefined || i.type === "mcp_approval_response");
async function said(turn) {
  const content = [{ type: "input_text", text: turn.text }];
  for (const { name: filename, id } of turn.files ?? [])
    content.splice(-1, 0, { type: "input_file", filename, file_data: await contentOf(id) });
  return { role: "user", content: turn.files?.length ? content : turn.text };
}
async function request(chat, turn) {
  const input = [], tools = chosenTools(), s = settings, path = pathOf({ ...chat, leaf: turn.id });
  for (const t of path)
    if (t === turn || !t.refused) input.push(await said(t), ...(t.items ?? []).filter(spoken));
  const include = ["reasoning.encrypted_content"];
  if (tools.some((t) => t.container)) include.push("code_interpreter_call.outputs");
  return JSON.stringify({ model: $("model").value || undefined, input, stream: true,
    background: true, store: true, truncation: "auto", tools, include,
    instructions: s.system || undefined, temperature: s.temperature ?? undefined,
    max_output_tokens: s.most ?? undefined, reasoning: { effort: effort() } });
}
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const [, data] of blocks.join("\n").matchAll(/^data: ({.*)$/gm)) yield JSON.parse(data);
  }
}
// take puts an event into the turn, whose items up to base an earlier request has made.
function take(turn, base, e) {
  const at = base + e.output_index, item = turn.items[at];
  switch (e.type) {
    case "response.output_item.added": case "response.output_item.done":
      turn.items[at] = e.item; break;
    case "response.output_text.delta": case "response.reasoning_text.delta": {
      const type = e.type.includes("reasoning") ? "reasoning_text" : "output_text";
      ((item.content ??= [])[e.content_index] ??= { type, text: "" }).text += e.delta;
      break;
    }
    case "response.function_call_arguments.delta": case "response.code_interpreter_call_code.delta":
      item[/code/.test(e.type) ? "code" : "arguments"] += e.delta; break;
    case "response.completed": case "response.incomplete": case "response.failed": {
      const r = e.response;
      turn.items = [...turn.items.slice(0, base), ...r.output];
      if (r.error) turn.error = sentence(r.error.message);
      const why = r.incomplete_details?.reason.replaceAll("_", " ");
      if (why) turn.note = why === "max output tokens"
        ? "Stopped at the limit of tokens. Raise it in Settings." : "Stopped: " + why + ".";
      return r;
    }
    case "error":
      turn.error = sentence(e.message ?? e.error?.message ?? "The stream failed");
  }
  return null;
}

const runs = new Map(); // the answers that come, by the id of their turn

// run asks for the answer of a turn that is in the chat's tree.
async function run(chat, turn, files) {
  const stopper = new AbortController(), began = performance.now(), resumed = !!turn.response;
  const base = resumed ? turn.base : turn.items.length, here = { due: 0, resumed, stop() {
    if (here.posted && !turn.response) here.stopping = true; // until its id is known
    else stopper.abort();
  } };
  turn.base = base;
  // The answer is this tab's while it comes: another tab does not resume it.
  let free;
  navigator.locks?.request("ossrun." + turn.id, () => new Promise((go) => { free = go; }));
  let first = 0, ended = null, kept = began;
  for (const name of ["error", "note", "facts", "ended"]) delete turn[name];
  runs.set(turn.id, here); chat.used = Date.now();
  if (!chats.includes(chat)) chats.push(chat);
  byUse(); changed(chat);
  try {
    const body = resumed || await request(chat, turn);
    if (!base && !turn.again && !resumed) await save(chat, files);
    const r = await (resumed ? ask(pathTo(turn) + "?stream=true", { signal: stopper.signal })
      : ask("v1/responses", { method: "POST", body, signal: stopper.signal }));
    if (resumed && r.status === 404) delete turn.response;
    turn.refused = r.status === 413; // too large: later questions would be, with it
    if (!r.ok) throw new Error(await fault(r));
    [here.posted, turn.items.length] = [true, base];
    const dropped = r.headers.get("X-Ossrun-Truncated");
    if (dropped) turn.note = "The oldest messages do not fit. Skipped: " + dropped + ".";
    status("");
    for await (const e of events(r.body)) {
      if (e.response && !turn.response) {
        turn.response = e.response.id; // the answer can be resumed by it
        if (here.stopping) stopper.abort();
        if (chats.includes(chat)) save(chat);
      }
      if (!first && e.type.endsWith(".delta")) first = performance.now();
      const item = turn.items[base + e.output_index];
      if (item?.type === "reasoning" && e.type === "response.output_item.done")
        (turn.seconds ??= {})[item.id] = (performance.now() - (first || began)) / 1000;
      ended = take(turn, base, e) ?? ended;
      if (chats.includes(chat) && performance.now() - kept > 2000) {
        kept = performance.now(); save(chat);
      }
      here.due ||= setTimeout(() => { here.due = 0; refreshView(turn); }, 30);
    }
    if (!ended && !turn.error) throw new Error("The answer ended before it was whole");
  } catch (e) {
    status("");
    if (stopper.signal.aborted) turn.note = "Stopped.";
    else {
      here.cut = true;
      turn.error = sentence(e.message === "Failed to fetch" ? "The server does not answer"
        : e.message);
    }
  }
  clearTimeout(here.due); refreshView(turn); // as live, so that it is told
  if (ended?.usage) {
    const u = ended.usage, now = performance.now(); // all of a short answer may come at once
    const seconds = (now - (now - first > 300 ? first : began)) / 1000;
    turn.facts = { read: u.input_tokens, cached: u.input_tokens_details.cached_tokens,
      written: u.output_tokens,
      rate: first && !resumed ? u.output_tokens / seconds : 0 };
  }
  turn.items = turn.items.filter(Boolean); runs.delete(turn.id);
  free?.();
  turn.ended = !(turn.response && here.cut); // or it can still be resumed
  const there = turn.ended && turn.response && pathTo(turn);
  if (there) delete turn.response;
  // another answer of which nothing came takes no one's place
  if (turn.again && !turn.items.length) {
    const old = turnOf(chat, turn.again);
    chat.turns.splice(chat.turns.indexOf(turn), 1);
    if (chat.leaf === turn.id) choose(chat, old);
    failed.set(old.id, (turn.error ?? turn.note) + " The earlier answer is shown.");
  }
  delete turn.again;
  const saving = chats.includes(chat) ? save(chat) : Promise.resolve(true);
  if (there) saving.then((stored) => (stored || stopper.signal.aborted) && // then it is ours alone
    ask(there, { method: "DELETE" })).catch(() => {});
  changed(chat);
  if (chats.includes(chat)) after(chat, turn, ended?.status === "completed");
}
const pathTo = (turn) => "v1/responses/" + turn.response;
const failed = new Map(); // why another answer of a turn did not come, until the page is left

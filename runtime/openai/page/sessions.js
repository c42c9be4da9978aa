// Conversations that the server keeps with those of ossrun chat (serve --share-sessions), in the
// terminal's form; a turn's own form is beside it, as page.
//
// What must stay true: what a terminal has written goes back as it was; of two that change a
// conversation no one loses a turn; one that is open in a terminal is continued in a copy.

const refusal = "the user did not allow this call"; // as a terminal writes it
const linesOf = (role, content, more) => ({ message: { role, content, ...more } });

// exchangeOf is a turn as a terminal has it: what the screen shows, and what the model reads.
function exchangeOf(turn) {
  const parts = [], messages = [linesOf("user", [turn.text, ...(turn.files ?? []).map((f) =>
    "[file: " + f.name + "]")].join("\n"))];
  for (const i of (turn.items ?? []).filter(Boolean)) {
    const text = partsOf(i);
    if (i.type === "message") parts.push({ kind: "speech", text });
    else if (i.type === "reasoning") parts.push({ kind: "thought", text,
      seconds: turn.seconds?.[i.id] ?? 0 });
    else if (isCall(turn)(i)) {
      const output = outputOf(i), args = askedOf(i), to = toolOf(i).replace(": ", ".");
      const failed = cards[i.type] === cards.mcp_call ? failureOf(i) : refusal;
      parts.push({ kind: "call", name: toolOf(i), text: args, output, failed });
      messages.push(linesOf("assistant", args, { channel: "commentary", recipient: to }),
        linesOf("tool", failed || output, { name: to, channel: "commentary",
          recipient: "assistant" }));
    }
  }
  if (textOf(turn)) messages.push(linesOf("assistant", textOf(turn), { channel: "final" }));
  return { question: turn.text, context: 0, messages, parts, ending: turn.error ?? turn.note,
    live: !turn.ended };
}
// itemsOf are the parts of a terminal's answer as items.
function itemsOf(parts, id) {
  return parts.map((p, i) => {
    const status = "completed", [server, name] = p.name?.split(": ") ?? [];
    const of = (type, more) => ({ type, id: id + "-" + i, status, ...more });
    if (p.kind === "thought") return of("reasoning", { summary: [], content: [
      { type: "reasoning_text", text: p.text }] });
    if (p.kind !== "call") return of("message", { role: "assistant", content: [
      { type: "output_text", text: p.text, annotations: [] }] });
    const said = p.output || null, failed = p.failed === refusal ? "refused" : p.failed || null;
    return p.name === "python" ? of("code_interpreter_call", { container_id: "none", code: p.text,
      error: failed, outputs: [{ type: "logs", logs: said ?? "" }] })
      : of("mcp_call", { server_label: server, name: name ?? server, arguments: p.text,
        output: said, error: failed });
  });
}
function chatOf({ version, session: { exchanges = [], ...record } }) {
  const turns = [], count = {};
  for (const { before, page, ...raw } of exchanges) {
    const parent = turns[before]?.id ?? null, from = parent ?? record.id;
    const id = page?.id ?? from + "." + (count[from] = (count[from] ?? 0) + 1);
    turns.push(page?.text !== undefined ? { ...page, parent } : { id, parent, raw, ended: true,
      text: raw.question || raw.summary, items: itemsOf(raw.parts, id),
      note: raw.live ? "A terminal was writing this answer." : raw.ending,
      seconds: Object.fromEntries(raw.parts.map((p, i) => [id + "-" + i, p.seconds])) });
    for (const f of turns.at(-1).files ?? []) held.set(f.id, f);
  }
  return { id: record.id, title: record.name, used: Date.parse(record.changed), turns, version,
    leaf: turns[record.at]?.id ?? null, record,
    queued: (record.queued ?? []).map((text) => ({ text, files: [] })) };
}
function sessionOf(chat) {
  const at = (id) => chat.turns.findIndex((t) => t.id === id);
  const changed = new Date(chat.used).toISOString();
  const here = chat.turns.at(-1)?.raw ? {} : { model: $("model").value, source: "", endpoint: "" };
  for (const t of chat.turns) for (const f of t.files ?? []) f.data ??= held.get(f.id)?.data;
  return { effort: effort(), began: changed, ...chat.record, ...here, id: chat.id,
    name: titleOf(chat), changed, at: at(chat.leaf),
    queued: chat.queued?.map((q) => q.text), exchanges: chat.turns.map((t) => ({
      ...(t.raw ?? exchangeOf(t)), before: at(t.parent), page: t.raw ? { id: t.id } : t })) };
}

// upload saves a chat on the server, one version after the other.
const uploads = new WeakMap();
function upload(chat) {
  uploads.set(chat, (uploads.get(chat) ?? Promise.resolve()).then(() => put(chat)).catch((e) =>
    void notice("The conversation is not stored: " + e.message)));
  return uploads.get(chat);
}
async function put(chat, tries = 3) {
  const r = await ask("v1/sessions/" + chat.id, { method: "POST",
    body: JSON.stringify({ version: chat.version, session: sessionOf(chat) }) });
  const said = await r.json(), code = tries && said.error?.code;
  if (r.ok) chat.version = said.version;
  else if (code === "session_changed") {
    await pull();
    return !chats.includes(chat) || put(chat, tries - 1); // or it was deleted elsewhere
  } else if (code === "session_open") {
    Object.assign(chat, { id: newID().slice(0, 8), version: "", title: titleOf(chat) + " (copy)" });
    notice("A terminal has this conversation open. It continues here in a copy."); list();
    return put(chat, 0);
  } else throw new Error(sentence(said.error.message));
  return true;
}
// pull takes up what the server has.
async function pull() {
  const r = await ask("v1/sessions"), said = await r.json();
  if (!r.ok) throw new Error(said.error.message);
  const live = (c) => c.turns.some((t) => runs.has(t.id)), all = said.data.map(chatOf);
  chats = chats.filter((c) => !c.version || live(c) || all.some((a) => a.id === c.id));
  for (const there of all) {
    const here = chats.find((c) => c.id === there.id);
    if (here?.version === there.version) continue;
    adopt(there);
    if (here) Object.assign(here, { version: there.version, record: there.record },
      !live(here) && { leaf: there.leaf });
  }
  byUse();
}
// sync shows what the server has, and goes on with answers that were left.
async function sync() {
  await pull(); chats.filter((c) => c.version).forEach(resumeCut);
  const gone = chat.version && !chats.includes(chat);
  if (gone || !chat.turns.length) open(gone ? null : chats[0]); else draw();
  list();
}

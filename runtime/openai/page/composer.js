// What is typed, attached and chosen before a message is sent.
//
// What must stay true: a draft is only emptied once its message is in the conversation; a file is
// refused here if the model could not read it.

const room = () => Math.floor(has.body / 1.4e6); // for files, in base64 beside what is said; MB
let editing = null, draft = "", attached = []; // {id, name, size, data}

function grow() {
  const t = $("text"); t.style.height = "auto"; t.style.height = t.scrollHeight + 2 + "px";
  buttons();
}
function type(text) { $("text").value = text; grow(); }
// edits puts a turn's question into the editor; what it makes is a branch beside it.
function edits(turn) {
  if (turn && !editing) draft = $("text").value;
  type(turn ? turn.text : draft); attached = (turn?.files ?? []).map((f) => ({ ...f }));
  editing = turn; $("editing").hidden = !turn;
  chips(); $("text").focus();
}
async function attach(files) {
  for (const f of files) {
    const sent = pathOf(editing ? { ...chat, leaf: editing.parent } : chat)
      .flatMap((t) => (!t.refused && t.files) || []);
    if ([...sent, ...attached].reduce((n, a) => n + a.size, f.size) > room() * 1e6) {
      notice(`${f.name} is too large. A conversation may have ${room()} MB of files.`);
      continue;
    }
    const bytes = new Uint8Array(await f.arrayBuffer());
    const pdf = String.fromCharCode(...bytes.subarray(0, 5)) === "%PDF-";
    try {
      if (!pdf) new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch { notice(f.name + " is neither text nor a PDF. The model reads text only."); continue; }
    const data = await new Promise((done) => {
      const reader = Object.assign(new FileReader(), { onload: () => done(reader.result) });
      reader.readAsDataURL(f);
    });
    const id = newID();
    held.set(id, { data }); attached.push({ id, name: f.name, size: f.size }); chips();
  }
}
function chips() {
  $("files").replaceChildren(...attached.map((f) => {
    const remove = button("×", () => { attached = attached.filter((a) => a !== f); chips(); });
    remove.setAttribute("aria-label", "Remove " + f.name);
    return el("span", { className: "file" }, f.name, remove);
  }));
}
const effort = () => document.querySelector("[name=effort]:checked")?.value ?? "medium";
const chosenTools = () => [...$("tools").querySelectorAll("input:checked")].map((i) => i.tool);
const toolName = (t) => t.server_label ?? { web_search: "browser",
  code_interpreter: "python" }[t.type];
// offers shows the models and tools that the server has.
function offers() {
  const chosen = kept.read("model", "");
  $("model").replaceChildren(...has.models.map((m) => el("option", { value: m.id, textContent: m.id,
    selected: m.id === chosen })));
  $("tools").replaceChildren(...has.tools.map((tool) => {
    const name = toolName(tool);
    if (tool.type === "code_interpreter") tool.container = { type: "auto" };
    const box = el("input", { type: "checkbox", tool, checked: kept.read(name, false) });
    box.onchange = () => kept.write(name, box.checked);
    return el("label", {}, box, " " + name);
  }));
  $("servers").replaceChildren(...has.servers.flatMap((s) => [
    el("dt", { textContent: s.server_label }),
    el("dd", { textContent: [s.state, s.tools.join(", ")].filter(Boolean).join(": ") })]));
  $("tools").append(...has.servers.filter((s) => s.state !== "connected").map((s) =>
    el("span", { textContent: s.server_label + ": " + s.state })));
  hello();
}
function buttons() {
  const live = chat && isLive(chat), typed = $("text").value.trim() || attached.length;
  $("send").textContent = !live ? "Send" : typed ? "Queue" : "Stop";
  $("send").title = live && !typed ? "Esc" : "Enter";
  $("send").classList.toggle("main", !live || !!typed);
  $("queued").replaceChildren(...(chat?.queued ?? []).map((q) => {
    const back = button("×", () => {
      chat.queued.splice(chat.queued.indexOf(q), 1); save(chat);
      buttons();
    });
    back.setAttribute("aria-label", "Remove the queued message");
    return el("div", {}, el("span", { dir: "auto", textContent: "next: " + q.text }), back);
  }));
}
const isLive = (chat) => pathOf(chat).some((t) => runs.has(t.id));
function submit() {
  const text = $("text").value, files = attached, parent = editing ? editing.parent : chat.leaf;
  if (!text.trim() && !files.length) return isLive(chat) && stop();
  const queue = isLive(chat);
  if (queue) (chat.queued ??= []).push({ text, files, ...(editing && { parent }) });
  else send(chat, text, files, parent);
  type(draft = ""); [editing, attached] = [null, []];
  $("editing").hidden = true; chips();
  if (queue) save(chat, contents(files));
  $("log").scrollTop = $("log").scrollHeight;
}
const contents = (files) => files.flatMap(({ id }) => (held.has(id) ? { id, ...held.get(id) }
  : []));
function send(chat, text, files, parent) {
  const turn = { id: newID(), parent, text, items: [], made: Date.now(),
    files: files.map(({ id, name, size }) => ({ id, name, size })) };
  chat.title ||= (text.trim() || files[0].name).slice(0, 60); chat.turns.push(turn);
  chat.leaf = turn.id; run(chat, turn, contents(files));
}
// after sends the next message once an answer has ended well; else all are in the editor again.
function after(chat, turn, well) {
  const open = turn.items.at(-1), kept = open?.type === "mcp_approval_request" &&
    decisions.find((d) => d.key === chat.decided?.[toolOf(open)]);
  if (kept && well) return decide(chat, turn, kept);
  if (!chat.queued?.length || open?.type === "mcp_approval_request") return;
  if (well) {
    const { text, files, parent = chat.leaf } = chat.queued.shift();
    send(chat, text, files, parent);
  } else giveBack(chat);
}
function giveBack(c) {
  if (c !== chat || !c.queued?.length || isLive(c)) return;
  attached = [...c.queued.flatMap((q) => q.files), ...attached];
  type([...c.queued.map((q) => q.text), $("text").value].join("\n").trim());
  c.queued = []; save(c);
  chips();
}
// again asks for another answer beside the one that is there.
function again(chat, turn) {
  failed.delete(turn.id);
  const other = { id: newID(), parent: turn.parent, text: turn.text, files: turn.files, items: [],
    made: Date.now(), again: turn.id };
  chat.turns.push(other); chat.leaf = other.id;
  run(chat, other);
}
function retry(chat, turn) {
  if (!turn.response && (turn.items.length || failed.has(turn.id))) again(chat, turn);
  else run(chat, turn);
}
function stop() { for (const t of pathOf(chat)) runs.get(t.id)?.stop(); }

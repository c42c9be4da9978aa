// The list of conversations, the one that is open, settings and keys: what holds the page together.
//
// What must stay true: everything can be done by keys alone and has a name that is read out; a
// conversation that is deleted can be brought back while the page says so.

const $ = (id) => document.getElementById(id);
const views = new Map(); // of the turns that are shown, by their ids
let chat = null, actions = null; // whose actions are open
const phone = matchMedia("(max-width: 52rem)");
const touch = matchMedia("(pointer: coarse)"); // whose keyboard has no Shift+Enter
const settings = { system: "", temperature: null, most: null, theme: "", size: "16",
  ...kept.read("settings", {}) };

const status = (text) => { $("status").textContent = text; };
let clearing = 0;
function notice(text, action) {
  $("toast").replaceChildren(text, ...(action ? [action] : [])); clearTimeout(clearing);
  clearing = setTimeout(() => $("toast").replaceChildren(), 10000);
}

// The list.

function day(chat) {
  const days = Math.floor((new Date().setHours(24, 0, 0, 0) - chat.used) / 86400e3);
  return days < 1 ? "Today" : days < 2 ? "Yesterday" : days < 30 ? "This month" : "Earlier";
}
function list() {
  if ($("list").querySelector("input")) return; // a name is being typed
  const at = [...$("list").querySelectorAll("button")].indexOf(document.activeElement);
  const wanted = $("search").value.trim().toLowerCase(), groups = new Map();
  for (const c of chats) {
    const text = () => titleOf(c) + c.turns.map((t) => t.text + textOf(t)).join("\n");
    if (wanted && !text().toLowerCase().includes(wanted)) continue;
    if (!groups.has(day(c))) groups.set(day(c), []);
    groups.get(day(c)).push(row(c));
  }
  $("list").replaceChildren(...[...groups].flatMap(([name, rows]) => [
    el("h2", { textContent: name }), el("ul", {}, ...rows)]));
  const none = wanted && !groups.size;
  if (none) $("list").append(el("p", { className: "facts", textContent: "Nothing found." }));
  $("list").querySelectorAll("button")[at]?.focus();
  $("title").textContent = chat ? titleOf(chat) : "ossrun";
  document.title = (chat?.title ? chat.title + " - " : "") + "ossrun";
}
function row(c) {
  const name = button(titleOf(c), () => open(c), "open");
  name.dir = "auto";
  const more = button("⋯", () => {
    actions = actions === c ? null : c; list();
    (document.querySelector(".actions button") ?? document.querySelector("[aria-current] + .more"))
      ?.focus();
  }, "plain more");
  more.setAttribute("aria-label", "Actions for " + titleOf(c));
  more.setAttribute("aria-expanded", actions === c);
  if (c === chat) name.setAttribute("aria-current", "page");
  const item = el("li", {}, name, more);
  if (actions === c) item.append(el("div", { className: "actions" },
    button("Rename", () => rename(c, name)),
    button("Export text", () => download(c, exported(c), "md")),
    button("Export JSON", () => download(c, JSON.stringify(c, null, 2), "json")),
    button("Delete", () => remove(c))));
  return item;
}
function rename(c, name) {
  const input = el("input", { value: titleOf(c), maxLength: 200, dir: "auto" });
  input.setAttribute("aria-label", "Name of the conversation");
  const done = async (keep) => {
    input.onblur = null;
    if (keep && input.value.trim()) c.title = input.value.trim();
    await save(c); input.remove(); actions = null; list();
  };
  input.onblur = () => done(true);
  input.onkeydown = (e) => {
    if (/^(Enter|Escape)$/.test(e.key)) { e.stopPropagation(); done(e.key === "Enter"); }
  };
  name.replaceWith(input); input.select();
}
function download(c, text, kind) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const name = titleOf(c).replace(/[^\p{L}\p{N} _-]/gu, "");
  el("a", { href: url, download: name + "." + kind }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
async function remove(c) {
  for (const t of c.turns) {
    runs.get(t.id)?.stop();
    if (runs.has(t.id) || !t.response) continue;
    ask(pathTo(t), { method: "DELETE" }).catch(() => {}); // it was cut, and goes on there
    delete t.response;
  }
  let back;
  try { back = await removeChat(c); } catch (e) { return notice(e.message); }
  actions = null; drawer(false); // the notice is not under it
  if (c === chat) open(null);
  list();
  notice("Deleted: " + titleOf(c), button("Undo", async () => {
    await back(); open(c); $("toast").replaceChildren();
  }, ""));
}

// The conversation.

function open(c) {
  if (editing) edits(null);
  for (const v of views.values()) v.node.remove();
  views.clear(); failed.clear();
  chat = c ?? { id: newID().slice(0, 8), title: "", used: Date.now(), leaf: null, turns: [] };
  drawer(false); list(); draw();
  giveBack(chat); $("log").scrollTop = $("log").scrollHeight;
  if (!phone.matches) $("text").focus();
}
const atEnd = () => $("log").scrollHeight - $("log").scrollTop - $("log").clientHeight < 80;
function draw() {
  const path = pathOf(chat);
  for (const [id, v] of views) {
    if (!path.some((t) => t.id === id)) { v.node.remove(); views.delete(id); }
  }
  for (const t of path) {
    if (views.has(t.id)) { views.get(t.id).update(); continue; }
    views.set(t.id, turnView(chat, t)); $("turns").append(views.get(t.id).node);
  }
  hello(); buttons();
}
function atEndStill(does) { // the end stays in sight
  const low = atEnd();
  does();
  if (low) $("log").scrollTop = $("log").scrollHeight;
}
const refreshView = (turn) => atEndStill(() => views.get(turn.id)?.update());
// changed shows that an answer has begun or ended.
function changed(c) {
  list();
  if (c !== chat) return;
  atEndStill(draw);
  if (document.activeElement === document.body) $("log").focus({ preventScroll: true });
}
const examples = { demo: ["What is ossrun?", "How do I serve an OpenAI API?",
  "How much memory does gpt-oss-20b need?"], other: ["What can you help me with?",
  "Explain recursion with a short example in Python.",
  "What is the sum of the first 100 numbers, and why?"] }; // the demo knows little else
function hello() {
  $("hello").hidden = chat?.turns.length > 0;
  const m = has.models.find((m) => m.id === $("model").value) ?? has.models[0];
  $("about").textContent = m ? m.id + ", " + m.context_length.toLocaleString("en") +
    " tokens of context." : "Looking for the model.";
  $("where").textContent = has.sessions ? "Conversations are kept with those of ossrun chat."
    : "Conversations stay in this browser.";
  $("examples").replaceChildren(...(m ? examples[m.id] ?? examples.other : []).map((text) =>
    button(text, () => { type(text); submit(); }, "")));
}

// Settings, keys and buttons.

function apply() {
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
  document.documentElement.style.fontSize = settings.size + "px";
}
const fields = ["system", "temperature", "most", "theme", "size"]; // of the sheet, by their ids
$("configure").onclick = () => {
  for (const name of fields) $(name).value = settings[name] ?? "";
  $("forget").disabled = !key;
  look(); // a server may have connected
  $("settings").showModal();
};
$("settings").oninput = () => {
  for (const name of fields) settings[name] = $(name).value;
  for (const name of ["temperature", "most"])
    settings[name] = settings[name] === "" ? null : Number(settings[name]);
  kept.write("settings", settings); apply();
};
$("forget").onclick = () => { keepKey("", false); $("forget").disabled = true; };
function drawer(shown) {
  document.body.classList.toggle("drawer", shown); $("side").inert = phone.matches && !shown;
  $("menu").setAttribute("aria-expanded", String(shown));
  if (shown) $("search").focus();
}
phone.onchange = () => drawer(false);
$("menu").onclick = () => drawer(!document.body.classList.contains("drawer"));
$("shade").onclick = () => drawer(false); $("fresh").onclick = () => open(null);
$("search").oninput = list; $("cancel").onclick = () => edits(null);
$("end").onclick = () => { $("log").scrollTop = $("log").scrollHeight; };
$("log").onscroll = () => { $("end").hidden = atEnd(); };
$("model").onchange = () => { kept.write("model", $("model").value); hello(); };
$("effort").onchange = () => kept.write("effort", effort());
const wished = kept.read("effort", "medium");
for (const i of document.querySelectorAll("[name=effort]")) i.checked = i.value === wished;
$("attach").onclick = () => $("pick").click();
$("pick").onchange = () => { attach([...$("pick").files]); $("pick").value = ""; };
$("ask").onsubmit = (e) => { e.preventDefault(); submit(); };
$("text").oninput = grow;
$("text").onkeydown = (e) => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing || touch.matches) return;
  e.preventDefault(); submit();
};
$("text").onpaste = (e) => {
  if (e.clipboardData.files.length) { e.preventDefault(); attach([...e.clipboardData.files]); }
};
document.ondragover = (e) => e.preventDefault();
document.ondrop = (e) => { e.preventDefault(); attach([...e.dataTransfer.files]); };
let pressed = 0, shown = 0; // when the last key was, and the question for a call appeared
document.onkeydown = (e) => {
  const k = e.key.toLowerCase(), control = e.ctrlKey || e.metaKey;
  const unhurried = e.timeStamp - Math.max(pressed, shown) > 400; // typing reads no question
  pressed = e.timeStamp;
  if (document.querySelector("dialog[open]")) return;
  const asks = !control && !e.altKey && unhurried && asking();
  const d = asks && !$("text").value && !/INPUT|SELECT/.test(e.target.nodeName) &&
    decisions.find((d) => d.key === (k === "escape" ? "n" : k));
  if (d) {
    e.preventDefault(); decide(chat, asks, d);
  } else if (k === "escape") {
    if (document.body.classList.contains("drawer")) drawer(false);
    else if (editing) edits(null);
    else stop();
  } else if (control && e.shiftKey && k === "o") { e.preventDefault(); open(null); }
  else if (control && k === "k") { e.preventDefault(); drawer(phone.matches); $("search").focus(); }
  else if (control && k === "/") { e.preventDefault(); $("keys").showModal(); }
  else if (k === "/" && !/INPUT|TEXTAREA|SELECT/.test(e.target.nodeName)) {
    e.preventDefault(); $("text").focus();
  }
};
if (others) others.onmessage = async ({ data }) => {
  if (!database) return;
  const c = await refresh(data);
  if (c === chat && !chats.includes(c) && !c.turns.some((t) => runs.has(t.id))) open(null);
  else if (c === chat) draw();
  list();
};
apply();
// resumeCut goes on with the answers of a chat that the page has left.
function resumeCut(c) {
  const resume = (t) => (navigator.locks ? navigator.locks.request("ossrun." + t.id,
    { ifAvailable: true }, (lock) => { if (lock) run(c, t); }) : void run(c, t));
  return c.turns.filter((t) => t.response && !t.ended && !runs.has(t.id)).map(resume);
}
openKept().then(async () => {
  const last = chats[0] ?? null;
  await Promise.all(chats.flatMap(resumeCut)); // its queue stays
  open(last);
  window.onfocus = () => has.sessions && sync().catch(() => {}); // from another tab or a terminal
  return look();
});

// What this browser keeps: conversations as trees of turns, and the files that they have.
//
// What must stay true: nothing that was said is lost by another tab, a full disk or a closed page.
// A record is written as the union of its turns here and there; one that another tab has deleted
// stays deleted. Where the browser gives no database, conversations live until the tab ends.

const kept = {
  read(name, or) {
    try { return JSON.parse(localStorage.getItem("ossrun." + name)) ?? or; } catch { return or; }
  },
  write(name, value) {
    try { localStorage.setItem("ossrun." + name, JSON.stringify(value)); } catch { /* full */ }
  },
};
const newID = () => crypto.randomUUID?.() ?? (Math.random() + "").slice(2);
const asked = (request) => new Promise((done, fail) => {
  request.onsuccess = () => done(request.result); request.onerror = () => fail(request.error);
});

// A chat is {id, title, used, leaf, turns}; a turn is {id, parent, text, files, items, ...}.
let database = null, chats = [];
const stored = new WeakSet(); // chats that the database has had
const others = "BroadcastChannel" in window ? new BroadcastChannel("ossrun") : null;

async function openKept() {
  try {
    const opening = indexedDB.open("ossrun", 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore("chats", { keyPath: "id" });
      opening.result.createObjectStore("files", { keyPath: "id" });
    };
    database = await Promise.race([asked(opening), later(5).then(() => {
      throw new Error("The browser's database does not answer.");
    })]);
    chats = await asked(database.transaction("chats").objectStore("chats").getAll());
    for (const c of chats) stored.add(c);
  } catch (e) {
    database = null;
    notice("This browser stores nothing here: conversations end with the tab. " + e.message);
  }
  byUse();
}
const byUse = () => chats.sort((a, b) => b.used - a.used);
function written(change) {
  return new Promise((done, fail) => {
    const t = database.transaction(["chats", "files"], "readwrite");
    t.oncomplete = () => done(true);
    t.onabort = () => fail(t.error ?? new Error("the browser refused"));
    change(t.objectStore("chats"), t.objectStore("files"));
  });
}

// save writes a chat, and the contents of files that are new in it.
async function save(chat, files = []) {
  if (!chats.includes(chat)) chats.push(chat);
  byUse();
  if (has.sessions && !stored.has(chat)) chat.version ??= "";
  if (chat.version !== undefined) return upload(chat);
  if (!database) return true;
  const had = stored.has(chat);
  try {
    await written((all, contents) => {
      all.get(chat.id).onsuccess = ({ target }) => {
        if (had && !target.result) return; // deleted in another tab
        merge(chat, target.result);
        all.put(chat);
        for (const f of files) contents.put(f);
        stored.add(chat);
      };
    });
    others?.postMessage(chat.id);
    return true;
  } catch (e) {
    const full = e?.name === "QuotaExceededError";
    notice((full ? "This browser's storage is full. Export or delete conversations."
      : "The conversation is not stored: " + e.message));
    return false;
  }
}
function merge(chat, there) {
  for (const turn of there?.turns ?? [])
    if (!chat.turns.some((t) => t.id === turn.id)) chat.turns.push(turn);
}
const filesOf = (chat) => [...chat.turns, ...(chat.queued ?? [])].flatMap((t) => t.files ?? [])
  .map((f) => f.id);
async function contentOf(id) {
  const f = held.get(id) ?? (database &&
    await asked(database.transaction("files").objectStore("files").get(id)));
  if (!f) throw new Error("A file of this conversation is gone from this browser.");
  return f.data;
}
const held = new Map(); // files of this tab, by id

// removeChat returns how the chat is brought back.
async function removeChat(chat) {
  const ids = [...new Set(filesOf(chat))], files = [];
  for (const id of ids) {
    try { files.push({ id, data: await contentOf(id) }); } catch { /* gone already */ }
  }
  if (chat.version) {
    const r = await ask("v1/sessions/" + chat.id, { method: "DELETE" });
    if (!r.ok && r.status !== 404) throw new Error(sentence(await fault(r)));
    chat.version = "";
  }
  chats = chats.filter((c) => c !== chat);
  if (database && stored.delete(chat)) {
    await written((all, contents) => {
      all.delete(chat.id);
      for (const id of ids) contents.delete(id);
    });
    others?.postMessage(chat.id);
  }
  return () => save(chat, files);
}
// refresh takes up what another tab has done to a chat.
async function refresh(id) {
  const there = await asked(database.transaction("chats").objectStore("chats").get(id));
  const here = chats.find((c) => c.id === id);
  if (there && adopt(there) === there) stored.add(there);
  else if (!there) chats = chats.filter((c) => c !== here);
  byUse();
  return here ?? there;
}
// adopt takes a chat into the list, or its turns into the one that is there.
function adopt(there) {
  const here = chats.find((c) => c.id === there.id);
  if (!here) { chats.push(there); return there; }
  merge(here, there);
  for (const t of there.turns) if (!runs.has(t.id)) Object.assign(turnOf(here, t.id), t);
  here.title = there.title;
  return here;
}

// The tree.

const turnOf = (chat, id) => chat.turns.find((t) => t.id === id);
function pathOf(chat) {
  const path = [];
  for (let t = turnOf(chat, chat.leaf); t && !path.includes(t); t = turnOf(chat, t.parent))
    path.unshift(t);
  return path;
}
const branches = (chat, turn) => chat.turns.filter((t) => t.parent === turn.parent);
// show makes a turn the one that is read, with the newest of what was said after it.
function choose(chat, turn) {
  for (let next = turn; next; next = chat.turns.findLast((t) => t.parent === turn.id)) turn = next;
  chat.leaf = turn.id;
}
const titleOf = (chat) => chat.title || "New conversation";
// isCall finds the calls of a turn, those that were refused included.
const isCall = (turn) => (i) => cards[i.type] === cards.mcp_call ||
  /^refused/.test(turn.said?.[i.id]);
function exported(chat) {
  const parts = ["# " + titleOf(chat)];
  for (const t of pathOf(chat)) {
    const names = (t.files ?? []).map((f) => "\n\n*" + f.name + "*").join("");
    const calls = t.items.filter(isCall(t)).map((i) => ["→ " + headOf(i, t.said?.[i.id] ??
      failureOf(i)), askedOf(i), outputOf(i)].join("\n").trim().replace(/^/gm, "    "));
    parts.push("## You\n\n" + t.text + names, ["## Answer", ...calls, textOf(t)].join("\n\n"));
  }
  return parts.join("\n\n") + "\n";
}
const partsOf = (item) => (item.content ?? []).map((c) => c.text ?? "").join("");
const textOf = (turn) => (turn.items ?? []).filter((i) => i?.type === "message").map(partsOf)
  .join("\n\n");

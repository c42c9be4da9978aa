// A turn as nodes: the question, a card for each item of the answer, and what can be done with it.
//
// What must stay true: what a turn has shown stays while more of it comes, with selections, opened
// cards and places in long code; what was finished is told to screen readers once.

// toolOf is the tool's one name, as the chat in a terminal has it.
function toolOf(item) {
  const at = { search: "search", open_page: "open", find_in_page: "find", find: "find" };
  if (item.type === "code_interpreter_call") return "python";
  if (item.type === "web_search_call") return "browser: " + (at[item.action?.type] ?? "search");
  const { server_label: server, name } = item;
  return server && server !== name ? server + ": " + name : name;
}
const stateOf = ({ status, error }) => (status === "failed" || error ? "failed"
  : { completed: "", incomplete: "stopped" }[status] ?? (status ? "running" : ""));
const headOf = (item, said) => [toolOf(item), stateOf(item), said.replace(/\s+/g, " ")
  .slice(0, 300)].filter(Boolean).join(" · ");
const outputOf = (item) => (item.output ?? (item.outputs ?? []).map((o) => o.logs ?? "").join(""))
  .trim();
const failureOf = ({ error }) => error?.message ?? error?.content?.map((c) => c.text).join("\n") ??
  error ?? "";
function askedOf({ code, arguments: text, action = {} }) {
  const { type, sources, queries, ...given } = action; // the query is enough
  return code ?? text ?? JSON.stringify(given);
}
// escaped shows the characters that a page does not, which could hide a part of a call.
const escaped = (text) => (/[^\P{C}\n\t]/u.test(text) ? JSON.stringify(text).replace(/\p{C}/gu,
  (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0")) : text);
// given are the arguments of a call, a row each; all of the text where rows would leave a part out.
function given(text) {
  let all = null;
  try { all = JSON.parse(text); } catch { /* not whole */ }
  const same = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1") === JSON.stringify(all);
  if (!same || !all || Array.isArray(all) || typeof all !== "object") return code("json", text);
  return el("dl", { className: "given" }, ...Object.entries(all).flatMap(([name, value]) => [
    el("dt", { textContent: escaped(name), dir: "auto" }), el("dd", { dir: "auto", textContent:
      escaped(value && typeof value === "string" ? value : JSON.stringify(value)) })]));
}

function folded(item, open = false) {
  const summary = el("summary"), node = el("details", { open, className: item.type }, summary);
  let touched = false;
  summary.onclick = () => { touched = true; };
  return { node, named: (text) => { if (summary.textContent !== text) summary.textContent = text; },
    fold: () => { if (!touched) node.open = false; } };
}
// Each makes a card: its node, and how it takes up what its item has become.
const cards = {
  reasoning(item, turn) {
    const f = folded(item, runs.has(turn.id)), thought = el("div", { className: "thought",
      dir: "auto" });
    f.node.append(thought);
    return { node: f.node, update(item, live) {
      const text = partsOf(item), took = turn.seconds?.[item.id];
      f.node.hidden = !text; add(thought, text);
      f.named(live ? "Thinking" : "Thought" + (took >= 1 ? " " + Math.round(took) + " s" : ""));
      if (!live) f.fold();
      else if (f.node.open) thought.scrollTop = thought.scrollHeight;
    } };
  },
  message(item, turn) {
    const node = el("div", { className: "text" }), body = node.appendChild(el("div"));
    const grow = growing(body, (nodes) => { if (fresh) tell(nodes); });
    let sources = null, fresh = runs.has(turn.id);
    return { node, update(item, live) {
      grow(partsOf(item), !live); fresh &&= live;
      const cited = (item.content ?? []).flatMap((c) => c.annotations ?? [])
        .filter((a) => a.type === "url_citation" && /^https?:/.test(a.url));
      const seen = [...new Map(cited.map((s) => [s.url, s])).values()];
      if (!seen.length || live || sources) return;
      sources = el("p", { className: "facts" }, "Sources: ",
        ...seen.flatMap((s, i) => [i ? ", " : "", link(s.url, s.title || s.url)]));
      node.append(sources);
    } };
  },
  mcp_call(item) {
    const f = folded(item);
    let was = "";
    return { node: f.node, update(item) {
      const failed = failureOf(item), said = failed || outputOf(item);
      f.named(headOf(item, said));
      const asked = askedOf(item);
      if (was === (was = asked + said)) return;
      f.node.replaceChildren(f.node.firstChild, item.code ? code("python", asked) : given(asked),
        ...(said ? [code(failed ? "error" : "output", said)] : []));
    } };
  },
  mcp_approval_request(item, turn, chat) {
    const f = folded(item, true), row = el("div", { className: "row", hidden: true });
    f.node.classList.add("asks"); f.node.append(given(item.arguments ?? "{}"), row);
    row.append(...decisions.map((d) => button(d.does, () => decide(chat, turn, d),
      d.key === "y" ? "main" : "")));
    return { node: f.node, update() {
      const said = turn.said?.[item.id], waits = !said && !runs.has(turn.id) &&
        turn.items.at(-1) === item;
      f.named(toolOf(item) + (said ? " · " + said : " wants to run"));
      if (waits && row.hidden) [shown, f.node.open] = [performance.now(), true];
      row.hidden = !waits; f.node.classList.toggle("asks", waits);
      if (said) f.fold();
    } };
  },
};
cards.function_call = cards.code_interpreter_call = cards.web_search_call = cards.mcp_call;

// decisions are the answers to a call that asks, as in a terminal.
const decisions = [["y", "Allow (y)", true], ["a", "Allow in this chat (a)", true, true],
  ["n", "Refuse (n, Esc)", false], ["d", "Refuse in this chat (d)", false, true],
].map(([key, does, approve, always]) => ({ key, does, approve, always, said:
  (approve ? "allowed" : "refused") + (always ? " in this chat" : approve ? " once" : "") }));
// asking is the turn that is read and waits for a decision.
function asking() {
  const turn = pathOf(chat).at(-1);
  return turn?.items.at(-1)?.type === "mcp_approval_request" && !runs.has(turn.id) ? turn : null;
}
function decide(chat, turn, d) {
  const item = turn.items.at(-1);
  if (d.always) (chat.decided ??= {})[toolOf(item)] = d.key;
  (turn.said ??= {})[item.id] = d.said;
  turn.items.push({ type: "mcp_approval_response", approval_request_id: item.id,
    approve: d.approve });
  run(chat, turn);
}

// tell lets screen readers read what is finished.
function tell(nodes) {
  const text = nodes.map((n) => n.text ?? n.textContent).join(" ").trim();
  if (text) $("heard").append(el("p", { textContent: text.slice(0, 4000) }));
  while ($("heard").childNodes.length > 8) $("heard").firstChild.remove();
}

function turnView(chat, turn) {
  const box = (className, ...inside) => el("div", { className }, ...inside), made = [];
  const chip = (f) => el("span", { className: "file", textContent: f.name });
  const files = turn.files?.length ? box("row", ...turn.files.map(chip)) : "";
  const question = el("div", { className: "user", dir: "auto" }, files, turn.text);
  const model = box("model"), foot = box("foot"), aside = (name) => el("h2",
    { className: "aside", textContent: name });
  const node = el("article", {}, aside("You"), question, aside("Answer"), model, foot);
  const update = () => {
    const live = runs.has(turn.id), items = turn.items ?? [];
    items.forEach((item, i) => {
      if (!item || !cards[item.type]) return;
      const is = item.type + item.id;
      if (made[i]?.is !== is) {
        made[i]?.node.remove(); made[i] = { is, ...cards[item.type](item, turn, chat) };
        model.append(made[i].node);
      }
      made[i].update(item, live && i === items.length - 1);
    });
    for (const old of made.splice(items.length)) old?.node.remove();
    model.classList.toggle("working", live);
    if (foot.dataset.live !== "true" || !live) foot.replaceChildren(...footer(chat, turn, live));
    foot.dataset.live = live;
  };
  update();
  return { node, update };
}
function footer(chat, turn, live) {
  const nodes = [], all = branches(chat, turn), at = all.indexOf(turn);
  const cut = turn.ended || live || turn.error ? ""
    : "The page was closed before the answer was whole.";
  const note = turn.note ?? cut, row = el("div", { className: "row" });
  const error = turn.error ?? failed.get(turn.id);
  if (error && !live) nodes.push(el("div", { className: "error", role: "alert" }, error,
    button("Retry", () => retry(chat, turn), "")));
  if (live && runs.get(turn.id).resumed) nodes.push(el("p", { className: "facts",
    textContent: "The server continued this answer while the page was closed." }));
  if (note && !live) nodes.push(el("p", { className: "facts", textContent: note }));
  if (!live) {
    if (textOf(turn)) row.append(copier(() => textOf(turn)));
    row.append(button("Edit", () => edits(turn)), button("Regenerate", () => again(chat, turn)));
  }
  if (all.length > 1) {
    const go = (step, name, mark) => {
      const b = button(mark, () => {
        choose(chat, all[at + step]); save(chat);
        draw();
        const { node } = views.get(all[at + step].id); // the key that was used stays
        [...node.querySelectorAll(".step")].sort((b) => (b.ariaLabel === name ? -1 : 1))
          .find((b) => !b.disabled).focus();
      }, "plain step");
      b.disabled = !all[at + step]; b.setAttribute("aria-label", name);
      return b;
    };
    row.append(go(-1, "Earlier version", "‹"), el("span", { className: "facts",
      textContent: at + 1 + " of " + all.length }), go(1, "Later version", "›"));
  }
  if (turn.facts?.read && !live) {
    const { read, cached, written, rate } = turn.facts, n = (x) => x.toLocaleString("en");
    row.append(el("span", { className: "facts end", title: n(read) + " tokens read, " + n(cached) +
      " of them from the cache", textContent: n(written) + " tokens" +
      (rate ? ", " + rate.toFixed(1) + "/s" : "") }));
  }
  if (row.childNodes.length) nodes.push(row);
  return nodes;
}

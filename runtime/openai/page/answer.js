// A turn as nodes: the question, a card for each item of the answer, and what can be done with it.
//
// What must stay true: what a turn has shown stays while more of it comes, with selections, opened
// cards and places in long code; what was finished is told to screen readers once.

const state = (item) => (!item.status || item.status === "completed" ? ""
  : " (" + item.status.replaceAll("_", " ") + ")");

function folded(item, open = false) {
  const summary = el("summary"), node = el("details", { open, className: item.type }, summary);
  let touched = false;
  summary.onclick = () => { touched = true; };
  return { node, named: (text) => { if (summary.textContent !== text) summary.textContent = text; },
    fold: () => { if (!touched) node.open = false; } };
}
// printed are blocks of code for texts that a tool was given or gave.
function printed(node) {
  const blocks = [];
  return (...texts) => texts.forEach(([name, text], i) => {
    if (!blocks[i] && text) node.append(blocks[i] = code(name, text));
    else if (text && blocks[i].text !== text) blocks[i].grow(text);
  });
}
// Each makes a card: its node, and how it takes up what its item has become.
const cards = {
  reasoning(item, turn) {
    const f = folded(item, runs.has(turn.id)), thought = el("div", { className: "thought" });
    f.node.append(thought);
    return { node: f.node, update(item, live) {
      const text = partsOf(item), took = turn.seconds?.[item.id];
      f.node.hidden = !text;
      add(thought, text);
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
      grow(partsOf(item), !live);
      fresh &&= live;
      const cited = (item.content ?? []).flatMap((c) => c.annotations ?? [])
        .filter((a) => a.type === "url_citation" && /^https?:/.test(a.url));
      const seen = [...new Map(cited.map((s) => [s.url, s])).values()];
      if (!seen.length || live || sources) return;
      sources = el("p", { className: "facts" }, "Sources: ",
        ...seen.flatMap((s, i) => [i ? ", " : "", link(s.url, s.title || s.url)]));
      node.append(sources);
    } };
  },
  code_interpreter_call(item) {
    const f = folded(item), print = printed(f.node);
    return { node: f.node, update(item) {
      f.named("python" + state(item));
      const logs = (item.outputs ?? []).map((o) => o.logs ?? "").join("");
      print(["python", item.code], ["output", logs]);
    } };
  },
  web_search_call(item) {
    const f = folded(item), print = printed(f.node);
    return { node: f.node, update(item) {
      const a = item.action ?? {};
      f.named("web: " + (a.query ?? a.url ?? a.pattern ?? a.type ?? "") + state(item));
      print(["json", JSON.stringify(a, null, 2)]);
    } };
  },
  mcp_call(item) {
    const f = folded(item), print = printed(f.node);
    return { node: f.node, update(item) {
      f.named([item.server_label, item.name].filter(Boolean).join(": ") + state(item));
      print(["json", item.arguments], ["output", item.output]);
    } };
  },
  mcp_approval_request(item, turn, chat) {
    const asks = el("p", {}, el("strong", { textContent: item.server_label }), " wants to run ",
      el("code", { textContent: item.name }), ".");
    const buttons = el("div", { className: "row" });
    for (const [name, approve] of [["Allow once", true], ["Refuse", false]]) {
      buttons.append(button(name, () => {
        turn.items.push({ type: "mcp_approval_response", approval_request_id: item.id, approve });
        run(chat, turn);
      }, approve ? "main" : ""));
    }
    const given = code("json", item.arguments ?? "");
    const node = el("div", { className: "card" }, asks, given, buttons);
    return { node, update() {
      buttons.hidden = runs.has(turn.id) || turn.items.at(-1)?.id !== item.id;
    } };
  },
};
cards.function_call = cards.mcp_call;

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
  const question = box("user", files, turn.text);
  const model = box("model"), foot = box("foot"), aside = (name) => el("h2",
    { className: "aside", textContent: name });
  const node = el("article", {}, aside("You"), question, aside("Answer"), model, foot);
  const update = () => {
    const live = runs.has(turn.id), items = turn.items ?? [];
    items.forEach((item, i) => {
      if (!item || !cards[item.type]) return;
      const is = item.type + item.id;
      if (made[i]?.is !== is) {
        made[i]?.node.remove();
        made[i] = { is, ...cards[item.type](item, turn, chat) };
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
  const cut = turn.ended || live ? "" : "The page was closed before the answer was whole.";
  const note = turn.note ?? cut, row = el("div", { className: "row" });
  const error = turn.error ?? failed.get(turn.id);
  if (error && !live) nodes.push(el("div", { className: "error", role: "alert" }, error,
    button("Retry", () => retry(chat, turn), "")));
  if (note && !live) nodes.push(el("p", { className: "facts", textContent: note }));
  if (!live) {
    if (textOf(turn)) row.append(copier(() => textOf(turn)));
    row.append(button("Edit", () => edits(turn)), button("Regenerate", () => again(chat, turn)));
  }
  if (all.length > 1) {
    const go = (step, name, mark) => {
      const b = button(mark, () => {
        choose(chat, all[at + step]);
        save(chat);
        draw();
        const { node } = views.get(all[at + step].id); // the key that was used stays
        [...node.querySelectorAll(".step")].sort((b) => (b.ariaLabel === name ? -1 : 1))
          .find((b) => !b.disabled).focus();
      }, "plain step");
      b.disabled = !all[at + step];
      b.setAttribute("aria-label", name);
      return b;
    };
    row.append(go(-1, "Earlier version", "‹"), el("span", { className: "facts",
      textContent: at + 1 + "/" + all.length }), go(1, "Later version", "›"));
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

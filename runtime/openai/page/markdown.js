// Markdown to nodes: only text nodes are ever made of what the model says, and links are http(s).
//
// What must stay true: an answer is laid out at every load, so none may hang the page; what is
// deeper, longer or denser in marks than these is shown as it was written. A text that grows is cut
// into finished blocks by its whole lines alone, so that what streams looks like what is loaded.

const mostDepth = 16, mostLine = 4000, mostInline = 20000, mostMarks = 400, mostText = 1 << 18;
const mostTokens = 20000; // of a block of code; the rest has no colours

const el = (name, props = {}, ...children) => {
  const e = Object.assign(document.createElement(name), props);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
};
function link(url, text) {
  return el("a", { href: url, textContent: text, target: "_blank",
    rel: "noopener noreferrer nofollow" });
}
const marks = new RegExp([
  /(?<!`)(`{1,9})(?!`)([^]*?[^`])\1(?!`)/, /\*\*([^*]+(?:\*[^*]+)*)\*\*/,
  /(?<![\w*])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_](?![\w*])/,
  /\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/, /(https?:\/\/[^\s<>)\]]+[^\s<>)\].,;:!?'"])/,
  /\\\((?<round>[^]{1,2000}?)\\\)/, /\\\[(?<square>[^]{1,2000}?)\\\]/,
  // prices are none: no blank inside of the marks, no letter or digit around them
  /(?<![\w$])(?<mark>\${1,2})(?![\s$])(?<sum>[^$\n]{1,2000})(?<!\s)\k<mark>(?![\w$])/,
].map((r) => r.source).join("|"), "g");

function inline(parent, text) {
  if (/^(P|H\d|T[DH])$/.test(parent.nodeName)) parent.dir = "auto";
  const found = text.match(/[`*_[$]|\\[([]/g), dense = found?.length > mostMarks ||
    text.length > mostInline;
  let at = 0;
  for (const m of dense ? [] : text.matchAll(marks)) {
    const { round, square, sum } = m.groups;
    if (sum !== undefined && sum.includes(" ") && !/[\\^_=+\-*/<>{}|]/.test(sum)) continue;
    parent.append(text.slice(at, m.index)); at = m.index + m[0].length;
    if (m[2] !== undefined) parent.append(el("code", { textContent: m[2].trim() || m[2] }));
    else if (m[3] !== undefined) inline(parent.appendChild(el("strong")), m[3]);
    else if (m[4] !== undefined) inline(parent.appendChild(el("em")), m[4]);
    else if (m[6] ?? m[7]) parent.append(link(m[6] ?? m[7], m[5] ?? m[7]));
    else parent.append(formula(round ?? square ?? sum, false));
  }
  parent.append(text.slice(at));
  return parent;
}
const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/)
  .map((c) => c.trim().replaceAll("\\|", "|"));
// These look at a line once, however long it is: no blank, and no hash, fits two of their parts.
const bullet = /^(\s*)([-*+]|\d{1,9}[.)])\s+([^]*)$/;
const rule = /^\s*(?:\|\s*)?:?-+:?\s*(?:\|\s*:?-+:?\s*)*(?:\|\s*)?$/;
const fenceOf = (line) => line.match(/^ {0,3}(`{3,}(?!`)(?!.*`)|~{3,})\s*(\S*)/);
const shuts = (line, fence) => line.trim().startsWith(fence);
const title = (text) => text.trimEnd().replace(/(?<!#)#+$/, "").trimEnd();
// display is the mark that ends the formula that a line begins, where it does not end in it.
const display = (line) => (line.startsWith("\\[") ? "\\]" : line.startsWith("$$") ? "$$" : "");
const stops = (line) => /^(#{1,6}\s|>)/.test(line) || fenceOf(line) || display(line) ||
  bullet.test(line);

function markdown(text, depth = 0) {
  const out = document.createDocumentFragment(), lines = text.split("\n");
  if (depth > mostDepth) { out.append(el("p", { textContent: text })); return out; }
  for (let i = 0; i < lines.length; ) {
    if (lines[i].length > mostLine) { out.append(el("p", { textContent: lines[i++] })); continue; }
    const line = lines[i], fence = fenceOf(line), heading = line.match(/^(#{1,6})\s+([^]*)$/);
    if (fence) {
      const body = [];
      for (i++; i < lines.length && !shuts(lines[i], fence[1]); i++) body.push(lines[i]);
      i++; out.append(code(fence[2], body.join("\n")));
    } else if (display(line) && formulaEnd(lines, i) >= 0) {
      const end = formulaEnd(lines, i) + 1, all = lines.slice(i, end).join("\n").trimEnd();
      out.append(el("p", {}, formula(all.slice(2, -2).trim(), true))); i = end;
    } else if (!line.trim()) i++;
    else if (heading) {
      out.append(inline(el("h" + Math.min(heading[1].length + 1, 5)), title(heading[2]))); i++;
    } else if (/^ {0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) { out.append(el("hr")); i++; }
    else if (line.startsWith(">")) {
      const body = [];
      for (; lines[i]?.startsWith(">"); i++) body.push(lines[i].replace(/^> ?/, ""));
      out.append(el("blockquote", { dir: "auto" }, markdown(body.join("\n"), depth + 1)));
    } else if (line.includes("|") && rule.test(lines[i + 1] ?? "")) {
      const sides = cells(lines[i + 1]).map((c) => (!/:$/.test(c) ? ""
        : c.startsWith(":") ? "middle" : "after"));
      const row = (name, text) => el("tr", {}, ...cells(text).map((c, i) =>
        inline(el(name, { className: sides[i] ?? "" }), c)));
      const head = el("thead", {}, row("th", line)), body = el("tbody");
      for (i += 2; lines[i]?.includes("|"); i++) body.append(row("td", lines[i]));
      out.append(el("div", { className: "wide", tabIndex: 0 }, el("table", {}, head, body)));
    } else if (bullet.test(line)) i = items(out, lines, i, depth);
    else {
      const body = [line];
      for (i++; i < lines.length && lines[i].length <= mostLine && lines[i].trim() &&
        !stops(lines[i]); i++) body.push(lines[i]);
      out.append(inline(el("p"), body.join("\n")));
    }
  }
  return out;
}
// formulaEnd is the line in which a formula ends that begins in line i, -1 if it does not soon.
function formulaEnd(lines, i) {
  const end = display(lines[i]);
  for (let n = i; n < Math.min(i + 40, lines.length); n++) {
    const text = n === i ? lines[n].slice(2) : lines[n];
    if (text.length > mostLine) break;
    if (text.trimEnd().endsWith(end)) return n;
  }
  return -1;
}
// items reads a list with what is indented under its items, and returns where it ends.
function items(out, lines, i, depth) {
  const [, indent, mark] = lines[i].match(bullet);
  const numbered = (m) => /\d/.test(m), l = el(numbered(mark) ? "ol" : "ul");
  if (numbered(mark)) l.start = parseInt(mark);
  for (let m; (m = lines[i]?.match(bullet)) && numbered(m[2]) === numbered(mark) &&
    m[1].length >= indent.length && m[1].length < indent.length + 2; ) {
    const body = [m[3]];
    for (i++; i < lines.length; i++) {
      const inner = /^(\s*)/.exec(lines[i])[1].length, next = /^(\s*)\S/.exec(lines[i + 1] ?? "");
      if (lines[i].trim() ? inner <= indent.length : !(next?.[1].length > indent.length)) break;
      body.push(lines[i].slice(Math.min(inner, indent.length + mark.length + 1)));
    }
    while (i < lines.length && !lines[i].trim() && bullet.test(lines[i + 1] ?? "")) i++;
    const inside = markdown(body.join("\n"), depth + 1), only = inside.firstChild;
    if (only?.nodeName === "P") only.replaceWith(...only.childNodes);
    const box = inside.firstChild?.data?.match(/^\[([ xX])\] /);
    if (box) inside.firstChild.data = (box[1] === " " ? "☐ " : "☑ ") +
      inside.firstChild.data.slice(4);
    l.append(el("li", { dir: "auto", className: box ? "task" : "" }, inside));
  }
  out.append(l);
  return i;
}

// code is a block of code in colours, with its language and a button that copies it; more of it may
// come (grow): its finished lines stay.
function code(name, text) {
  const lang = language(name), lines = el("code"), block = el("div", { className: "code" });
  let at = 0, state = { frames: [] }, tokens = 0, last = [];
  const show = (nodes, line, start) => {
    const plain = !lang || tokens > mostTokens;
    const [found, next] = plain ? [[["", line]], state] : coloured(lang, state, line);
    tokens += found.length;
    for (const [kind, t] of [["", start], ...found]) {
      if (kind) nodes.push(el("span", { className: kind, textContent: t }));
      else if (typeof nodes.at(-1) === "string") nodes[nodes.length - 1] += t;
      else nodes.push(t);
    }
    return next;
  };
  block.grow = (text) => {
    for (const n of last) n.remove();
    [last, block.text] = [[], text];
    if (at > text.length) return; // the line that has begun was the end
    const rest = text.slice(at).split("\n"), end = rest.pop(), nodes = [], open = [];
    for (const [i, line] of rest.entries()) state = show(nodes, line, at + i ? "\n" : "");
    lines.append(...nodes); show(open, end, at + rest.length ? "\n" : "");
    const count = lines.childNodes.length;
    lines.append(...open); last = [...lines.childNodes].slice(count);
    at = text.length - end.length;
  };
  const wrap = button("Wrap", () => {
    wrap.setAttribute("aria-pressed", String(block.classList.toggle("wrap")));
  });
  wrap.setAttribute("aria-pressed", "false");
  const named = el("span", { textContent: name.slice(0, 30) || "text" });
  block.append(el("div", { className: "bar" }, named, wrap, copier(() => block.text)),
    el("pre", { tabIndex: 0 }, lines));
  block.grow(text);
  return block;
}
function button(name, does, className = "plain") {
  return el("button", { type: "button", textContent: name, onclick: does, className });
}
// copier is a button that copies, and says so only if it did: a page over http has no clipboard.
function copier(text) {
  const b = button("Copy", async () => {
    let done = false;
    try {
      await navigator.clipboard.writeText(text()); done = true;
    } catch {
      const t = document.body.appendChild(el("textarea", { value: text(), className: "aside" }));
      t.select(); done = document.execCommand("copy");
      t.remove(); b.focus();
    }
    b.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { b.textContent = "Copy"; }, 2000);
  });
  return b;
}

// growing lays a text out in a box as it grows; finish is told of the nodes of each finished block.
function growing(box, finish = () => {}) {
  let at = 0, done = 0, fence = "", left = 0, blank = false, list = false;
  let tail = [], block = null, plain = null;
  const lay = (text) => {
    const end = text.indexOf("\n"), open = fence && end > 0 && fenceOf(text.slice(0, end));
    if (open && fence === open[1]) {
      // a last line of marks is the end of the block, which may still come
      const body = text.slice(end + 1)
        .replace(fence[0] === "`" ? /(^|\n) *`+ *$/ : /(^|\n) *~+ *$/, "");
      if (block) return block.grow(body);
      block = code(open[2], body);
    }
    for (const n of tail) n.remove();
    tail = block ? [block] : [...markdown(text).childNodes]; box.append(...tail);
  };
  const cut = (text, end) => {
    if (end === done) return;
    for (const n of block ? [] : tail) n.remove();
    const nodes = block ? [block] : [...markdown(text.slice(done, end)).childNodes];
    const from = text.indexOf("\n", done) + 1, to = text.lastIndexOf("\n", end - 2);
    if (block) block.grow(text.slice(from, Math.max(from, to))); // without the line that ends it
    else box.append(...nodes);
    finish(nodes); [done, tail, block, blank, list] = [end, [], null, false, false];
  };
  const scan = (text) => {
    for (let end; (end = text.indexOf("\n", at) + 1); at = end) {
      const line = text.slice(at, end - 1), short = line.length <= mostLine;
      const opens = short && (fenceOf(list ? line.trimStart() : line)?.[1] ?? (list || mark(line)));
      if (fence && (fence.length < 3 ? line.trimEnd().endsWith(fence) : shuts(line, fence))) {
        fence = "";
        if (!list) cut(text, end);
      } else if (fence) {
        if (fence.length < 3 && --left < 0) fence = "";
      } else if (opens && opens !== true) {
        if (!list || /^\S/.test(line)) cut(text, at);
        [fence, left] = [opens, 40];
      } else if (!line.trim()) blank = true;
      else {
        if (blank && !/^\s/.test(line) && !(list && bullet.test(line))) cut(text, at);
        blank = false; list ||= bullet.test(line.slice(0, 100));
      }
    }
  };
  // mark is what ends the formula that a line begins and does not end
  const mark = (line) => (line.slice(2).trimEnd().endsWith(display(line)) ? "" : display(line));
  return (text, end) => {
    try {
      if (text.length <= mostText && !plain) {
        scan(text); lay(text.slice(done));
        if (end) finish(tail);
        return;
      }
    } catch (e) { console.warn(e); }
    plain ??= el("div", { className: "thought", dir: "auto" });
    if (plain.parentNode !== box) box.replaceChildren(plain);
    add(plain, text);
  };
}
// add makes a plain text longer, so that a selection in it stays.
function add(box, text) {
  if (!box.firstChild) box.append("");
  const node = box.firstChild;
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}

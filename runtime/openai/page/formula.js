// Formulas as MathML, which browsers set without a library, by the terminal's table of symbols.
//
// What must stay true: a formula with anything that is not known, or that is no whole formula, is
// shown as it was written, every character of it; only text nodes are made of it.

const formulas = {};
for (const line of tables.formulas.replaceAll("\n  ", " ").split("\n")) {
  if (!line || line[0] === "#") continue;
  const [name, ...words] = line.split(" ");
  formulas[name] = new Map(name === "functions" ? words.map((w) => [w, w])
    : words.flatMap((w, i) => (i % 2 ? [[words[i - 1], w]] : [])));
}
const mostNested = 30, mostFormula = 2000;
const mathElement = (name, ...children) => {
  const e = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
  e.append(...children);
  return e;
};
const marked = (e, name, value) => { e.setAttribute(name, value); return e; };
const rowOf = (list) => (list.length === 1 ? list[0] : mathElement("mrow", ...list));
const accents = { hat: "^", widehat: "^", bar: "¯", overline: "¯", vec: "→", dot: "˙",
  ddot: "¨", tilde: "~", widetilde: "~" };
const fences = { matrix: "", pmatrix: "()", bmatrix: "[]", vmatrix: "||", Bmatrix: "{}",
  cases: "{", aligned: "", align: "", "align*": "", gathered: "", array: "", split: "" };

// formula is LaTeX set as MathML, or its text where that cannot be.
function formula(latex, display) {
  try {
    if (latex.length > mostFormula || !latex.trim()) throw new Error("not set");
    const reader = { text: latex, at: 0, depth: 0 }, inner = formulaList(reader, "");
    if (reader.at < latex.length) throw new Error("not whole");
    const m = mathElement("math", mathElement("mrow", ...inner));
    return display ? marked(m, "display", "block") : m;
  } catch { return el("code", { className: display ? "formula" : "", textContent: latex }); }
}
function formulaList(r, ends) {
  if (++r.depth > mostNested) throw new Error("too deep");
  const list = [];
  for (; r.at < r.text.length && !(ends && r.text.startsWith(ends, r.at)); ) {
    const c = r.text[r.at];
    if (/\s/.test(c)) r.at++;
    else if (ends === "\\end" && c === "&") { r.at++; list.push("&"); }
    else if (ends === "\\end" && r.text.startsWith("\\\\", r.at)) { r.at += 2; list.push("\\\\"); }
    else if (c === "^" || c === "_") scripts(r, list);
    else list.push(formulaAtom(r));
  }
  if (ends && r.at >= r.text.length) throw new Error("not closed");
  r.depth--;
  return list;
}
function scripts(r, list) {
  const base = list.pop(), found = {};
  if (base === "&" || base === "\\\\") throw new Error("nothing to stand at");
  for (let c; (c = r.text[r.at]) === "^" || c === "_"; ) {
    if (found[c]) throw new Error("twice");
    r.at++; found[c] = argument(r);
  }
  const under = base?.limits, children = [base ?? mathElement("mrow"), found["_"], found["^"]];
  const name = found["_"] && found["^"] ? (under ? "munderover" : "msubsup")
    : found["_"] ? (under ? "munder" : "msub") : under ? "mover" : "msup";
  list.push(mathElement(name, ...children.filter(Boolean)));
}
function argument(r) {
  while (/\s/.test(r.text[r.at] ?? "")) r.at++;
  if (r.at >= r.text.length) throw new Error("no argument");
  return formulaAtom(r);
}
function group(r, open = "{", shut = "}") {
  while (/\s/.test(r.text[r.at] ?? "")) r.at++;
  if (r.text[r.at++] !== open) throw new Error("no group");
  const list = formulaList(r, shut);
  r.at++;
  return rowOf(list);
}
function formulaAtom(r) {
  const c = String.fromCodePoint(r.text.codePointAt(r.at));
  if (c === "{") return group(r);
  if (c === "\\") return formulaCommand(r);
  if ("^_}&~#%$".includes(c)) throw new Error("no atom");
  r.at += c.length;
  const number = digit(c) && /^\d*(?:\.\d+)?/.exec(r.text.slice(r.at, r.at + 40))[0];
  if (typeof number === "string") { r.at += number.length; return mathElement("mn", c + number); }
  if (c === "'") return mathElement("mo", "′");
  const e = mathElement(/\p{L}/u.test(c) ? "mi" : "mo", c === "-" ? "−" : c);
  return "()[]|/".includes(c) ? marked(e, "stretchy", r.stretch === r.at) : e;
}
function words(r) {
  const m = /^\s*\{([^{}\\$^_&]*)\}/.exec(r.text.slice(r.at, r.at + mostFormula));
  if (!m) throw new Error("no words");
  r.at += m[0].length;
  return m[1];
}
const blank = (width) => marked(mathElement("mspace"), "width", width);
function formulaCommand(r) {
  const name = /^\\([A-Za-z]+|[^])/.exec(r.text.slice(r.at, r.at + 40))?.[1];
  if (!name) throw new Error("no command");
  r.at += name.length + 1;
  if (",;: ".includes(name)) return blank("0.25em");
  if (name === "!") return mathElement("mrow");
  if ("{}%$&#_".includes(name)) return mathElement("mo", name);
  if (name === "|") return mathElement("mo", "‖");
  if (formulas.symbols.has(name)) {
    const sign = formulas.symbols.get(name);
    return Object.assign(mathElement(/\p{L}/u.test(sign) ? "mi" : "mo", sign),
      { limits: ["sum", "prod", "coprod"].includes(name) });
  }
  if (formulas.relations.has(name)) return mathElement("mo", formulas.relations.get(name));
  if (formulas.functions.has(name)) {
    const limits = ["lim", "max", "min", "sup", "inf", "limsup", "liminf"].includes(name);
    return Object.assign(mathElement("mi", name), { limits });
  }
  if (accents[name]) return marked(mathElement("mover", argument(r),
    mathElement("mo", accents[name])), "accent", "true");
  switch (name) {
    case "quad": case "qquad": return blank(name === "quad" ? "1em" : "2em");
    case "left": case "right": case "big": case "Big": case "bigl": case "bigr": case "Bigl":
    case "Bigr": case "bigg": case "Bigg":
      while (r.text[r.at] === " ") r.at++;
      if (r.text[r.at] === ".") { r.at++; return mathElement("mrow"); }
      r.stretch = r.at + 1;
      return argument(r);
    case "frac": case "dfrac": case "tfrac": return mathElement("mfrac", argument(r), argument(r));
    case "binom": return mathElement("mrow", mathElement("mo", "("), mathElement("mtable",
      mathElement("mtr", mathElement("mtd", argument(r))),
      mathElement("mtr", mathElement("mtd", argument(r)))), mathElement("mo", ")"));
    case "sqrt": {
      const index = r.text[r.at] === "[" && group(r, "[", "]");
      return index ? mathElement("mroot", argument(r), index) : mathElement("msqrt", argument(r));
    }
    case "boxed": return mathElement("mrow", group(r));
    case "text": case "textit": case "textrm":
      return mathElement("mtext", words(r).replaceAll(" ", "\xa0"));
    case "mathrm": case "operatorname": case "mathbf": case "mathit": case "textbf": case "mathsf":
    case "boldsymbol": return marked(mathElement("mtext", words(r)), "class",
      /bf$|bold/.test(name) ? "bold" : "");
    case "mathbb": {
      const board = formulas.boards.get(words(r));
      if (board) return mathElement("mi", board);
    }
  }
  if (name === "begin") return environment(r);
  throw new Error("unknown");
}
function environment(r) {
  const name = words(r), fence = fences[name];
  if (fence === undefined) throw new Error("unknown");
  if (name === "array") words(r); // its columns
  const rows = [[[]]];
  for (const part of formulaList(r, "\\end")) {
    if (part === "&") rows.at(-1).push([]);
    else if (part === "\\\\") rows.push([[]]);
    else rows.at(-1).at(-1).push(part);
  }
  r.at += "\\end".length;
  if (words(r) !== name) throw new Error("another end");
  const filled = rows.filter((c) => c.length > 1 || c[0].length);
  const table = mathElement("mtable", ...filled.map((cells) =>
    mathElement("mtr", ...cells.map((c) => mathElement("mtd", ...c)))));
  if (fence !== "()" && fence.length < 2) table.setAttribute("class", "left");
  return mathElement("mrow", ...(fence[0] ? [mathElement("mo", fence[0])] : []), table,
    ...(fence[1] ? [mathElement("mo", fence[1])] : []));
}

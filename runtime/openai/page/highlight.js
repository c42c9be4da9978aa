// Source code in colours: the scanner of the terminal's chat (ui/chat/highlight explains it), over
// the same table, which explains itself.
//
// What must stay true: the texts of a line's tokens are the line; each step takes a character, and
// looks ahead over none again and again; a line is coloured by its text and the state before it.

const kindOf = (letter) => (letter === "x" ? "" : letter);
const bit = (c) => (c >= "a" && c <= "z") || (c >= "A" && c <= "Z");
const digit = (c) => c >= "0" && c <= "9";
const wordPart = (c) => bit(c) || c === "_" || digit(c) || c >= "\x80";
const deepest = 8, longestLine = 4000;

const languages = new Map(); // by every name; filled when the first code is shown
function readLanguages() {
  const all = [], named = (name) => {
    if (!languages.has(name)) languages.set(name, { words: new Map(), regions: [], forms: "",
      starts: "", holds: "", marks: {}, keys: {} });
    return languages.get(name);
  };
  for (const line of tables.languages.replaceAll("\n  ", " ").split("\n")) {
    if (!line || line[0] === "#") continue;
    if (line[0] !== " ") {
      const names = line.split(" "), l = named(names[0]);
      for (const n of names) languages.set(n, l);
      all.push(l);
      continue;
    }
    for (const p of line.trim().split(" ; ")) property(all.at(-1), p.trim().split(/\s+/), named);
  }
  for (const l of all) { l.starts = new Set(l.starts); l.holds = new Set(l.holds); }
}
function property(l, [name, ...words], named) {
  const known = { keywords: { kind: "k" }, types: { kind: "t" }, defines: { kind: "k", next: "f" },
    operands: { kind: "k", operand: true } }[name];
  if (known) {
    for (const w of words) {
      l.words.set(w, known);
      if (l.forms.includes("I")) l.words.set(w.toUpperCase(), known);
    }
  } else if (name === "like") {
    const of = named(words[0]);
    Object.assign(l, of, { words: new Map(of.words), marks: { ...of.marks },
      keys: { ...of.keys } });
  } else if (name === "regions") {
    l.regions = words.join(" ").split(" | ").map((r) => region(l, r.split(" "), named));
  } else if (name === "marks" || name === "keys") {
    for (const w of words) l[name][w[0]] = kindOf(w[1]);
  } else if (name === "forms") l.forms += words[0];
  else { l.holds += words[0]; if (name === "start") l.starts += words[0]; }
}
function region(lang, [head, ...rest], named) {
  const r = { lang, kind: kindOf(head[0]), forms: head.slice(1), open: "", shut: "", hole: "" };
  for (const [i, text] of rest.entries()) {
    if (text.startsWith("in=")) r.code = named(text.slice(3));
    else r[["open", "shut", "hole"][i]] = text.replaceAll("\\s", " ").replaceAll("\\,", ";");
  }
  r.brackets = r.hole.includes("(") ? "()" : "{}";
  r.nest = r.forms.includes("N") ? r.open.slice(r.open.length - r.shut.length) : "";
  return r;
}
function language(name) {
  if (!languages.size) readLanguages();
  name = name.toLowerCase().replace(/^[{}. \t]+|[{}. \t]+$/g, "").split(/[ \t,{:;(]/)[0];
  return name.startsWith(".") ? undefined : languages.get(name);
}

// coloured are the tokens [kind, text] of a line, and the state for the next.
function coloured(base, state, line) {
  if (line.length > longestLine) return [[["", line]], state];
  const frames = state.frames.map((f) => ({ ...f })), tokens = [];
  let at = 0, value = false, expect = "", command = !state.rest, lang = base;
  const skip = (i) => { while (line[i] === " " || line[i] === "\t") i++; return i; };
  const char = (i) => line[i] ?? "", has = (l, c) => c && (wordPart(c) || l.holds.has(c));
  const shell = () => lang.forms.includes("S");
  let first = skip(0);
  const wordEnd = (i, l = lang) => { while (has(l, line[i])) i++; return i; };
  const take = (kind, end) => {
    end = Math.min(end, line.length);
    if (end <= at) return;
    if (tokens.at(-1)?.[0] === kind) tokens.at(-1)[1] += line.slice(at, end);
    else tokens.push([kind, line.slice(at, end)]);
    at = end;
  };
  const begins = (r) => {
    const end = at + r.open.length, behind = char(end), is = (f) => r.forms.includes(f);
    return line.startsWith(r.open, at) && (!is("S") || at === 0) && (!is("F") || at === first) &&
      (!is("W") || at === 0 || !has(lang, line[at - 1])) && (!is("O") || !value) &&
      (!is("M") || bit(behind) || "/!?".includes(behind || " ")) &&
      (!is("C") || line.slice(end, end + 200).includes(r.shut)) &&
      (!is("H") || behind === "\\" || behind !== "'" && char(end + 1) === "'");
  };
  const open = () => {
    const r = frames.length < deepest && lang.regions.find((r) => begins(r));
    if (!r) return false;
    let end = at + r.open.length;
    expect = "";
    if (r.forms.includes("K")) {
      take(r.kind, end);
      first = skip(end); command = true;
      return true;
    }
    if (r.forms.includes("M") && r.code) end = wordEnd(end + 1, r.code);
    frames.push({ region: r, code: r.code, nested: 1 }); take(r.kind, end);
    value = command = false;
    return true;
  };
  const keyAt = (l, end, quoted) => {
    end = skip(end);
    const c = char(end), next = char(end + 1);
    if (c === "=" && next === "=" || c === ":" && next > " " && !quoted) return "";
    return l.keys[c] ?? "";
  };
  const text = (f) => {
    const r = f.region;
    let i = at, closed = false, hole = false;
    for (; i < line.length && !closed && !hole; i++) {
      if (r.hole && frames.length < deepest && line.startsWith(r.hole, i)) {
        hole = r.hole !== "{" || line[i + 1] !== "{"; i += hole ? r.hole.length - 1 : 1;
      } else if (line[i] === "\\" && r.forms.includes("E")) i++;
      else if (r.nest && line.startsWith(r.nest, i)) { f.nested++; i += r.nest.length - 1; }
      else if (r.shut && line.startsWith(r.shut, i)) {
        i += r.shut.length - 1; closed = --f.nested <= 0 || !r.nest;
      }
    }
    take(r.kind, i);
    if (hole) {
      frames.push({ region: r, code: r.lang, nested: 1 });
      value = false; command = true;
    } else if (closed) {
      frames.pop(); value = r.kind === "s";
      const key = keyAt(r.lang, at, true);
      if (value && key) tokens.at(-1)[0] = key;
    }
  };
  const word = () => {
    const end = wordEnd(at), w = line.slice(at, end), next = char(end), before = char(at - 1);
    const known = lang.words.get(w), expected = expect, key = keyAt(lang, end, false);
    let kind = known?.kind ?? "";
    expect = "";
    if (kind === "k" && (before === "." && char(at - 2) !== "." ||
      shell() && !command && !["in", "do", "AS"].includes(w))) kind = "";
    else if (kind === "k") expect = known.next ?? "";
    else if (expected) kind = expected;
    else if (!value && key) kind = key;
    else if (shell() && (!command || w[0] === "-")) kind = "";
    else if (shell() && next === "=") kind = "v";
    else if (kind) { /* a type */ }
    else if (shell()) kind = "f";
    else if (lang.forms.includes("A")) kind = "y";
    else if (next === "(" || lang.marks["-"] && w.indexOf("-") > 0) kind = "f";
    else if (lang.forms.includes("C") && w[0] >= "A" && w[0] <= "Z" &&
      (w.length === 1 || /[a-z]/.test(w))) kind = "t";
    value = kind !== "k"; command = kind === "k" && !known.operand || command && w[0] === "-";
    take(kind, end);
  };
  const step = () => {
    const c = line[at], next = char(at + 1), before = char(at - 1), mark = lang.marks[c];
    const starts = (c) => c && (wordPart(c) && !digit(c) || lang.starts.has(c));
    if (c === " " || c === "\t") take("", skip(at));
    else if (open()) { /* a comment or a string */ }
    else if (lang.forms.includes("P")) {
      let end = at + 1;
      while (end < line.length && !lang.regions.some((r) => r.open[0] === line[end])) end++;
      take("", end);
    } else if (digit(c) || c === "." && digit(next) && !value && before !== ".") {
      const hex = char(at + 1).toLowerCase() === "x";
      let i = at + 1;
      for (; i < line.length; i++) {
        const d = line[i], e = line[i - 1].toLowerCase() === "e" && !hex;
        if (!(d < "\x80" && wordPart(d) || digit(char(i + 1)) && (d === "." || d === "'" ||
          e && (d === "+" || d === "-")))) break;
      }
      take("n", i);
      value = true; command = false; expect = "";
    } else if (mark && starts(next) && next !== c && next !== "-" &&
      (c === "$" || before !== c && !has(lang, before))) {
      take(mark, wordEnd(at + 1));
      value = mark !== "k"; command = false; expect = "";
    } else if (starts(c)) word();
    else {
      command = "|&;({`!@".includes(c) || command && c === "\\"; value = c === ")" || c === "]";
      if (!"*&.:?".includes(c)) expect = "";
      const f = frames.at(-1), i = f?.region.hole ? f.region.brackets.indexOf(c) : -1;
      if (i >= 0) f.nested += 1 - 2 * i;
      const shut = f?.region.hole && f.nested === 0;
      if (shut) frames.pop();
      take(shut ? f.region.kind : "", at + 1);
    }
  };
  while (at < line.length) {
    const f = frames.at(-1), r = f?.region;
    lang = f?.code ?? base;
    if (r && !f.code) text(f);
    else if (r?.code && line.startsWith(r.shut, at)) {
      frames.pop(); take(r.kind, at + r.shut.length);
    } else step();
  }
  const carried = line.endsWith("\\");
  const ends = frames.findIndex(({ region: r }) => !r.forms.includes("L") &&
    !(carried && r.forms.includes("E")));
  return [tokens, { frames: ends < 0 ? frames : frames.slice(0, ends), rest: carried && !command }];
}

// What may follow in a body, as rules in GBNF, for servers that sample under rules.
//
// What must stay true: the rules allow every text that the grammar allows, and may allow more. So
// the tokens of such a server are checked as any others.

package automaton

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

const (
	// maxRules bounds the rules. Frames without a rule are any text.
	maxRules = 400
	// maxCounted: up to so many characters of a string are counted, by a rule each.
	maxCounted = 32
)

// ruleWriter writes a rule for each frame, as if the stack below it were empty.
type ruleWriter struct {
	*machine
	list   []frame // by the number of their rules
	number map[frame]int
	broken bool // a position is inside a character
}

// GBNF returns the rules, which begin at root; "": there are none for this position.
func (m *Matcher) GBNF() string {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.state == dead {
		return ""
	}
	w := &ruleWriter{machine: m.c.m, number: map[frame]int{}}
	var b strings.Builder
	b.WriteString("root ::= " + w.alternatives(m.open) + "\n")
	for i := 0; i < len(w.list); i++ { // rules may add others
		fmt.Fprintf(&b, "r%d ::= %s\n", i, w.rule(w.list[i]))
	}
	if w.broken {
		return ""
	}
	return b.String() + "any ::= [^\\x00]*\n"
}

// alternatives are the stacks of a set.
func (w *ruleWriter) alternatives(stacks []int32) string {
	var list []string
	for _, id := range stacks {
		list = append(list, w.sequence(id))
	}
	return strings.Join(list, " | ")
}

// sequence is a stack from its top down.
func (w *ruleWriter) sequence(id int32) string {
	text := `""`
	for id != emptyStack {
		f := w.frames[id]
		id = f.parent
		f.parent = emptyStack
		if f.kind == planUnion { // it has the stacks down to their ends
			id = emptyStack
		}
		if f.kind == readLiteral {
			// no \x outside of brackets: xgrammar reads all hexadecimal digits after it
			text += " " + string(jsondoc.Quote(nil, w.literals[f.ref][f.a:]))
			w.broken = w.broken || !utf8.RuneStart(w.literals[f.ref][f.a])
			continue
		}
		if f.kind == readString {
			s := w.strings[f.ref]
			if s.ends == nil && s.Max > max(maxCounted, s.Min) {
				f.b = int32(s.Min)<<4 | f.b&15
			}
		}
		n, ok := w.number[f]
		if !ok && len(w.list) == maxRules {
			text += " any"
			continue
		}
		if !ok {
			n = len(w.list)
			w.number[f] = n
			w.list = append(w.list, f)
		}
		text += fmt.Sprint(" r", n)
	}
	return text
}

// rule is what a frame reads: a character and the rest, or its plans.
func (w *ruleWriter) rule(f frame) string {
	id := w.push(f.kind, f.ref, f.a, f.b, emptyStack)
	w.round++
	if f.kind >= planValue {
		return w.alternatives(w.expand(nil, id))
	}
	var ways []string
	classes := map[string]string{} // the ASCII characters before each rest
	for c := range byte(utf8.RuneSelf) {
		if rest := w.advance([]int32{id}, c, c); len(rest) > 0 {
			text := w.alternatives(rest)
			if classes[text] == "" {
				ways = append(ways, text)
			}
			classes[text] += fmt.Sprintf(`\x%02x`, c)
		}
	}
	for i, text := range ways {
		ways[i] = "[" + classes[text] + "] (" + text + ")"
	}
	for i, lead := range []string{"\xc2\xdf", "\xe0\xef", "\xf0\xf4"} {
		rest := w.advance([]int32{id}, lead[0], lead[1])
		for range i + 1 {
			rest = w.advance(rest, 0x80, 0xbf)
		}
		if text := w.alternatives(rest); text != "" {
			ways = append(ways, `[^\x00-\x7f] (`+text+")")
		}
	}
	if len(ways) == 0 { // an end, whose set has what follows; or the middle of a character
		w.broken = w.broken || f.kind != readDFA || !w.numbers[f.ref].accept[f.a]
		return `""`
	}
	return strings.Join(ways, " | ")
}

// advance returns the stacks after one of the bytes.
func (w *ruleWriter) advance(stacks []int32, from, to byte) (rest []int32) {
	for _, id := range stacks {
		for b := int(from); b <= int(to); b++ {
			w.round++
			rest = w.move(rest, id, byte(b))
		}
	}
	return w.union(rest)
}

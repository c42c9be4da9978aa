// The pushdown machine that executes a grammar byte by byte.
//
// A configuration is a stack of frames: the current one, and under it what follows. Frames are
// interned: a frame with its parent is one number, so equal stacks have equal numbers. A frame
// either reads a byte or is a plan that expand turns into frames that do. Several simultaneous
// configurations are the open alternatives.
//
// What must stay true: plans are only made for satisfiable nodes, so every configuration can be
// finished.

package automaton

import (
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// frameKind is the kind of a frame. Those from planValue on are plans.
type frameKind uint8

const (
	// ref: literal, a: position, b: 1 for the end of an array whose items differ
	readLiteral frameKind = iota
	readDFA               // ref: automaton, a: state; may end in any accepting state
	// ref: string, a: state, b: characters<<4 | escape; up to the closing quote
	readString
	planValue    // ref: node
	planMembers  // ref: object, a: next property, b: members<<1 | 1 after the first
	planItems    // ref: array, a: next item, b: matching items so far
	planSequence // ref: sequence of a written grammar, a: position
	planUnion    // ref: simultaneous stacks (union.go)
)

// frame is one element of a stack; parent is the stack below it.
type frame struct {
	kind   frameKind
	ref    int32
	a, b   int32
	parent int32
}

const emptyStack int32 = 0

// maxDepth is the nesting of containers at which a value without a schema must be a scalar.
const maxDepth = 48

// machine interns frames and moves configurations.
type machine struct {
	*Program
	frames []frame
	depth  []int32 // containers around a frame
	ids    frameTable
	round  uint64   // of expansion: one for each step
	seen   []uint64 // the last round in which a frame was expanded

	unions    [][]int32
	unionOf   map[string]int32
	distances distances
	// see without
	withouts map[[2]int32]int32
}

func newMachine(p *Program) *machine {
	return &machine{Program: p, frames: make([]frame, 1), depth: make([]int32, 1),
		seen: make([]uint64, 1), unionOf: map[string]int32{},
		withouts: map[[2]int32]int32{}}
}

func (m *machine) push(kind frameKind, ref, a, b, parent int32) int32 {
	f := frame{kind, ref, a, b, parent}
	id := m.ids.find(m.frames, f)
	if id == 0 {
		id = int32(len(m.frames))
		m.frames = append(m.frames, f)
		d := m.depth[parent]
		if kind == planMembers || kind == planItems {
			d++
		}
		m.depth = append(m.depth, d)
		m.seen = append(m.seen, 0)
		m.ids.add(m.frames)
	}
	return id
}

func (m *machine) text(s string, parent int32) int32 {
	return m.push(readLiteral, m.literal(s), 0, 0, parent)
}

// expand appends the configurations that read a byte next, and emptyStack if the stack may end
// here. A frame is expanded once per round, even if several paths lead to it.
func (m *machine) expand(out []int32, id int32) []int32 {
	if m.seen[id] == m.round {
		return out
	}
	m.seen[id] = m.round
	if id == emptyStack {
		return append(out, id)
	}
	f := m.frames[id]
	switch f.kind {
	case planValue:
		deep := f.ref == m.Any && m.depth[id] >= maxDepth
		for _, alt := range m.nodes[f.ref] {
			next := m.push(alt.kind, alt.ref, 0, 0, f.parent)
			switch {
			case alt.kind == readString:
				out = append(out, m.text(`"`, next))
			case alt.kind != planMembers && alt.kind != planItems:
				out = m.expand(out, next)
			case deep:
			case alt.kind == planMembers:
				out = append(out, m.text("{", next))
			default:
				out = append(out, m.text("[", next))
			}
		}
		return out
	case planMembers:
		return m.expandMembers(out, f)
	case planItems:
		return m.expandItems(out, f)
	case planSequence:
		return m.expandSequence(out, f)
	case planUnion:
		for _, open := range m.unions[f.ref] {
			out = m.expand(out, open)
		}
		return out
	case readDFA:
		out = append(out, id)
		if m.numbers[f.ref].accept[f.a] {
			out = m.expand(out, f.parent)
		}
		return out
	}
	return append(out, id)
}

// expandSequence reads the symbol at f.a and then the others.
func (m *machine) expandSequence(out []int32, f frame) []int32 {
	s := m.sequences[f.ref]
	if int(f.a) == len(s) {
		return m.expand(out, f.parent)
	}
	rest := f.parent
	if int(f.a)+1 < len(s) {
		rest = m.push(planSequence, f.ref, f.a+1, 0, f.parent)
	}
	return m.expand(out, m.push(s[f.a].kind, s[f.a].ref, 0, 0, rest))
}

func (m *machine) configurations(id int32) []int32 {
	m.round++
	return m.union(m.expand(nil, id))
}

func (m *machine) expandMembers(out []int32, f frame) []int32 {
	o := m.objects[f.ref]
	count, comma := int(f.b>>1), ""
	if f.b&1 == 1 {
		comma = ","
	}
	// after is the plan once one more member has been read and the next property is i.
	rest := func(i int) int32 {
		n := count
		if o.Max >= 0 || o.Min > n {
			n++
		}
		return m.push(planMembers, f.ref, int32(i), int32(n)<<1|1, f.parent)
	}
	// fits reports whether the properties from i on can complete an object of n members so far.
	fits := func(n, i int) bool {
		return (o.Max < 0 || n+o.mustHave[i] <= o.Max) && (len(o.Extra) > 0 ||
			n+o.canHave[i] >= o.Min)
	}
	for i := int(f.a); i < len(o.Properties); i++ {
		p := &o.Properties[i]
		if fits(count+1, i+1) {
			if p.spelled[len(comma)] == 0 {
				quoted := string(append(jsondoc.Quote([]byte(comma), p.Name), ':'))
				p.spelled[len(comma)] = m.literal(quoted) + 1
			}
			value := m.push(planValue, p.Value, 0, 0, rest(i+1))
			out = append(out, m.push(readLiteral, p.spelled[len(comma)]-1, 0, 0, value))
		}
		if p.Required {
			return out
		}
	}
	end := len(o.Properties)
	if fits(count+1, end) {
		for _, x := range o.Extra {
			value := m.push(planValue, x.Value, 0, 0, rest(end))
			out = append(out, m.text(comma+`"`, m.push(readString, x.text, 0, 0,
				m.text(":", value))))
		}
	}
	if count >= o.Min {
		out = append(out, m.text("}", f.parent))
	}
	return out
}

func (m *machine) expandItems(out []int32, f frame) []int32 {
	a := m.arrays[f.ref]
	i, need := int(f.a), a.Least-int(f.b)
	if i >= a.Min && need <= 0 {
		unique := int32(0)
		if a.Unique {
			unique = 1 // see without: no frame below marks it
		}
		out = append(out, m.push(readLiteral, m.literal("]"), 0, unique, f.parent))
	}
	item := a.Items
	if i < len(a.Prefix) {
		item = a.Prefix[i]
	}
	if item < 0 || a.Max >= 0 && i >= a.Max {
		return out
	}
	next := i + 1
	// without a bound, items after the prefix share a plan; only the very first has no comma
	if a.Max < 0 {
		next = min(next, max(len(a.Prefix), a.Min, 1))
	}
	add := func(item, matches int32) {
		rest := m.push(planItems, f.ref, int32(next), matches, f.parent)
		value := m.push(planValue, item, 0, 0, rest)
		if i == 0 {
			out = m.expand(out, value)
		} else {
			out = append(out, m.text(",", value))
		}
	}
	if need <= 0 || a.CanMatch(i+1) >= need {
		add(item, f.b)
	}
	if need > 0 && a.Matches[min(i, len(a.Prefix))] >= 0 {
		add(a.Matches[min(i, len(a.Prefix))], f.b+1)
	}
	return out
}

func (m *machine) move(out []int32, id int32, b byte) []int32 {
	if id == emptyStack {
		return out
	}
	f := m.frames[id]
	switch f.kind {
	case readLiteral:
		s := m.literals[f.ref]
		if s[f.a] != b {
			return out
		}
		if int(f.a)+1 == len(s) {
			return m.expand(out, f.parent)
		}
		return append(out, m.push(readLiteral, f.ref, f.a+1, 0, f.parent))
	case readDFA:
		to := m.numbers[f.ref].step(f.a, b)
		if to < 0 {
			return out
		}
		return m.expand(out, m.push(readDFA, f.ref, to, 0, f.parent))
	case readString:
		return m.moveString(out, f, b)
	}
	return out
}

// escNone is the prefix of an escape before its first byte.
const escNone = 0

// escapeBytes are all bytes of escapes after the backslash.
const escapeBytes = `"\bfnrtu0123456789abcdef`

// escapeStarts are the prefixes of escapes, by number.
var escapeStarts = []string{escNone: "", 1: `\`, `\u`, `\u0`, `\u00`, `\u000`, `\u001`}

type escaped struct {
	text string
	char byte
}

// escapes are the characters that JSON requires an escape for, each with its one spelling: the
// short escape or, without one, \u00 and two digits in lower case.
var escapes = func() (all []escaped) {
	for c := range byte('\\' + 1) {
		if text := jsondoc.Quote(nil, string(rune(c))); len(text) > len(`"x"`) {
			all = append(all, escaped{string(text[1 : len(text)-1]), c})
		}
	}
	return all
}()

// escapeAhead is the target of a byte after a prefix: the next prefix or, if negative, the end of
// the escape of char; 0: none.
var escapeAhead = func() (table [7][256]struct {
	next int32
	char byte
}) {
	for _, e := range escapes {
		for i := range len(e.text) {
			to := &table[slices.Index(escapeStarts, e.text[:i])][e.text[i]]
			to.next, to.char = int32(slices.Index(escapeStarts, e.text[:i+1])), e.char
		}
	}
	return table
}()

func (m *machine) moveString(out []int32, f frame, b byte) []int32 {
	s := m.strings[f.ref]
	pos := inString{f.a, f.b >> 4, f.b & 15}
	if b == '"' && pos.esc == escNone {
		if !s.closes(pos) {
			return out
		}
		return m.expand(out, f.parent)
	}
	pos, ok := s.read(pos, b)
	if !ok {
		return out
	}
	return append(out, m.push(readString, f.ref, pos.state, pos.count<<4|pos.esc, f.parent))
}

// escapeLives reports whether a character is allowed whose escape has the prefix esc.
func (s *String) escapeLives(pos inString, esc int32) bool {
	return slices.ContainsFunc(escapes, func(e escaped) bool {
		to := s.DFA().step(pos.state, e.char)
		return strings.HasPrefix(e.text, escapeStarts[esc]) && to >= 0 && s.fits(pos.count+1, to)
	})
}

// A hash table from frames to their numbers.
//
// Frame look-ups dominate the cost of a mask, so this is not a Go map. What must stay true: frame 0
// is the empty stack and is never looked up; frames are numbered in the order of the list.

// frameTable has frame numbers in slots by hash; 0: an empty slot.
type frameTable struct {
	slots []int32 // their number is a power of two; at least half are empty
	used  int
}

func (f frame) hash() uint64 {
	const odd = 0x9E3779B97F4A7C15 // the golden ratio in 64 bits
	h := uint64(uint32(f.ref))<<32 | uint64(uint32(f.parent))
	h = (h ^ h>>29) * odd
	h ^= uint64(uint32(f.a))<<32 | uint64(uint32(f.b)) ^ uint64(f.kind)<<56
	h = (h ^ h>>32) * odd
	return h ^ h>>29
}

func (t *frameTable) find(frames []frame, f frame) int32 {
	if len(t.slots) == 0 {
		return 0
	}
	for slot := f.hash(); ; slot++ {
		id := t.slots[slot&uint64(len(t.slots)-1)]
		if id == 0 || frames[id] == f {
			return id
		}
	}
}

// add inserts the last of the frames, which is new.
func (t *frameTable) add(frames []frame) {
	if t.used++; 2*t.used > len(t.slots) {
		t.slots = make([]int32, max(64, 2*len(t.slots)))
		for id := 1; id < len(frames); id++ {
			t.place(frames, int32(id))
		}
		return
	}
	t.place(frames, int32(len(frames)-1))
}

func (t *frameTable) place(frames []frame, id int32) {
	slot := frames[id].hash()
	for t.slots[slot&uint64(len(t.slots)-1)] != 0 {
		slot++
	}
	t.slots[slot&uint64(len(t.slots)-1)] = id
}

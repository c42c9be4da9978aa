// The lazily built automaton: a state is a set of open configurations. Its edges are computed when
// first followed, its mask when first requested. All bodies with the same grammar share everything,
// under one lock.

package automaton

import (
	"bytes"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
)

// Grammar restricts a body to a language: a schema, an expression, a choice of texts or a written
// grammar. Its methods are safe for concurrent use.
type Grammar struct {
	mu         sync.Mutex
	m          *machine
	states     []*state
	ids        map[string]int32
	first      []int32 // the set of state firstState
	tables     int     // states with edges
	masks      int     // cached masks
	age        int     // number of times that the states were dropped
	insides    map[insideKey]*inside
	visitStats map[*DFA]*visitStats
	tails      map[int32][]uint64 // see tailsAfter
}

// state is a set of configurations.
type state struct {
	open      []int32 // sorted
	done      bool    // the text may end here
	next      *[256]int32
	loops     uint64 // the kinds of bytes known to lead back here
	freeKinds uint64 // the kinds of bytes of which any text can follow, once visits is minVisits
	visits    uint8  // number of walks that reached it
	masks     []enderMask
}

type enderMask struct {
	ender int32
	mask  []uint64
}

const (
	unknown int32 = 0  // an edge not followed yet; state 0 is never reached again
	dead    int32 = -1 // an edge without a target
	// maxBytes bounds the memory of a grammar's states. A grammar with more than maxFrames frames
	// is not reused for new turns, so that its memory is freed.
	maxBytes   = 24 << 20
	maxFrames  = 1 << 18
	tableBytes = 1200
)

func New(p *Program, first Symbol) *Grammar {
	c := &Grammar{m: newMachine(p)}
	c.reset(c.m.configurations(c.m.push(first.kind, first.ref, 0, 0, emptyStack)))
	c.first = c.states[firstState].open
	return c
}

func (c *Grammar) reset(first []int32) {
	c.states, c.ids = []*state{{}}, map[string]int32{}
	c.insides, c.visitStats = map[insideKey]*inside{}, map[*DFA]*visitStats{}
	c.tails = map[int32][]uint64{}
	c.tables, c.masks = 0, 0
	c.add(first)
}

// boundMemory drops all states if they take too much memory. Bodies keep their configurations and
// continue.
func (c *Grammar) boundMemory() {
	if c.tables*tableBytes+c.masks*MaskWords*8 > maxBytes {
		c.age++
		c.reset(slices.Clone(c.first))
	}
}

// minVisits is how many walks must reach a state before it is worth computing what text can follow
// it.
const minVisits = 16

// firstState is the first state of every body.
const firstState int32 = 1

func (c *Grammar) add(open []int32) int32 {
	open = c.m.union(open)
	if len(open) == 0 {
		return dead
	}
	key := setKey(open)
	if id, ok := c.ids[key]; ok {
		return id
	}
	id := int32(len(c.states))
	c.ids[key] = id
	c.states = append(c.states, &state{open: open, done: open[0] == emptyStack})
	return id
}

// table makes the edges of a state: dead for the bytes that none of its configurations can read,
// which is most of them.
func (c *Grammar) table(open []int32) *[256]int32 {
	t := new([256]int32)
	for b := range t {
		t[b] = dead
	}
	for _, id := range open {
		if id == emptyStack {
			continue
		}
		switch f := c.m.frames[id]; {
		case f.kind == readLiteral:
			t[c.m.literals[f.ref][f.a]] = unknown
		case f.kind == readDFA:
			d := c.m.numbers[f.ref]
			for b := range t {
				if d.step(f.a, byte(b)) >= 0 {
					t[b] = unknown
				}
			}
		case f.b&15 == escNone:
			d := c.m.strings[f.ref].DFA()
			for b := 0x20; b < len(t); b++ {
				if d.step(f.a, byte(b)) >= 0 || b == '"' || b == '\\' {
					t[b] = unknown
				}
			}
		default:
			for _, b := range []byte(escapeBytes) {
				t[b] = unknown
			}
		}
	}
	return t
}

func (c *Grammar) step(from int32, b byte) int32 {
	s := c.states[from]
	if s.next == nil {
		s.next = c.table(s.open)
		c.tables++
	}
	if to := s.next[b]; to != unknown {
		return to
	}
	var buf [16]int32
	open := buf[:0]
	c.m.round++
	for _, id := range s.open {
		open = c.m.move(open, id, b)
	}
	to := c.add(slices.Clone(open))
	s.next[b] = to
	if len(s.open) == 1 && b >= 0x20 && b != '"' && b != '\\' {
		c.spread(s, b, to)
	}
	if to == from {
		s.findLoops(from)
	}
	return to
}

// findLoops records the kinds whose bytes are all known to lead back to the state, self.
func (s *state) findLoops(self int32) {
	for kind, bounds := range kindRanges {
		b := int(bounds[0])
		for b <= int(bounds[1]) && s.next[b] == self {
			b++
		}
		if b > int(bounds[1]) {
			s.loops |= 1 << kind
		}
	}
}

// spread copies the edge of b to all bytes that a string treats like b. Quotes, backslashes and
// controls have classes of their own.
func (c *Grammar) spread(s *state, b byte, to int32) {
	f := c.m.frames[s.open[0]]
	if f.kind != readString || f.b&15 != escNone {
		return
	}
	class := &c.m.strings[f.ref].DFA().class
	for x := range 256 {
		if class[x] == class[b] {
			s.next[x] = to
		}
	}
}

// Large reports whether the grammar is too large to be reused.
func (c *Grammar) Large() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.m.frames) > maxFrames
}

// Matcher begins a body.
func (c *Grammar) Matcher() *Matcher {
	return &Matcher{c: c, open: c.first, age: -1}
}

// Matcher is a position in a body. It belongs to one sequence.
type Matcher struct {
	c     *Grammar
	state int32   // the state, if the states are of that age
	open  []int32 // its configurations
	age   int
	text  written // for arrays with unique items
}

// lookUp finds the state again after the states were dropped. The lock must be held.
func (m *Matcher) lookUp() {
	if m.state != dead && m.age != m.c.age {
		m.state, m.age = m.c.add(slices.Clone(m.open)), m.c.age
	}
}

// Done reports whether the body may end here.
func (m *Matcher) Done() bool { return m.state >= 0 && m.open[0] == emptyStack }

// Accept consumes a token other than an ender, and reports whether the grammar allowed it.
func (m *Matcher) Accept(id int32) bool {
	if id < 0 || int(id) >= OrdinaryTokens {
		return false
	}
	return m.AcceptText(token.Get().TokenBytes(id))
}

// AcceptText consumes bytes, regardless of their tokenization.
func (m *Matcher) AcceptText(b []byte) bool {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.lookUp()
	for _, x := range b {
		if m.state < 0 {
			return false
		}
		if m.c.m.unique {
			p := m.c.advance(place{m.state, m.text}, x)
			m.state, m.text = p.state, p.written
		} else {
			m.state = m.c.step(m.state, x)
		}
	}
	if budget := maxTries; m.c.m.unique && !m.c.canContinue(place{m.state, m.text}, &budget) {
		m.state = dead
	}
	if m.state < 0 {
		return false
	}
	m.open = m.c.states[m.state].open
	return true
}

// Mask allows the next tokens, and ender if the body may end here. It allows at least one.
func (m *Matcher) Mask(ender int32) []uint64 {
	if m.state < 0 {
		return Only(ender) // after a disallowed token, which Accept has reported
	}
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boundMemory()
	m.lookUp()
	mask := c.mask(m.state, ender)
	if c.m.unique {
		return c.excludeRepeats(mask, place{m.state, m.text})
	}
	return mask
}

func (c *Grammar) mask(from, ender int32) []uint64 {
	s := c.states[from]
	for _, k := range s.masks {
		if k.ender == ender {
			return k.mask
		}
	}
	mask := c.textMask(from)
	if s.done {
		Allow(mask, ender)
	}
	c.masks++
	s.masks = append(s.masks, enderMask{ender, mask})
	return mask
}

// textMask makes the mask of a state, without enders. Each configuration accepts its tokens
// independently, so literals, strings and numbers are handled one by one, in faster ways.
func (c *Grammar) textMask(from int32) []uint64 {
	var rest []int32
	open := c.states[from].open
	mask := NewMask()
	for _, id := range open {
		switch f := c.m.frames[id]; {
		case id == emptyStack:
		case f.kind == readLiteral:
			c.allowLiteral(allTokens(), allTokens().roots, id, mask)
		case f.kind == readString && f.b&15 == escNone:
			c.allowString(mask, f)
		case f.kind == readDFA && c.m.numbers[f.ref].number:
			c.allowNumber(mask, id)
		case f.kind == readDFA && f.parent == emptyStack && len(open) > 1:
			c.walk(c.add([]int32{id}), mask)
		default:
			rest = append(rest, id)
		}
	}
	switch {
	case len(rest) == len(open):
		c.walk(from, mask)
	case len(rest) > 0:
		c.walk(c.add(rest), mask)
	}
	return mask
}

// walk adds the tokens that a state accepts. If the plain tokens or those of words are known
// without a walk, it only walks the trie of the others.
func (c *Grammar) walk(from int32, mask []uint64) {
	w := words()
	trie := allTokens()
	if plain, ok := c.plainMask(from); ok {
		allowAll(mask, plain)
		trie = &w.marked
	} else if room, all := c.wordRoom(from, len(w.wordy)-1); room > 0 {
		allowAll(mask, w.wordy[room])
		if all {
			trie = &w.rest
		}
	}
	c.allowTrie(trie, trie.roots, from, mask)
}

// allowLiteral allows the tokens below part of a trie that a literal and its continuation accept.
func (c *Grammar) allowLiteral(t *trie, part kids, id int32, mask []uint64) {
	f := c.m.frames[id]
	text := c.m.literals[f.ref]
	for i := int(f.a); i < len(text); i++ {
		child := bytes.IndexByte(t.edges[part.begin:part.end], text[i])
		if child < 0 {
			return
		}
		child += int(part.begin)
		n := &t.nodes[child]
		if n.isToken {
			Allow(mask, t.order[t.first[child]])
		}
		part = n.below
	}
	if part.begin < part.end {
		c.allowAny(t, part, c.m.configurations(f.parent), mask)
	}
}

// allowAny allows the tokens below part of a trie that at least one configuration accepts.
func (c *Grammar) allowAny(t *trie, part kids, open []int32, mask []uint64) {
	var rest []int32
	for _, id := range open {
		switch {
		case id == emptyStack:
		case c.m.frames[id].kind == readLiteral:
			c.allowLiteral(t, part, id, mask)
		default:
			rest = append(rest, id)
		}
	}
	if len(rest) > 0 {
		c.allowTrie(t, part, c.add(rest), mask)
	}
}

// allowTrie allows the tokens below part of a trie that a state accepts.
func (c *Grammar) allowTrie(t *trie, part kids, from int32, mask []uint64) {
	s := c.states[from]
	for i := part.begin; i < part.end; i++ {
		to, edge := unknown, t.edges[i]
		if s.next != nil {
			to = s.next[edge]
		}
		if to == unknown {
			to = c.step(from, edge)
		}
		if to < 0 {
			continue
		}
		target := c.states[to]
		if target.visits < minVisits {
			if target.visits++; target.visits == minVisits {
				target.freeKinds = c.freeKinds(to)
			}
		}
		n := &t.nodes[i]
		if n.kinds&^target.loops == 0 || n.kinds&^target.freeKinds == 0 {
			t.allow(mask, i, n.last)
			continue
		}
		if n.isToken {
			Allow(mask, t.order[t.first[i]])
		}
		if n.below.begin < n.below.end {
			c.allowTrie(t, n.below, to, mask)
		}
	}
}

// wordRoom is how many bytes, up to most, may follow if each is any of wordBytes. all: no longer
// text of wordBytes can follow.
func (c *Grammar) wordRoom(from int32, most int) (room int, all bool) {
	for state := from; room < most; room++ {
		to := c.step(state, wordBytes[0])
		if to < 0 && room == 0 {
			return 0, false // most states: they accept no text of wordBytes
		}
		for i := range len(wordBytes) {
			if c.step(state, wordBytes[i]) != to {
				return room, false
			}
		}
		if to < 0 {
			return room, true
		}
		if to == state {
			return most, true
		}
		state = to
	}
	return most, true
}

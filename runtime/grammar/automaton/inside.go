// Masks of JSON strings and numbers. A token's effect inside a string depends on the string alone;
// what may follow its closing quote depends only on what follows the string. Both parts are
// computed and cached separately; the first needs no states of the grammar.
//
// What must stay true: a mask made of parts allows the same tokens as a walk byte by byte.

package automaton

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
)

// head is the part of some tokens inside a string: a text with a backslash, or one before a closing
// quote.
type head struct {
	open   int32 // the token that is only that text, or -1
	closed []closed
}

// closed is a token with a closing quote; tail is the number of the text after the quote.
type closed struct{ id, tail int32 }

// stringVocabulary is the tokens by their form inside a string.
type stringVocabulary struct {
	bare     trie // no quote, backslash or control
	bareMask []uint64
	ragged   trie     // of bare, those that are not complete characters
	cut      []uint64 // of bare, those that are text except for a truncated last character
	heads    trie     // the texts of headed, without the empty one, which is number 0
	headed   []head
	tails    trie // the texts after closing quotes, likewise
	// tokens of numberBytes only, and tokens that begin with some of them and continue with others
	numeric, mixed trie
}

// numberBytes are all bytes of numbers.
const numberBytes = "0123456789+-.eE"

func newStringVocabulary(ids []int32) *stringVocabulary {
	t := token.Get()
	v := &stringVocabulary{cut: NewMask(), headed: []head{{open: -1}}}
	var bare, ragged, numeric, mixed []int32
	headOf, tailOf := map[string]int32{"": 0}, map[string]int32{"": 0}
	heads, tails := []string{""}, []string{""}
	any := &String{Make: AnyText, Max: -1}
	for _, id := range ids {
		b := t.TokenBytes(id)
		switch rest := bytes.TrimLeft(b, numberBytes); {
		case len(rest) == 0:
			numeric = append(numeric, id)
		case len(rest) < len(b) && b[len(b)-len(rest)-1] >= '0' && b[len(b)-len(rest)-1] <= '9':
			mixed = append(mixed, id)
		}
		closing := closingQuote(b)
		text := b
		if closing >= 0 {
			text = b[:closing]
		}
		if bytes.ContainsFunc(text, func(r rune) bool { return r < 0x20 }) {
			continue
		}
		if closing < 0 && bytes.IndexByte(b, '\\') < 0 {
			if bare = append(bare, id); !utf8.Valid(b) {
				ragged = append(ragged, id)
				if any.takesToken(inString{}, id) {
					Allow(v.cut, id)
				}
			}
			continue
		}
		pos, accepted := any.readAll(inString{}, text)
		if utf8.Valid(text) && (!accepted || closing >= 0 && !any.closes(pos)) {
			continue // an invalid escape
		}
		n := intern(headOf, &heads, string(text))
		if int(n) == len(v.headed) {
			v.headed = append(v.headed, head{open: -1})
		}
		if h := &v.headed[n]; closing < 0 {
			h.open = id
		} else {
			tail := intern(tailOf, &tails, string(b[closing+1:]))
			h.closed = append(h.closed, closed{id, tail})
		}
	}
	v.bare, v.bareMask, v.ragged = newTrie(bare), Only(bare...), newTrie(ragged)
	v.numeric, v.mixed = newTrie(numeric), newTrie(mixed)
	v.heads, v.tails = trieOfTexts(heads), trieOfTexts(tails)
	return v
}

// trieOfTexts lays out all texts except the first, which is empty.
func trieOfTexts(texts []string) trie {
	var numbers []int32
	for n := 1; n < len(texts); n++ {
		numbers = append(numbers, int32(n))
	}
	slices.SortFunc(numbers, func(a, b int32) int { return strings.Compare(texts[a], texts[b]) })
	return trieOf(numbers, func(n int32) []byte { return []byte(texts[n]) })
}

// closingQuote is the index of a token's quote that ends a string, or -1.
func closingQuote(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// inString is a position in a string.
type inString struct{ state, count, esc int32 }

// read consumes a byte other than the closing quote. Every character has one spelling: itself or,
// if JSON requires one, its escape.
func (s *String) read(pos inString, b byte) (inString, bool) {
	d := s.DFA()
	// char consumes the byte c of content, which begins a character or continues one.
	char := func(c byte) (inString, bool) {
		to := d.step(pos.state, c)
		if to < 0 {
			return pos, false
		}
		n := pos.count
		if utf8.RuneStart(c) && (s.Max >= 0 || int(n) < s.Min) {
			n++
		}
		return inString{to, n, escNone}, s.fits(n, to)
	}
	if pos.esc == escNone && b != '\\' {
		if b < 0x20 {
			return pos, false
		}
		return char(b)
	}
	switch to := escapeAhead[pos.esc][b]; {
	case to.next < 0:
		return char(to.char)
	case to.next > 0:
		return inString{pos.state, pos.count, to.next}, s.escapeLives(pos, to.next)
	}
	return pos, false
}

func (s *String) readAll(pos inString, text []byte) (to inString, ok bool) {
	for _, b := range text {
		if pos, ok = s.read(pos, b); !ok {
			return pos, false
		}
	}
	return pos, true
}

func (s *String) closes(pos inString) bool {
	return pos.esc == escNone && s.DFA().accept[pos.state] && int(pos.count) >= s.Min
}

// inside is the tokens that are allowed at a position in a string.
type inside struct {
	mask  []uint64 // the tokens without a closing quote
	heads []int32  // the heads that a closing quote may follow
}

// insideKey identifies positions: the state, and how many characters must and may follow (-1: more
// than a token has).
type insideKey struct {
	d          *DFA
	state      int32
	need, room int
}

// newInside computes the tokens for a position, independent of what follows the string.
func (c *Grammar) newInside(s *String, from inString) *inside {
	longest := len(words().plain) - 1
	room := s.room(from.count, longest)
	var mask []uint64
	if room == longest || s.ends == nil {
		mask = c.insidePlain(s, from, room)
	} else {
		mask = c.insideShort(s, from, max(0, room), min(longest, s.Max-int(from.count)))
	}
	if mask == nil {
		mask = NewMask()
		c.walkInside(s, &words().strings.bare, from, mask)
	}
	return c.insideHeads(s, from, &inside{mask: mask})
}

// insideHeads adds the tokens with a quote or a backslash to in.
func (c *Grammar) insideHeads(s *String, from inString, in *inside) *inside {
	v, free := words().strings, s.DFA().free
	add := func(n int32, closes bool) {
		h := &v.headed[n]
		if h.open >= 0 {
			Allow(in.mask, h.open)
		}
		if closes && len(h.closed) > 0 {
			in.heads = append(in.heads, n)
		}
	}
	var follow func(k kids, pos inString)
	follow = func(k kids, pos inString) {
		for i := k.begin; i < k.end; i++ {
			to, ok := s.read(pos, v.heads.edges[i])
			n := &v.heads.nodes[i]
			switch {
			case !ok:
			case free[to.state] && s.Max < 0 && int(to.count) >= s.Min && n.kinds&ragged == 0:
				for _, h := range v.heads.order[v.heads.first[i]:n.last] {
					add(h, true)
				}
			default:
				if n.isToken {
					add(v.heads.order[v.heads.first[i]], s.closes(to))
				}
				follow(n.below, to)
			}
		}
	}
	add(0, s.closes(from))
	follow(v.heads.roots, from)
	return in
}

// insidePlain is the mask if the plain tokens are known without a walk, else nil.
func (c *Grammar) insidePlain(s *String, from inString, room int) []uint64 {
	mask, ok := plainOf(s.DFA(), from.state, room,
		func(id int32) bool { return s.takesToken(from, id) })
	switch v := words().strings; {
	case !ok:
		return nil
	case s.DFA().total[from.state] && room == len(words().plain)-1:
		allowAll(mask, v.cut)
	default:
		c.walkInside(s, &v.ragged, from, mask)
	}
	return mask
}

func (s *String) takesToken(pos inString, id int32) bool {
	_, ok := s.readAll(pos, token.Get().TokenBytes(id))
	return ok
}

// insideShort is the mask of a position that up to most characters can follow. Tokens of up to room
// characters are allowed if the automaton accepts them; only longer ones are checked one by one.
func (c *Grammar) insideShort(s *String, from inString, room, most int) []uint64 {
	w := words()
	mask := NewMask()
	unbounded := c.insideOf(&String{Text: s.DFA(), Max: -1}, from.state, 0, nil).mask
	for i, word := range unbounded {
		mask[i] = word & w.plain[most][i]
		for open := mask[i] &^ w.plain[room][i]; open != 0; open &= open - 1 {
			if id := int32(i*64 + bits.TrailingZeros64(open)); !s.takesToken(from, id) {
				mask[id>>6] &^= 1 << (id & 63)
			}
		}
	}
	c.walkInside(s, &w.strings.ragged, from, mask)
	return mask
}

// visitStats caches by state how often walks reached it and, once that count is minVisits, the
// kinds of bytes of which any text can follow.
type visitStats struct {
	visits    []uint8
	freeKinds []uint64
}

func (c *Grammar) visitStatsOf(d *DFA) *visitStats {
	k := c.visitStats[d]
	if k == nil {
		k = &visitStats{make([]uint8, len(d.accept)), make([]uint64, len(d.accept))}
		c.visitStats[d] = k
	}
	return k
}

// walkInside allows the tokens of a trie that are allowed inside the string. They have no escapes.
func (c *Grammar) walkInside(s *String, t *trie, from inString, mask []uint64) {
	d := s.DFA()
	cached := c.visitStatsOf(d)
	visits, freeKinds, safe := cached.visits, cached.freeKinds, d.safe
	if safe == nil { // an automaton of numbers
		safe = make([]uint8, len(d.accept))
	}
	var stack [longestToken + 1]struct {
		state, count int32
		rest         kids
		last         int32 // end of the tokens of kids
	}
	depth := 0
	stack[0].state, stack[0].count, stack[0].rest = from.state, from.count, t.roots
	stack[0].last = int32(len(t.order))
	for {
		top := &stack[depth]
		if top.rest.begin == top.rest.end {
			if depth--; depth < 0 {
				return
			}
			continue
		}
		i := top.rest.begin
		top.rest.begin++
		edge := t.edges[i]
		to := d.step(top.state, edge)
		count := top.count
		if utf8.RuneStart(edge) && s.Max >= 0 {
			count++
		}
		if to < 0 || !s.fits(count, to) {
			continue
		}
		if visits[to] < minVisits {
			if visits[to]++; visits[to] == minVisits {
				freeKinds[to] = freeKindsOf(d, to)
			}
		}
		if s.Max < 0 && t.depths[i] <= safe[to] {
			last := top.last
			if i+1 < top.rest.end {
				last = t.first[i+1]
			}
			t.allow(mask, i, last)
			continue
		}
		n := &t.nodes[i]
		if s.Max < 0 && n.kinds&^freeKinds[to] == 0 {
			t.allow(mask, i, n.last)
			continue
		}
		if n.isToken {
			Allow(mask, t.order[t.first[i]])
		}
		if n.below.begin < n.below.end {
			depth++
			below := &stack[depth]
			below.state, below.count, below.rest, below.last = to, count, n.below, n.last
		}
	}
}

// anyInside is the tokens that are allowed in a string without keywords.
var anyInside = sync.OnceValue(func() *inside {
	s := &String{Make: AnyText, Max: -1}
	c := &Grammar{}
	in := &inside{mask: c.insidePlain(s, inString{}, len(words().plain)-1)}
	return c.insideHeads(s, inString{}, in)
})

// insideOf returns the possibly cached tokens for a position between characters. It may omit the
// tokens in covered, which may be nil.
func (c *Grammar) insideOf(s *String, state, count int32, covered []uint64) *inside {
	key := insideKey{s.DFA(), state, max(0, s.Min-int(count)), -1}
	if s.room(count, longestToken) < longestToken {
		key.room = s.Max - int(count)
	}
	if key.d.free[state] && key.need == 0 && key.room < 0 {
		return anyInside()
	}
	in := c.insides[key]
	if in == nil {
		alike := String{Text: key.d, Min: key.need, Max: key.room, ends: s.ends,
			slack: s.slack}
		if uncovered, ok := uncoveredBare(covered); ok {
			in = &inside{mask: NewMask()}
			for _, id := range uncovered {
				if alike.takesToken(inString{state: state}, id) {
					Allow(in.mask, id)
				}
			}
			return c.insideHeads(&alike, inString{state: state}, in)
		}
		in = c.newInside(&alike, inString{state: state})
		c.keep(key, in)
	}
	return in
}

func (c *Grammar) keep(key insideKey, in *inside) {
	c.insides[key] = in
	c.masks++
}

// uncoveredBare are the tokens without quotes and backslashes that are not in covered; false if
// they are too many to check one by one.
func uncoveredBare(covered []uint64) (uncovered []int32, ok bool) {
	if covered == nil {
		return nil, false
	}
	bare, n := words().strings.bareMask, 0
	for i, word := range bare {
		n += bits.OnesCount64(word &^ covered[i])
	}
	if n > maxLeaving {
		return nil, false
	}
	for i, word := range bare {
		for word &^= covered[i]; word != 0; word &= word - 1 {
			uncovered = append(uncovered, int32(i*64+bits.TrailingZeros64(word)))
		}
	}
	return uncovered, true
}

// tailsAfter is the set of tails that can follow a string, as bits; parent is the stack below it.
func (c *Grammar) tailsAfter(parent int32) []uint64 {
	set := c.tails[parent]
	if set == nil {
		t := &words().strings.tails
		set = make([]uint64, (len(t.order)+64)/64)
		Allow(set, 0)
		c.allowAny(t, t.roots, c.m.configurations(parent), set)
		c.tails[parent] = set
	}
	return set
}

func (c *Grammar) allowString(mask []uint64, f frame) {
	in := c.insideOf(c.m.strings[f.ref], f.a, f.b>>4, mask)
	allowAll(mask, in.mask)
	if len(in.heads) == 0 {
		return
	}
	tails := c.tailsAfter(f.parent)
	for _, n := range in.heads {
		for _, t := range words().strings.headed[n].closed {
			if Allows(tails, t.tail) {
				Allow(mask, t.id)
			}
		}
	}
}

// allowNumber adds the tokens of a position in a number. What follows it is another configuration.
func (c *Grammar) allowNumber(mask []uint64, id int32) {
	f := c.m.frames[id]
	d := c.m.numbers[f.ref]
	key := insideKey{d: d, state: f.a}
	in := c.insides[key]
	if in == nil {
		in = &inside{mask: NewMask()}
		s := &String{Text: d, Max: -1}
		c.walkInside(s, &words().strings.numeric, inString{state: f.a}, in.mask)
		c.keep(key, in)
	}
	allowAll(mask, in.mask)
	if mixed := &words().strings.mixed; len(mixed.nodes) > 0 {
		c.allowTrie(mixed, mixed.roots, c.add([]int32{id}), mask)
	}
}

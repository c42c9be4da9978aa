// Masks of strings that accept nearly any text: patterns such as ^[^<>]*$ or ^foo.*bar$.
//
// Walking the whole trie for them would take milliseconds, although little changes from one
// character to the next: the states that text leads to accept the same characters as the first.
// Such states are a region, and three classes of characters are enough to describe plain text in
// it: those that stay in it, those that are dead in all of it, and those that leave it. A plain
// token is then allowed if all its characters stay, refused if one is dead and none leaves, and
// only those with one that leaves are checked byte by byte.

package automaton

import (
	"maps"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
)

// maxLeaving bounds the tokens that are checked byte by byte: beyond it a walk is cheaper.
const maxLeaving = 1 << 12

// isPlain marks the ASCII characters that are plain text.
var isPlain = func() (plain [utf8.RuneSelf]bool) {
	for b := range plain {
		plain[b] = plainText([]byte{byte(b)})
	}
	return plain
}()

// plainKinds is the kinds of the bytes of plain text.
var plainKinds = textKinds(func(uint8, uint8) bool { return true })

// alphabet is the plain tokens by their characters.
type alphabet struct {
	// by character of ASCII: the tokens that contain it, nil for one that is not plain
	byASCII     [utf8.RuneSelf][]uint64
	wide        []uint64      // the tokens that contain a character beyond ASCII
	byFirstByte [256][]uint64 // those that contain one with that first byte; nil for none
	// the characters beyond ASCII, grouped by all bytes but the last
	beyond []siblings
}

// siblings are characters that differ in their last byte.
type siblings struct {
	head []byte // all bytes but the last
	last []byte
	in   [][]int32 // the tokens that contain the character with that last byte
}

// newAlphabet sorts plain tokens by their characters.
func newAlphabet(plain []int32) *alphabet {
	t := token.Get()
	c := &alphabet{wide: NewMask()}
	for b := range c.byASCII {
		if isPlain[b] {
			c.byASCII[b] = NewMask()
		}
	}
	in := map[rune][]int32{}
	for _, id := range plain {
		for _, r := range string(t.TokenBytes(id)) {
			if r < utf8.RuneSelf {
				Allow(c.byASCII[r], id)
				continue
			}
			lead := utf8.AppendRune(nil, r)[0]
			if c.byFirstByte[lead] == nil {
				c.byFirstByte[lead] = NewMask()
			}
			Allow(c.wide, id)
			Allow(c.byFirstByte[lead], id)
			if have := in[r]; len(have) == 0 || have[len(have)-1] != id {
				in[r] = append(have, id)
			}
		}
	}
	for _, r := range slices.Sorted(maps.Keys(in)) {
		b := utf8.AppendRune(nil, r)
		head, last := b[:len(b)-1], b[len(b)-1]
		if n := len(c.beyond); n == 0 || string(c.beyond[n-1].head) != string(head) {
			c.beyond = append(c.beyond, siblings{head: head})
		}
		s := &c.beyond[len(c.beyond)-1]
		s.last, s.in = append(s.last, last), append(s.in, in[r])
	}
	return c
}

// sort removes the plain tokens that a region refuses from mask, and returns those that must be
// checked byte by byte.
func (r *region) sort(c *alphabet, mask []uint64) (open []uint64) {
	open = NewMask()
	for b, set := range c.byASCII {
		switch {
		case !isPlain[b]:
		case r.exits[r.d.class[b]]:
			allowAll(open, set)
		case r.d.step(r.states[0], byte(b)) < 0:
			without(mask, set)
		}
	}
	switch shape := r.shape(r.states[0], 0); {
	case ones(open) > maxLeaving: // too many already
		return open
	case r.narrow[shape]:
		without(mask, c.wide)
	case r.wide || !r.complete[shape]:
		r.sortWide(c, mask, open)
	}
	without(mask, open) // a token may leave the region before its dead character
	return open
}

// sortWide does the same for the characters beyond ASCII, one by one.
func (r *region) sortWide(c *alphabet, mask, open []uint64) {
	states := r.states
	if !r.wide { // all states accept the same characters, and none leaves
		states = states[:1]
	}
	heads := make([]int32, len(states))
	var lead byte
	uniform := false
	for i := range c.beyond {
		s := &c.beyond[i]
		if s.head[0] != lead { // mostly all characters with one first byte are of one kind
			lead = s.head[0]
			u, _ := utf8Step(0, lead)
			shape := r.shape(r.d.step(r.states[0], lead), u)
			if uniform = shape == noShape; uniform {
				without(mask, c.byFirstByte[lead])
			}
			uniform = uniform || r.complete[shape] && !r.wide
		}
		if uniform {
			continue
		}
		for k, state := range states {
			for _, b := range s.head {
				if state >= 0 {
					state = r.d.step(state, b)
				}
			}
			heads[k] = state
		}
		for k, last := range s.last {
			stay, dead := 0, 0
			for _, state := range heads {
				if state >= 0 {
					state = r.d.step(state, last)
				}
				switch {
				case state < 0:
					dead++
				case !r.wide || r.inside[state]:
					stay++
				}
			}
			if stay == len(heads) {
				continue
			}
			for _, id := range s.in[k] {
				if dead == len(heads) {
					mask[id>>6] &^= 1 << (id & 63)
				} else {
					Allow(open, id)
				}
			}
		}
	}
}

// textOf returns the automaton of a state that only reads text, the state in it, and the maximum
// number of characters; nil if the state reads anything else.
func (c *Grammar) textOf(from int32, most int) (d *DFA, state int32, room int) {
	open := c.states[from].open
	if len(open) > 1 || open[0] == emptyStack {
		return nil, 0, 0
	}
	room = most
	f := c.m.frames[open[0]]
	switch {
	case f.kind == readString && f.b&15 == escNone:
		s := c.m.strings[f.ref]
		d = s.DFA()
		if room = s.room(f.b>>4, most); room < most && s.ends != nil {
			return nil, 0, 0
		}
	case f.kind == readDFA && f.parent == emptyStack:
		d = c.m.numbers[f.ref]
	}
	if d == nil || d.total == nil {
		return nil, 0, 0
	}
	return d, f.a, room
}

// plainMask is the plain tokens that a state accepts; false if it does not read text, or text of
// too many kinds.
func (c *Grammar) plainMask(from int32) ([]uint64, bool) {
	d, state, room := c.textOf(from, len(words().plain)-1)
	if d == nil {
		return nil, false
	}
	return plainOf(d, state, room, func(id int32) bool { return c.takesToken(from, id) })
}

// plainOf is the plain tokens of at most room characters that a state of an automaton accepts;
// takes checks one token byte by byte.
func plainOf(d *DFA, state int32, room int, takes func(int32) bool) ([]uint64, bool) {
	w := words()
	longest := len(w.plain) - 1
	if d.total[state] {
		return slices.Clone(w.plain[room]), true
	}
	r, ok := regionOf(d.shapes, state, maxRegion)
	if !ok || r.wide && len(r.states) > maxWide {
		return nil, false
	}
	if r.room >= 0 {
		room = min(room, r.room)
	}
	mask := slices.Clone(w.plain[room])
	open := r.sort(w.alphabet, mask)
	if r.room >= 0 && !r.exact {
		for i, word := range w.plain[longest] {
			open[i] |= word &^ w.plain[room][i]
		}
	}
	if ones(open) > maxLeaving {
		return nil, false
	}
	for i, word := range open {
		for ; word != 0; word &= word - 1 {
			if id := int32(i*64 + bits.TrailingZeros64(word)); takes(id) {
				Allow(mask, id)
			}
		}
	}
	return mask, true
}

// freeKinds is the kinds of bytes of which a text of any length can follow a state; 0 if unknown.
func (c *Grammar) freeKinds(id int32) uint64 {
	d, from, room := c.textOf(id, longestToken)
	if d == nil || room < longestToken {
		return 0
	}
	return freeKindsOf(d, from)
}

func freeKindsOf(d *DFA, from int32) uint64 {
	if d.shapes == nil {
		return 0
	}
	if d.total[from] {
		return plainKinds
	}
	kinds := d.shapes.loops(from)
	if r, ok := regionOf(d.shapes, from, maxStaying); ok {
		if inner := r.freeKinds(); bits.OnesCount64(inner) > bits.OnesCount64(kinds) {
			kinds = inner
		}
	}
	return kinds
}

func (c *Grammar) takesToken(state, id int32) bool {
	for _, b := range token.Get().TokenBytes(id) {
		if state = c.step(state, b); state < 0 {
			return false
		}
	}
	return true
}

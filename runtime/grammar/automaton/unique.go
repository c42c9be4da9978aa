// Arrays with unique items. An automaton cannot remember texts, so each body stores the items of
// its open arrays separately: repeating an item ends the stacks that forbid that, and tokens
// without a remaining way to end are removed from the mask.
//
// What must stay true: from any position of a body, each open array can have another item or end.

package automaton

import (
	"bytes"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
)

// written is a body's memory of its text: the open containers, and the text from the first one with
// unique items. It is immutable: a step makes another.
type written struct {
	text   string
	open   []container
	unique int  // number of containers with unique items
	quoted bool // inside a string
	escape bool // after a backslash
}

// container is an open container. If its items must be unique: the start of the current item, the
// earlier items as written, and their equality keys.
type container struct {
	unique bool
	start  int
	items  []string
	equal  map[string]bool
}

// equality is a text that equal JSON values share.
func equality(item string) string {
	if item[0] == '"' { // strings have one spelling
		return item
	}
	d, err := jsondoc.Parse([]byte(item), jsondoc.Lenient)
	if err != nil {
		return item
	}
	return string(d.Append(nil, jsondoc.Spelling{Sorted: true, Number: func(text string) string {
		if r, ok := new(big.Rat).SetString(text); ok && strings.ContainsAny(text, ".eE") {
			return r.RatString()
		}
		return text
	}}))
}

func (c *container) repeats(text string) bool {
	return c.unique && len(c.items) > 0 && c.start < len(text) && c.equal[equality(text[c.start:])]
}

// next is the memory after a byte. unique: it opens an array with unique items. ends: an item ends
// with it; the others end before a comma or a bracket.
func (w written) next(b byte, unique bool) (to written, ends bool) {
	if unique {
		w.unique++
	}
	if w.unique > 0 {
		w.text += string([]byte{b})
	}
	top := len(w.open) - 1
	switch {
	case w.escape:
		w.escape = false
	case w.quoted:
		w.escape, w.quoted = b == '\\', b != '"'
		return w, !w.quoted
	case b == '"':
		w.quoted = true
	case b == '[' || b == '{':
		w.open = append(slices.Clip(w.open), container{unique: unique, start: len(w.text)})
	case b == ']' || b == '}':
		if top >= 0 && w.open[top].unique {
			w.unique--
		}
		if w.open = w.open[:max(top, 0)]; w.unique == 0 {
			w.text = ""
		}
		return w, true
	case b == ',' && top >= 0 && w.open[top].unique:
		w.open = slices.Clone(w.open)
		c := &w.open[top]
		item := w.text[c.start : len(w.text)-1]
		equal := map[string]bool{equality(item): true}
		for e := range c.equal {
			equal[e] = true
		}
		c.items, c.equal, c.start = append(slices.Clip(c.items), item), equal, len(w.text)
	}
	return w, false
}

// without is a stack without those of its stacks that are in an array with unique items at a depth;
// -1 if none remains.
func (m *machine) without(id int32, depth int) int32 {
	if f := m.frames[id]; f.kind == readLiteral && f.b == 1 && int(m.depth[id])+1 == depth {
		return -1
	}
	if id == emptyStack || int(m.depth[id]) < depth {
		return id
	}
	key := [2]int32{id, int32(depth)}
	to, ok := m.withouts[key]
	if ok {
		return to
	}
	f := m.frames[id]
	switch {
	case f.kind == planItems && int(m.depth[id]) == depth:
		if to = id; m.arrays[f.ref].Unique {
			to = -1
		}
	case f.kind == planUnion:
		var remaining []int32
		for _, open := range m.unions[f.ref] {
			if open = m.without(open, depth); open >= 0 {
				remaining = append(remaining, open)
			}
		}
		if to = -1; slices.Equal(remaining, m.unions[f.ref]) {
			to = id
		} else if len(remaining) > 0 {
			to = m.under(m.union(remaining))
		}
	default:
		if to = m.without(f.parent, depth); to == f.parent {
			to = id
		} else if to >= 0 {
			to = m.push(f.kind, f.ref, f.a, f.b, to)
		}
	}
	m.withouts[key] = to
	return to
}

// place is a state with the body's memory.
type place struct {
	state int32
	written
}

// advance is the place after a byte; its state is dead if the byte is not allowed.
func (c *Grammar) advance(p place, b byte) place {
	top := len(p.open) - 1
	if (b == ',' || b == ']') && !p.quoted && top >= 0 && p.open[top].repeats(p.text) {
		p.state = c.withoutRepeats(p.state, top+1)
	}
	if p.state >= 0 {
		p.state = c.step(p.state, b)
	}
	if p.state < 0 {
		return p
	}
	var ends bool
	p.written, ends = p.next(b, b == '[' && !p.quoted && c.isUnique(p.state, len(p.open)+1))
	if top = len(p.open) - 1; ends && top >= 0 && p.open[top].repeats(p.text) {
		p.state = c.withoutRepeats(p.state, top+1)
	}
	return p
}

// withoutRepeats is a state without the stacks that forbid a repeated item at a depth.
func (c *Grammar) withoutRepeats(from int32, depth int) int32 {
	var remaining []int32
	for _, id := range c.states[from].open {
		if to := c.m.without(id, depth); to >= 0 {
			remaining = append(remaining, to)
		}
	}
	return c.add(remaining)
}

// maxTries bounds the search for a way out, in tried bytes.
const maxTries = 1 << 14

// canContinue reports whether a place leads to one where no current item is a prefix of an earlier
// one in the same array.
func (c *Grammar) canContinue(p place, budget *int) bool {
	if p.state < 0 {
		return false
	}
	if !c.mayRepeat(p) || c.canDeviate(p) {
		return true
	}
	if rests, all := c.unusedValues(p); all { // the search would try all that are used
		return len(rests) > 0
	}
	// shortest ways first, so that the search does not loop
	type way struct {
		place
		distance int32
	}
	var ways []way
	for b := range 256 {
		if c.step(p.state, byte(b)) < 0 {
			continue
		}
		if *budget--; *budget < 0 {
			return false
		}
		if to := c.advance(p, byte(b)); to.state >= 0 {
			if !c.mayRepeat(to) {
				return true
			}
			ways = append(ways, way{to, c.nearest(to.state)})
		}
	}
	slices.SortStableFunc(ways, func(a, b way) int { return int(a.distance - b.distance) })
	return slices.ContainsFunc(ways, func(w way) bool { return c.canContinue(w.place, budget) })
}

// canDeviate reports whether a string can continue with a character that no earlier item has there.
// It misses some ways.
func (c *Grammar) canDeviate(p place) bool {
	last := len(p.open) - 1
	if !p.quoted || p.escape || !p.open[last].unique || p.unique > 1 {
		return false
	}
	item := p.text[p.open[last].start:]
	used := [256]bool{'"': true, '\\': true}
	for _, earlier := range p.open[last].items {
		if len(earlier) > len(item) && earlier[:len(item)] == item {
			used[earlier[len(item)]] = true
		}
	}
	for b := range 256 {
		if !used[b] && c.step(p.state, byte(b)) >= 0 {
			return true
		}
	}
	return false
}

// unusedValues are the continuations, sorted, to a listed value that is not among the items; all:
// no other values are possible.
func (c *Grammar) unusedValues(p place) (out []string, all bool) {
	last := len(p.open) - 1
	if last < 0 || !p.open[last].unique || p.unique > 1 {
		return nil, false
	}
	o := &p.open[last]
	item := p.text[o.start:]
	for _, id := range c.states[p.state].open {
		f := c.m.frames[id]
		if f.kind != readLiteral {
			return nil, false
		}
		value := c.m.literals[f.ref]
		if value[:f.a] != item || value == "," || value == "]" { // a separator
			return nil, false
		}
		if !o.equal[equality(value)] {
			out = append(out, value[f.a:])
		}
	}
	slices.Sort(out)
	return out, len(c.states[p.state].open) > 0
}

// mayRepeat reports whether an item is a prefix of an earlier one, or is a number that equals one
// and may continue.
func (c *Grammar) mayRepeat(p place) bool {
	for i := range p.open {
		o := &p.open[i]
		if !o.unique || len(o.items) == 0 || !c.isUnique(p.state, i+1) {
			continue
		}
		item := p.text[o.start:]
		begins := func(s string) bool { return strings.HasPrefix(s, item) }
		if slices.ContainsFunc(o.items, begins) || i == len(p.open)-1 && o.repeats(p.text) {
			return true
		}
	}
	return false
}

// isUnique reports whether a stack of a state forbids repeated items at a depth.
func (c *Grammar) isUnique(from int32, depth int) bool {
	return slices.ContainsFunc(c.states[from].open,
		func(id int32) bool { return c.m.without(id, depth) != id })
}

// enders are the tokens that can end an item: inside a string those with a quote; elsewhere those
// with two, with a bracket or a comma, and those of numbers and words. Without such an open array:
// those with a complete one.
var enders = sync.OnceValue(func() [3][]uint64 {
	all := [3][]uint64{NewMask(), NewMask(), NewMask()}
	for id := range int32(OrdinaryTokens) {
		text := string(token.Get().TokenBytes(id))
		quotes := strings.Count(text, `"`)
		if quotes > 0 {
			Allow(all[0], id)
		}
		if quotes > 1 || strings.ContainsAny(text, "]},") ||
			strings.Trim(text, "-+.0123456789aeEflnrstu") == "" {
			Allow(all[1], id)
		}
		if strings.Contains(text, "[") && strings.Contains(text, ",") {
			Allow(all[2], id)
		}
	}
	return all
})

// excludeRepeats is a mask without the tokens after which an item would repeat another, or could
// only do so.
func (c *Grammar) excludeRepeats(mask []uint64, p place) []uint64 {
	kind, suspects := 2, NewMask()
	for i := range p.open {
		o := &p.open[i]
		if !o.unique || !c.isUnique(p.state, i+1) {
			continue
		}
		if kind = 0; !p.quoted {
			kind = 1
		}
		for _, earlier := range o.items { // continuations like an earlier item
			if rest, ok := strings.CutPrefix(earlier, p.text[o.start:]); ok {
				addPrefixes(rest, suspects)
			}
		}
	}
	var out []uint64
	unused, _ := c.unusedValues(p)
	for i, ends := range enders()[kind] {
		for w := (suspects[i] | ends) & mask[i]; w != 0; w &= w - 1 {
			id, to, budget := int32(i*64+bits.TrailingZeros64(w)), p, maxTries
			text := token.Get().TokenBytes(id)
			k, _ := slices.BinarySearch(unused, string(text))
			if k < len(unused) && len(unused[k]) > len(text) && strings.HasPrefix(unused[k],
				string(text)) {
				continue
			}
			for _, b := range text {
				if to = c.advance(to, b); to.state < 0 {
					break
				}
			}
			if c.canContinue(to, &budget) {
				continue
			}
			if out == nil {
				out = slices.Clone(mask)
			}
			out[i] &^= w & -w
		}
	}
	if out == nil {
		return mask
	}
	return out
}

// addPrefixes adds to mask the tokens that are prefixes of a text.
func addPrefixes(text string, mask []uint64) {
	t := allTokens()
	part := t.roots
	for i := range len(text) {
		k := bytes.IndexByte(t.edges[part.begin:part.end], text[i])
		if k < 0 {
			return
		}
		n := &t.nodes[int(part.begin)+k]
		if n.isToken {
			Allow(mask, t.order[t.first[int(part.begin)+k]])
		}
		part = n.below
	}
}

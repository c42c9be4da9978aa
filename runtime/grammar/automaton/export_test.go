// Accessors for tests of masks over compiled schemas, which cannot be in this package, because the
// compiler imports it.

package automaton

import (
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	FirstState = firstState
	MostBytes  = maxBytes
)

// Step follows a byte from a state; negative if it is not allowed.
func (c *Grammar) Step(from int32, b byte) int32 { return c.step(from, b) }

// TextMask is the mask of a state, without enders.
func (c *Grammar) TextMask(at int32) []uint64 { return c.textMask(at) }

// MayEnd reports whether a text may end at a state.
func (c *Grammar) MayEnd(at int32) bool { return c.states[at].done }

// LoopsAt is the kinds of bytes that are known to lead back to a state.
func (c *Grammar) LoopsAt(at int32) uint64 { return c.states[at].loops }

// OpenAt is the stacks that are open at a state.
func (c *Grammar) OpenAt(at int32) []int32 { return c.states[at].open }

// Bytes is approximately the memory of the states; Age is how often they were dropped.
func (c *Grammar) Bytes() int { return c.tables*tableBytes + c.masks*MaskWords*8 }

func (c *Grammar) Age() int { return c.age }

// Ended is the stack with nothing left to read.
const Ended = emptyStack

// MoveAlone is the stacks behind each byte, without unions.
func (c *Grammar) MoveAlone(open []int32) (after [256][]int32) {
	for b := range after {
		c.m.round++
		for _, id := range open {
			after[b] = c.m.move(after[b], id, byte(b))
		}
		slices.Sort(after[b])
		after[b] = slices.Compact(after[b])
	}
	return after
}

// PropertiesAt is the names of the properties of each object that is open at a state.
func (c *Grammar) PropertiesAt(at int32) (all [][]string) {
	seen := map[int32]bool{}
	for open := slices.Clone(c.states[at].open); len(open) > 0; {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		f := c.m.frames[id]
		switch {
		case id == emptyStack:
		case f.kind == planUnion:
			open = append(open, c.m.unions[f.ref]...)
		case f.kind != planMembers:
			open = append(open, f.parent)
		case !seen[f.ref]:
			seen[f.ref] = true
			var names []string
			for _, p := range c.m.objects[f.ref].Properties {
				names = append(names, p.Name)
			}
			all = append(all, names)
		}
	}
	return all
}

// ForgetAutomata clears the caches of expressions and numbers.
func ForgetAutomata() {
	patterns = Cache[patternKey, *DFA]{Most: MaxCached}
	numbers = Cache[string, *DFA]{Most: MaxCached}
}

// RandomPattern is a sequence of repeated classes.
func RandomPattern(rng *rand.Rand) string {
	parts := []string{"a-z", "A-Z", "0-9", " ", "a-f", "b-y", "A-M", "1-9", ".,;", "-", "_", "é-ü",
		"一-龥", "\\n\\t", "!-/", "'\""}
	repeats := []string{"+", "+", "*", "*", "", "?", "{2,5}"}
	var b strings.Builder
	for range 1 + rng.IntN(3) {
		not := ""
		if rng.IntN(5) == 0 {
			not = "^"
		}
		b.WriteString("[" + not)
		for range 1 + rng.IntN(6) {
			part := parts[rng.IntN(len(parts))]
			if part == "-" {
				part = `\-`
			}
			b.WriteString(part)
		}
		b.WriteString("]" + repeats[rng.IntN(len(repeats))])
	}
	return b.String()
}

// WordyPatterns take all words, in one state or in more.
var WordyPatterns = []string{"[a-zA-Z0-9 .,;-]+", "[a-zA-Z0-9 ]*x", "[a-zA-Z0-9 _]{3,}",
	"(a|[a-zA-Z0-9 !]+\\?)", "[^#]+", "[a-zA-Z0-9 ]{0,9}",
	"[^<>]*", "(?i)foo.*bar", "[^<>]*(<[a-z]+>[^<>]*)*", "[\\p{L} ]+", "[^a]*é", "[a-zà-ü ,.'-]+",
	"[^\\x{2028}]+"}

// Strings with separate counting equal those of an automaton that counts itself: at every position
// the same bytes are allowed, and the same quotes close.

package automaton

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestCountedBesideTheAutomaton(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 20))
	patterns := append([]string{"(ab|cde)*", "(aé|b)*中?", "a{2,5}|b{9}", "[a-z]+(-[a-z]+)*", "(aa)+b?",
		"x|", `[\n\x01"]{2,}`}, WordyPatterns...)
	counted := 0
	for i := range len(patterns) + 60 {
		text := RandomPattern(rng)
		if i < len(patterns) {
			text = patterns[i]
		}
		d, err := patternDFA(t.Context(), text, i%2 == 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, bounds := range [][2]int{{0, 5}, {1, 3}, {3, 7}, {4, 4}, {6, -1}, {0, 0}} {
			product, err := Intersect([]Factor{{DFA: d}}, bounds[0], bounds[1])
			if err != nil && !errors.Is(err, ErrEmpty) {
				continue
			}
			s, failed := Bounded(d, bounds[0], bounds[1])
			if errors.Is(failed, ErrTooLarge) {
				continue
			}
			if (err == nil) != (failed == nil) {
				t.Fatalf("%s %v: %v, as an automaton %v", text, bounds, failed, err)
			}
			if err != nil {
				continue
			}
			counted++
			same(t, text, bounds, s, product)
		}
	}
	if counted < 300 {
		t.Errorf("only %d are counted", counted)
	}
}

// same walks both in parallel.
func same(t *testing.T, text string, bounds [2]int, s *String, product *DFA) {
	t.Helper()
	type pair struct {
		at inString
		of int32
	}
	whole := &String{Text: product, Max: -1}
	seen := map[pair]bool{{}: true}
	queue := []pair{{}}
	for i := 0; i < len(queue) && i < 2000; i++ {
		p := queue[i]
		there := inString{state: p.of, esc: p.at.esc}
		if s.closes(p.at) != whole.closes(there) {
			t.Fatalf("%s %v: a quote after %v: %v", text, bounds, p.at, s.closes(p.at))
		}
		for b := range 256 {
			if b == '"' && p.at.esc == escNone {
				continue
			}
			to, ok := s.read(p.at, byte(b))
			next, also := whole.read(there, byte(b))
			if ok != also {
				t.Fatalf("%s %v: byte %q after %v: %v", text, bounds, byte(b), p.at, ok)
			}
			if q := (pair{to, next.state}); ok && !seen[q] {
				seen[q] = true
				queue = append(queue, q)
			}
		}
	}
}

// Masks of random automata equal those of the plain method: every token, byte by byte. The patterns
// have classes that split the kinds of bytes (trie.go) in every way, so that subtrees are allowed
// completely, partly and not at all.

package automaton_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func grammarOf(t testing.TB, raw string) *automaton.Grammar {
	t.Helper()
	g := hosttest.Must(schema.Compile(t.Context(), []byte(raw), false))(t)
	return g
}

// tokenMask is the mask of a state without its trie.
func tokenMask(c *automaton.Grammar, from int32) []uint64 {
	mask := automaton.NewMask()
	for id := range int32(automaton.OrdinaryTokens) {
		at := from
		for _, b := range token.Get().TokenBytes(id) {
			if at = c.Step(at, b); at < 0 {
				break
			}
		}
		if at > 0 {
			automaton.Allow(mask, id)
		}
	}
	return mask
}

func TestMasksOfRandomAutomata(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	taken := 0
	patterns := 30
	if os.Getenv("OSSRUN_LONG") != "" {
		patterns = 500
	}
	for i := range patterns {
		pattern := automaton.RandomPattern(rng)
		if i < len(automaton.WordyPatterns) {
			pattern = automaton.WordyPatterns[i]
		}
		quoted := hosttest.Must(json.Marshal("^" + pattern + "$"))(t)
		compile := func() (*automaton.Grammar, error) {
			if i%3 == 0 {
				return grammar.Regex(pattern)
			}
			bound := ""
			if i >= len(automaton.WordyPatterns) && i%3 == 1 {
				bound = `,"maxLength":9`
			}
			return schema.Compile(t.Context(), fmt.Appendf(nil, `{"type":"string","pattern":%s%s}`,
				quoted, bound), false)
		}
		c, err := compile()
		var bad *schema.InvalidError
		if errors.As(err, &bad) && i >= len(automaton.WordyPatterns) {
			continue // nothing so short fulfils it
		}
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		at, steps := automaton.FirstState, 3
		if i < len(automaton.WordyPatterns) {
			steps = 6
		}
		for range steps {
			mask := c.TextMask(at)
			if !slices.Equal(mask, tokenMask(c, at)) {
				t.Fatalf("%s: the mask of state %d is not that of its tokens", pattern, at)
			}
			if c.LoopsAt(at) != 0 {
				taken++
			}
			var next []int32
			for b := range 256 {
				if to := c.Step(at, byte(b)); to > 0 {
					next = append(next, to)
				}
			}
			if len(next) == 0 {
				break
			}
			at = next[rng.IntN(len(next))]
		}
	}
	if taken < 15 {
		t.Errorf("only %d states led back to themselves", taken)
	}
}

// Masks of random automata are those of the plain way: every token, byte by byte. The patterns are
// of classes that cut the kinds of bytes (trie.go) in every way, so that subtrees are taken whole,
// in part and not at all.

package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
)

// randomPattern is a sequence of repeated classes.
func randomPattern(rng *rand.Rand) string {
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

// wordyPatterns take all words, in one state or in more.
var wordyPatterns = []string{"[a-zA-Z0-9 .,;-]+", "[a-zA-Z0-9 ]*x", "[a-zA-Z0-9 _]{3,}",
	"(a|[a-zA-Z0-9 !]+\\?)", "[^#]+", "[a-zA-Z0-9 ]{0,9}",
	"[^<>]*", "(?i)foo.*bar", "[^<>]*(<[a-z]+>[^<>]*)*", "[\\p{L} ]+", "[^a]*é", "[a-zà-ü ,.'-]+",
	"[^\\x{2028}]+"}

// tokenMask is the mask of a state without its trie.
func tokenMask(c *Grammar, from int32) []uint64 {
	mask := newMask()
	for id := range int32(ordinaryTokens) {
		at := from
		for _, b := range token.Get().TokenBytes(id) {
			if at = c.step(at, b); at < 0 {
				break
			}
		}
		if at > 0 {
			allow(mask, id)
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
		pattern := randomPattern(rng)
		if i < len(wordyPatterns) {
			pattern = wordyPatterns[i]
		}
		quoted, err := json.Marshal("^" + pattern + "$")
		if err != nil {
			t.Fatal(err)
		}
		compile := func() (*Grammar, error) {
			if i%3 == 0 {
				return Regex(pattern)
			}
			bound := ""
			if i >= len(wordyPatterns) && i%3 == 1 {
				bound = `,"maxLength":9`
			}
			return compileSchema(t.Context(), fmt.Appendf(nil, `{"type":"string","pattern":%s%s}`, quoted,
				bound), false)
		}
		c, err := compile()
		var bad *InvalidError
		if errors.As(err, &bad) && i >= len(wordyPatterns) {
			continue // nothing so short fulfils it
		}
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		at, steps := firstState, 3
		if i < len(wordyPatterns) {
			steps = 6
		}
		for range steps {
			mask := c.text(at)
			if !slices.Equal(mask, tokenMask(c, at)) {
				t.Fatalf("%s: the mask of state %d is not that of its tokens", pattern, at)
			}
			if c.states[at].loops != 0 {
				taken++
			}
			var next []int32
			for b := range 256 {
				if to := c.step(at, byte(b)); to > 0 {
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

// allows tells whether a mask allows id; a nil mask allows all.
func allows(mask []uint64, id int32) bool {
	return mask == nil || mask[id>>6]>>(id&63)&1 == 1
}

// Expressions: an automaton accepts what Go's own engine matches.

package automaton

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

func TestPatternsAgreeWithGo(t *testing.T) {
	alphabet := []rune("ab01-_ .@é\u2028\n\U0001f600Z")
	rng := rand.New(rand.NewPCG(8, 1))
	for _, p := range []string{
		`a`, `^a`, `a$`, `^ab*$`, `^(a|b0)+$`, `[a-b]{2,3}`, `^[^a]{1,2}$`, `(a|^b)0`, `(0|1$)`,
		`^$`, `a{0}`, `^(a?){3}b$`, `(?i)z`,
		`^\d+(-\d+)?$`, `\w@\w`, `^[é-\x{1f600}]+$`, `b|`, `^(?:a|b){2,}$`, `(ab){1,3}0`,
		`^[\w.-]+@[\w-]+$`,
	} {
		d, err := patternDFA(t.Context(), p, true)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		re := regexp.MustCompile(p)
		for range 3000 {
			text := make([]rune, rng.IntN(6))
			for i := range text {
				text[i] = alphabet[rng.IntN(len(alphabet))]
			}
			if s := string(text); d.Accepts(s) != re.MatchString(s) {
				t.Errorf("%s: %q is accepted: %v", p, s, d.Accepts(s))
				break
			}
		}
	}
}

func TestPatternsThatAreRead(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{`^[\s\S]{0,3}$`, "a\u00a0\n", "abcd"},
		{`^.$`, "é", "\r"},
		{`^\s$`, "\u00a0", "x"},
		{`^\S$`, "x", "\ufeff"},
		{`^\u00e9[^]\/$`, "éx/", "éx"},
		{`^[[]$`, "[", "a"},
		{`^.{1,900}$`, "abc", ""},
	} {
		d, err := patternDFA(t.Context(), c.pattern, true)
		if err != nil || !d.Accepts(c.yes) || d.Accepts(c.no) {
			t.Errorf("%s: %v", c.pattern, err)
		}
	}
	for _, p := range []string{`a(?=b)`, `(a)\1`, `\bword`, `(`, `[]`, `\u12`,
		`(\p{L}{1,200}){1,100}`} {
		if _, err := patternDFA(t.Context(), p, true); err == nil {
			t.Errorf("%s is accepted", p)
		}
	}
}

// Expressions: an automaton accepts what Go's own engine matches.

package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
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
			if s := string(text); d.accepts(s) != re.MatchString(s) {
				t.Errorf("%s: %q is accepted: %v", p, s, d.accepts(s))
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
		if err != nil || !d.accepts(c.yes) || d.accepts(c.no) {
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

// A schema cannot keep the compiler busy: each expression is bounded, and all of them are.
func TestExpressionsOfASchemaAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"x":{}`)
	for i := range 400 {
		fmt.Fprintf(&b, `,"p%d":{"type":"string","pattern":"(a|b|c|ab|bc|ca){1,%d}"}`, i, 60+i%120)
	}
	b.WriteString(`}}`)
	begin := processTime()
	_, err := compileSchema(t.Context(), []byte(b.String()), false)
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Keyword != "pattern" {
		t.Errorf("%v", err)
	}
	if took := processTime() - begin; took > time.Minute {
		t.Errorf("it takes %v to refuse", took)
	}
}

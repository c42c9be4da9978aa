// Stacks over a union accept the same as the separate stacks, and remain few.

package automaton_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

func TestUnionsTakeTheSame(t *testing.T) {
	// the kinds of rules are told apart by their last member only
	const nested = `{"$defs":{"rule":{"anyOf":[
		{"type":"object","properties":{"in":{"$ref":"#/$defs/rules"},"a":{"type":"null"}},
			"required":["in","a"],"additionalProperties":false},
		{"type":"object","properties":{"in":{"$ref":"#/$defs/rules"},"b":{"type":"integer"}},
			"required":["in","b"],"additionalProperties":false},
		{"type":"object","properties":{"in":{"$ref":"#/$defs/rules"},"c":{"type":"string"}},
			"required":["in"],"additionalProperties":false}]},
		"rules":{"type":"array","items":{"$ref":"#/$defs/rule"}}},"$ref":"#/$defs/rule"}`
	schemas := []string{nested,
		`{"anyOf":[{"type":"array","items":{"type":["number","array"],"items":{"type":"null"}}},
			{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"array","maxItems":2}]}}]}`,
		`{"anyOf":[{"type":"object"},{"type":"object","maxProperties":1},{"type":"object",
			"properties":{"a":{"type":["object","number"]},"b":{"type":"array"}}}]}`,
		`{"anyOf":[{"type":"number"},{"type":"integer"},true]}`}
	rng := rand.New(rand.NewPCG(5, 7))
	most := 0
	for _, schema := range schemas {
		g, alone := grammarOf(t, schema), grammarOf(t, schema)
		for range 30 {
			at, open, text := automaton.FirstState, alone.OpenAt(automaton.FirstState), []byte{}
			for range 60 {
				var bytes, marks []byte
				after := alone.MoveAlone(open)
				for b := range 256 {
					if takes := g.Step(at, byte(b)) >= 0; takes != (len(after[b]) > 0) {
						t.Fatalf("%s: %q and %q is taken: %v", schema, text, byte(b), takes)
					}
					switch {
					case len(after[b]) == 0:
					case strings.IndexByte(`{}[]":,`, byte(b)) >= 0:
						marks = append(marks, byte(b))
					case b > ' ' && b < 0x7f:
						bytes = append(bytes, byte(b))
					}
				}
				if done := slices.Contains(open, automaton.Ended); done != g.MayEnd(at) {
					t.Fatalf("%s: %q may end: %v", schema, text, !done)
				}
				if most = max(most, len(open)); len(bytes)+len(marks) == 0 || len(open) > 500 {
					break
				}
				if len(bytes) == 0 || len(marks) > 0 && rng.IntN(5) > 0 {
					bytes = marks
				}
				b := bytes[rng.IntN(len(bytes))]
				at, open, text = g.Step(at, b), after[b], append(text, b)
			}
		}
	}
	if most < 20 {
		t.Fatalf("%d stacks are open at most without unions: nothing was tried", most)
	}
	g, at := grammarOf(t, nested), automaton.FirstState
	for level := range 12 {
		for _, b := range []byte(`{"in":[`) {
			at = g.Step(at, b)
		}
		if n := len(g.OpenAt(at)); n > 4 {
			t.Fatalf("%d stacks are open at level %d", n, level)
		}
	}
}

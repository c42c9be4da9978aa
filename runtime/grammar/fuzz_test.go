// Fuzzing: no schema, expression or sequence of tokens makes the compiler or the automaton fail,
// stall or reach a dead end.

package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
)

func FuzzSchema(f *testing.F) {
	for _, s := range walkSchemas {
		f.Add([]byte(s), uint64(1))
	}
	_, groups := readSuite(f)
	for _, gs := range groups {
		for _, g := range gs {
			f.Add([]byte(g.Schema), uint64(2))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		if len(raw) > 4096 {
			return
		}
		c, err := compileSchema(t.Context(), raw, seed%2 == 0)
		if err != nil {
			return
		}
		// A walk never stands where nothing can follow and the text may not end.
		rng := rand.New(rand.NewPCG(seed, 1))
		at := firstState
		var text []byte
		for len(text) < 400 {
			var next []byte
			for b := range 256 {
				if c.step(at, byte(b)) > 0 {
					next = append(next, byte(b))
				}
			}
			if len(next) == 0 {
				if !c.states[at].done {
					t.Fatalf("%s: a dead end after %q", raw, text)
				}
				break
			}
			b := next[rng.IntN(len(next))]
			text = append(text, b)
			at = c.step(at, b)
		}
		if c.states[at].done && !json.Valid(text) {
			t.Fatalf("%s: %q is no JSON", raw, text)
		}
	})
}

func FuzzRegex(f *testing.F) {
	for _, s := range []string{`a`, `^a|b$`, `[^a-c]{2,4}`, `(\d+\.)*\w?`, `\s\S`, `é+`,
		`[\u0400-\u04ff]`, `(?i)ab`, `$^`, `a{0}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) > 200 {
			return
		}
		for _, search := range []bool{false, true} {
			d, err := patternDFA(t.Context(), expression, search)
			if err != nil {
				continue
			}
			d.markTotal()
			if len(d.next) != len(d.accept)*d.classes || len(d.total) != len(d.accept) {
				t.Fatalf("%q: %d edges of %d states", expression, len(d.next), len(d.accept))
			}
		}
	})
}

// Whatever is sampled under the masks of a turn, the strict parser reads it.
func FuzzTurn(f *testing.F) {
	// an input that takes ten seconds counts as hung, and on a loaded machine the vocabulary's
	// table does
	Prepare()
	f.Add(uint64(1), uint8(0), uint8(3))
	f.Add(uint64(2), uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, choice, budget uint8) {
		rules := TurnRules{
			Functions: []FunctionRule{{Name: "a"}, {Name: "ab", Body: schemaOf(t, weather)}},
			Python:    seed%2 == 0, Browser: seed%3 == 0, ToolChoice: ToolChoice(choice % 4),
			Name: "ab", MaxReasoning: int(budget) - 1,
		}
		turn := turnOf(t, rules)
		parser := harmony.NewParser(harmony.RoleAssistant, true)
		rng := rand.New(rand.NewPCG(seed, 5))
		likely := likelyTokens()
		for n := 0; n < 200 && !turn.over(); n++ {
			id := pick(rng, turn.Mask(), likely)
			if forced := turn.Forced(); len(forced) > 0 {
				id = forced[0]
			}
			if !turn.Accept(id) {
				t.Fatalf("token %d is refused", id)
			}
			if err := parser.Push(id); err != nil {
				t.Fatalf("token %q: %v", token.Get().TokenBytes(id), err)
			}
		}
	})
}

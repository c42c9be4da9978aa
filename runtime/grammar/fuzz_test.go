package grammar

import (
	"math/rand/v2"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
)

// Whatever is sampled under the masks of a turn, it is legal Harmony.
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
		reader := harmony.NewReader(harmony.RoleAssistant)
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
			if reader.Push(id); reader.Faults().Total() > 0 {
				t.Fatalf("token %q: %v", token.Get().TokenBytes(id), reader.Faults())
			}
		}
	})
}

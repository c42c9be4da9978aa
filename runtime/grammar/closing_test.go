package grammar

import (
	"encoding/json"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
)

// From wherever a text under a schema is left, some allowed tokens each chosen blindly close it,
// soon, and what comes out is JSON that the schema allows.
func TestClosingEndsEveryText(t *testing.T) {
	tok := token.Get()
	for raw, begun := range map[string][]string{
		`{"type":"object"}`: {``, `{`, `{"a`, `{"a":"and so on and so on`, `{"a":[[{"b":[1,2.`,
			`{"a":"x\`, `{"a":tr`, `{"a":-`, `{"a":1,`},
		`{"type":"object","properties":{"answer":{"type":"string"},"score":{"type":"number"},
			"kind":{"enum":["red","green"]},"tags":{"type":"array","items":{"type":"string"},
			"minItems":2}},"required":["answer","score","kind","tags"],
			"additionalProperties":false}`: {`{"answer":"ha ha ha `, `{"answer":"","score":1.5`, ``},
		`{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}},
			"required":["n"]}}`: {`[{"n":1},{"n":2},`, `[`, `[{"n":`},
		`{"type":"string","minLength":20}`: {`"ab`},
		`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
			"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["next"]}}}`: {
			`{"next":{"next":{"next":`},
	} {
		g, err := schema.Compile(t.Context(), []byte(raw), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range begun {
			for seed := range uint64(20) {
				c, err := NewTurn(TurnRules{Final: g, MaxReasoning: -1, Closing: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range append(tok.EncodeSpecial(nil, "<|channel|>final<|message|>",
					func(string) bool { return true }), tok.Encode(nil, text)...) {
					if !c.Accept(id) {
						t.Fatalf("%s does not begin %s", raw, text)
					}
				}
				said, chance := []byte(text), rand.New(rand.NewPCG(seed, 1))
				for n := 0; !c.over(); n++ {
					if n == 200 {
						t.Fatalf("%s under %s goes on: %s", text, raw, said)
					}
					id := anyOf(c.Mask(), chance)
					if !c.Accept(id) {
						t.Fatalf("token %d is in the mask and not allowed", id)
					}
					if id != token.Return {
						said = append(said, tok.TokenBytes(id)...)
					}
				}
				if !json.Valid(said) || !accepts(g, said) {
					t.Errorf("%s became %s", text, said)
				}
			}
		}
	}
}

// anyOf is one of a mask's tokens.
func anyOf(mask []uint64, chance *rand.Rand) int32 {
	n := 0
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	for i, left := 0, chance.IntN(n); ; i++ {
		w := mask[i]
		if c := bits.OnesCount64(w); left >= c {
			left -= c
			continue
		}
		for ; left > 0; left-- {
			w &= w - 1
		}
		return int32(i*64 + bits.TrailingZeros64(w))
	}
}

func accepts(g *Grammar, text []byte) bool {
	m := g.Matcher()
	for _, id := range token.Get().Encode(nil, string(text)) {
		if !m.Accept(id) {
			return false
		}
	}
	return m.Done()
}

package grammar

import (
	"encoding/json"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// From any point of a text under a schema, blindly chosen allowed tokens close it soon, and the
// result is JSON that the schema allows.
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
		`{"type":"string","pattern":"^a*b+\\\\\"c$"}`:                     {`"`, `"a`, `"aaaab`, `"b\`, `"b\\`},
		`{"type":"string","pattern":"^(ab)*c$","minLength":30}`:           {`"`, `"aba`},
		`{"type":"string","pattern":"^[0-9]+-[a-z]{3,}$","maxLength":20}`: {`"123`, `"1-abcdefgh`},
		`{"type":"string","format":"date-time"}`:                          {`"`, `"2024-02-`},
		`{"enum":["ab","abc","abcdefghijk\u0001"]}`:                       {`"`, `"ab`, `"abcd`},
		`{"type":"integer","minimum":1000000,"multipleOf":7}`:             {``, `1`, `99999`},
		`{"type":"object","minProperties":1,"maxProperties":3}`:           {`{`, `{"a":1,`, `{"a":1,"b":[`},
		`{"type":"object","minProperties":2,"properties":{"long":{"type":"array","minItems":9},
			"b":{},"c":{}},"additionalProperties":false}`: {`{`, `{"long":[`, `{"b":0`},
		`{"type":"object","patternProperties":{"^x-[a-z]+$":{"enum":["yes","no"]}},
			"additionalProperties":false,"minProperties":1}`: {`{`, `{"x`, `{"x-a":"y`},
		`{"type":"array","items":{"type":"string","maxLength":90},"contains":{"const":"a long constant"},
			"uniqueItems":true,"minItems":3}`: {`[`, `["a lon`, `["ha","ha ha`, `["a","","`},
		`{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"string"}},
			"required":["k","v"]},{"type":"array","minItems":5,"items":{"type":"null"}}]}`: {`{`,
			`{"k":"a","v":"ha ha ha`, `[`, `[null,`, `[nu`},
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"number"},{"const":{"a":[1]}}],
			"minItems":4,"items":{"type":"boolean"}}`: {`[`, `["ha ha`, `["",1`, `["",1,{"a`},
	} {
		g := hosttest.Must(schema.Compile(t.Context(), []byte(raw), false))(t)
		if m := g.Matcher(); len(m.Shortest()) == 0 || !accepts(g, m.Shortest()) {
			t.Errorf("%s: the shortest text is %q", raw, m.Shortest())
		}
		for _, text := range begun {
			for seed := range uint64(20) {
				c := hosttest.Must(NewTurn(TurnRules{Final: g, MaxReasoning: -1, Closing: true}))(t)
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

// Written grammars and expressions are closed like schemas.
func TestClosingEndsWrittenGrammars(t *testing.T) {
	rules := func(text string) func() (*Grammar, error) {
		return func() (*Grammar, error) { return Rules(text) }
	}
	for name, c := range map[string]struct {
		make  func() (*Grammar, error)
		begun []string
	}{
		"rules": {rules("start: \"[\" item (\",\" item)* \"]\" \".\"\n" +
			"item: /[a-z]+/ | \"<\" start \">\""), []string{"", "[a", "[a,<[b", "[aaa,"}},
		"gbnf": {rules(`root ::= ("yes" | "no") " because " [a-z ]+ "!"`), []string{"", "yes",
			"no because it is so and so and so "}},
		"expression": {func() (*Grammar, error) { return Regex(`(ab|cde)+x{3}[0-9]?`) },
			[]string{"", "ab", "cdecd", "abx"}},
		"choice": {func() (*Grammar, error) { return TextChoice([]string{"yes", "yesterday"}) },
			[]string{"y", "yeste"}},
	} {
		g, err := c.make()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, text := range c.begun {
			m := g.Matcher()
			if !m.AcceptText([]byte(text)) {
				t.Fatalf("%s does not begin %q", name, text)
			}
			if end := m.Shortest(); len(end) == 0 || !accepts(g, append([]byte(text), end...)) {
				t.Errorf("%s: %q is ended with %q", name, text, end)
			}
		}
	}
}

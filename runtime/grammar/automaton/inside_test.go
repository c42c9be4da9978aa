// Masks made in parts, of strings, their continuations and numbers, equal those of tokens walked
// byte by byte, at every position of texts that cover each of these.

package automaton_test

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

func TestMasksInParts(t *testing.T) {
	for _, c := range []struct{ schema, text string }{
		{`{"type":"object","properties":{"name":{"type":"string"},"names":{"type":"string"}}}`,
			`{"name":"a\"b é\u0001","na":"","nam":[1,"x"],"other":{"a":"b"}}`},
		{`{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":` +
			`{"type":"string"},"minItems":2},{"type":"array","prefixItems":[{"type":"string"},` +
			`{"type":"integer"}],"items":false}]}`, `["one",12]`},
		{`{"type":"array","items":{"type":"string","minLength":3,"maxLength":12}}`,
			`["abcd","é\n中x","123456789012"]`},
		{`{"type":"array","items":{"type":"string","minLength":140,"maxLength":150}}`, `["abcd`},
		{`{"type":"array","items":{"type":"string","maxLength":131}}`, `["a longer text`},
		{`{"type":"array","items":{"type":"string","pattern":"^[^\"\\\\]*$"}}`, `["a b","c"]`},
		{`{"type":"array","items":{"type":"string","not":{"pattern":"maker"}}}`, `["a make","ma"]`},
		{`{"type":"array","items":{"anyOf":[{"pattern":"customer"},{"pattern":"[0-9a-f]{8}"}]}}`,
			`["a customer","x 0123456789"]`},
		{`{"type":"array","items":{"oneOf":[{"pattern":"customer"},{"pattern":"maker"},` +
			`{"pattern":"op\"er"}]}}`, `["a maker","an op\"er","custom`},
		{`{"type":"object","patternProperties":{"[0-9a-f]{4}":{"type":"null"},"^x-":true},` +
			`"additionalProperties":{"type":"integer"}}`, `{"0123":null,"x-é":"","012":5}`},
		{`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number","minimum":-5,` +
			`"maximum":100},"c":{"type":"number","multipleOf":0.05},"d":{"type":"integer"}}}`,
			`{"a":-12.5e10,"b":99.99,"c":0.15,"d":1234567}`},
		{`{"type":"array","items":{"type":["number","string","null"]}}`, `[1,"",null,-0.5]`},
	} {
		g := grammarOf(t, c.schema)
		at, seen := automaton.FirstState, map[int32]bool{}
		for i := 0; ; i++ {
			if mask := g.TextMask(at); !seen[at] && !slices.Equal(mask, tokenMask(g, at)) {
				t.Errorf("%s: behind %q the mask is not that of its tokens", c.schema, c.text[:i])
			}
			seen[at] = true
			if i == len(c.text) {
				break
			}
			if at = g.Step(at, c.text[i]); at < 0 {
				t.Fatalf("%s: %q is refused", c.schema, c.text[:i+1])
			}
		}
	}
}

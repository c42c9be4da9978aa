package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// All dropped keywords are named, regardless of their number, and the rest is enforced; an empty
// rest is reported.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	many := func(n int, of string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%d":`+strings.ReplaceAll(of, "N", fmt.Sprint(i)), i))
		}
		return strings.Join(list, ",")
	}
	const outside = `{"$ref":"https://example.com/N.json"}`
	for raw, want := range map[string][]string{
		`{"type":"object","required":["v"],"properties":{"v":{"const":"1"},` + many(25, outside) +
			`}}`: {"held", "k0", "0.json", "24.json"},
		`{"type":"object","required":["v"],"properties":{"v":{"const":"1"},` + many(400, outside) +
			`}}`: {"held", "k0", "$ref", "397 more"},
		`{"type":"object","required":["v"],"properties":{"v":{"const":"1"},"a":{"pattern":"(?=b)a"},
			"b":{"$dynamicRef":"#b"},` + many(25, `{"pattern":"(a)\\1xN"}`) + `}}`: {"held",
			"pattern", "#/properties/a", "$dynamicRef", "#/properties/b", "22 more"},
		outside: {"nothing is held", "$ref"},
		`{"type":"object","allOf":[` + outside + `,{"$dynamicRef":"#b"}]}`: {"nothing is held",
			"$ref", "$dynamicRef"},
		`{"type":"string","allOf":[` + outside + `]}`: {"held", "$ref"},
	} {
		g, less, err := RelaxedWithin(t.Context(), []byte(raw), false)
		if err != nil {
			t.Errorf("%.80s: %v", raw, err)
			continue
		}
		said := strings.Join(less, "; ")
		for _, word := range want[1:] {
			if !strings.Contains(said, word) {
				t.Errorf("%.80s: %q does not name %s", raw, said, word)
			}
		}
		if len(said) > 2*maxSummary {
			t.Errorf("%.80s: %d bytes are said", raw, len(said))
		}
		if nothing := slices.Contains(less, "nothing is held"); nothing != (want[0] != "held") {
			t.Errorf("%.80s: nothing is held: %v, %q", raw, nothing, less)
		}
		if want[0] == "held" && (takes(g, []byte(`{"v":"2"}`)) || takes(g, []byte(`{}`))) {
			t.Errorf("%.80s: the rest is not held", raw)
		}
	}
}

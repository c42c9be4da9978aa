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

// TestInvalidKeywordsAreDropped: one bad keyword in a schema that is not strict is named, and the
// rest is enforced.
func TestInvalidKeywordsAreDropped(t *testing.T) {
	schema := func(n, more string) string {
		return `{"type":"object","properties":{"n":` + n + `,"m":{"type":"integer"}},` +
			`"required":["m"]` + more + `}`
	}
	type row struct{ raw, keyword, path string }
	var rows []row
	for keyword, values := range map[string][]string{
		"type": {`null`, `""`, `[]`, `{}`, `0`, `"thing"`, `["string",null]`},
		"enum": {`null`, `[]`, `{}`, `"a"`}, "required": {`null`, `""`, `{}`, `0`, `["m",null]`},
		"pattern": {`null`, `0`, `["a"]`}, "$ref": {`null`, `0`}, "properties": {`null`, `[]`, `""`},
		"minimum": {`null`, `"1"`, `[]`}, "exclusiveMaximum": {`null`, `"1"`},
		"multipleOf": {`null`, `0`, `-1`}, "maxLength": {`null`, `"1"`, `-1`, `1.5`},
		"minLength": {`null`, `2147483647`}, "minItems": {`null`, `"1"`}, "maxProperties": {`null`},
		"items": {`null`, `""`, `0`, `[null]`}, "additionalProperties": {`null`, `""`, `[]`},
		"anyOf": {`null`, `[]`, `{}`, `[null]`}, "oneOf": {`[]`}, "allOf": {`null`, `[0]`},
		"prefixItems": {`[]`, `[""]`}, "not": {`null`, `[]`}, "if": {`null`},
		"propertyNames": {`null`}, "dependentRequired": {`null`, `{"a":null}`}, "contains": {`0`}, "patternProperties": {`null`},
		"$defs": {`null`}, "unevaluatedItems": {`null`},
	} {
		for _, v := range values {
			rows = append(rows, row{schema(`{"`+keyword+`":`+v+`}`, ""), keyword, "#/properties/n"})
			if keyword != "properties" && keyword != "required" && keyword != "type" {
				rows = append(rows, row{schema(`{}`, `,"`+keyword+`":`+v), keyword, "#"})
			}
		}
	}
	rows = append(rows, row{schema(`null`, ""), "schema", "#/properties/n"},
		row{schema(`{"anyOf":[{"type":"any"},{"enum":null}]}`, ""), "enum", "#/properties/n/anyOf/1"},
		row{schema(`{"not":{"enum":null}}`, ""), "enum", "#/properties/n/not"},
		row{schema(`{"$ref":"#/$defs/D"}`, `,"$defs":{"D":{"enum":[]}}`), "enum", "#/$defs/D"},
		row{schema(`{"dependencies":{"a":null,"b":["c"]}}`, ""), "schema",
			"#/properties/n/dependencies/a"},
		row{schema(`{"patternProperties":{"^a":null}}`, ""), "schema",
			"#/properties/n/patternProperties/^a"})
	held := 0
	for _, c := range rows {
		for _, arguments := range []bool{false, true} {
			g, less, err := RelaxedWithin(t.Context(), []byte(c.raw), arguments)
			if err != nil {
				t.Errorf("%s: %v", c.raw, err)
				continue
			}
			want := `schema at "` + c.path + `": ` + c.keyword + `: has an invalid value`
			if _, err := CompileWithin(t.Context(), []byte(c.raw), arguments); err == nil {
				want = "" // it is about values of a type that cannot occur
				held++
			}
			if said := strings.Join(less, "; "); said != want {
				t.Errorf("%s: dropped is %q, want %q", c.raw, said, want)
			}
			if !takes(g, []byte(`{"n":"x","m":1}`)) || takes(g, []byte(`{"n":"x","m":"1"}`)) ||
				takes(g, []byte(`{"n":"x"}`)) {
				t.Errorf("%s: the rest is not held", c.raw)
			}
		}
	}
	// without the names, additionalProperties would refuse every member
	g, _, err := RelaxedWithin(t.Context(), []byte(`{"type":"object","properties":[],`+
		`"additionalProperties":false,"required":["a"]}`), true)
	if err != nil || !takes(g, []byte(`{"a":1}`)) || takes(g, []byte(`{}`)) {
		t.Errorf("properties without an object: %v", err)
	}
	if len(rows) < 80 || held > len(rows) {
		t.Errorf("%d rows, %d are held", len(rows), held)
	}
}

// TestKeywordsThatLeaveNothingAreDropped: a const or an enum of another type, and a required
// property that no property may be, cost the rest nothing.
func TestKeywordsThatLeaveNothingAreDropped(t *testing.T) {
	for _, c := range []struct{ n, more, keyword, path string }{
		{`{"type":"string","const":null}`, "", "const", "#/properties/n"},
		{`{"type":"string","const":1}`, "", "const", "#/properties/n"},
		{`{"type":["string","null"],"const":{}}`, "", "const", "#/properties/n"},
		{`{"type":"string","enum":[null]}`, "", "enum", "#/properties/n"},
		{`{"type":"string","enum":[1,true]}`, "", "enum", "#/properties/n"},
		{`{"type":"string","not":{}}`, "", "not", "#/properties/n"},
		{`{"type":"string"}`, `,"not":true`, "not", "#"},
		{`{"type":"string"}`, `,"const":"x"`, "const", "#"},
		{`{"type":"string"}`, `,"enum":[[]]`, "enum", "#"},
		{`{"type":"string"}`, `,"additionalProperties":false,"required":["n","m","o"]`,
			"additionalProperties", "#"},
	} {
		raw := `{"type":"object","properties":{"n":` + c.n + `,"m":{"type":"integer"}}`
		if !strings.Contains(c.more, "required") {
			raw += `,"required":["n","m"]`
		}
		raw += c.more + `}`
		g, less, err := RelaxedWithin(t.Context(), []byte(raw), true)
		if err != nil || strings.Join(less, "; ") !=
			`schema at "`+c.path+`": `+c.keyword+`: has an invalid value` {
			t.Errorf("%s: %q, %v", raw, less, err)
			continue
		}
		if !takes(g, []byte(`{"n":"x","m":1,"o":2}`)) || takes(g, []byte(`{"n":"x","m":"1","o":2}`)) {
			t.Errorf("%s: the rest is not held", raw)
		}
		if _, err := CompileWithin(t.Context(), []byte(raw), true); err == nil {
			t.Errorf("%s is held, where strict asks", raw)
		}
	}
}

// TestTypesOfOtherLanguages are held as what they mean, and bounds that mean none are none.
func TestTypesOfOtherLanguages(t *testing.T) {
	for types, values := range map[string][3]string{
		`"STRING" "str" "date" "Text" "uuid"`:         {`"a"`, `1`},
		`"int" "INTEGER" "int64" "long"`:              {`1`, `1.5`, `"a"`},
		`"float" "double" "Number"`:                   {`1.5`, `"a"`},
		`"bool" "BOOLEAN"`:                            {`true`, `"a"`},
		`"dict" "OBJECT" "map"`:                       {`{"a":1}`, `"a"`},
		`"list" "ARRAY" "tuple" "set"`:                {`[1]`, `"a"`},
		`"None" "NULL"`:                               {`null`, `"a"`},
		`"any" "ANY" "unknown" ["any"] ["str","any"]`: {`{"a":[1]}`},
	} {
		for name := range strings.SplitSeq(types, " ") {
			g, err := CompileWithin(t.Context(), []byte(`{"type":`+name+`}`), false)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !takes(g, []byte(values[0])) {
				t.Errorf("%s does not take %s", name, values[0])
			}
			for _, bad := range values[1:] {
				if bad != "" && takes(g, []byte(bad)) {
					t.Errorf("%s takes %s", name, bad)
				}
			}
		}
	}
	for _, bound := range []string{"1073741824", "2147483647", "9007199254740991", "1e300"} {
		for keyword, value := range map[string]string{"maxLength": `"x"`, "maxItems": `[1,2]`,
			"maxProperties": `{"a":1}`} {
			raw := []byte(`{"` + keyword + `":` + bound + `}`)
			g, err := CompileWithin(t.Context(), raw, false)
			if err != nil || !takes(g, []byte(value)) {
				t.Errorf("%s: %v", raw, err)
			}
			not := []byte(`{"type":["string","array","object"],"not":` + string(raw) + `}`)
			g, _, err = RelaxedWithin(t.Context(), not, false)
			if err == nil && takes(g, []byte(value)) {
				t.Errorf("%s accepts %s", not, value)
			}
		}
	}
}

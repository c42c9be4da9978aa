// Logic compared with jsonschema (Python): random schemas with nested not, if, dependencies and
// oneOf, and random values. Accepted values must be exactly the valid ones, and a relaxed schema
// must accept every valid value.

package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// judged returns jsonschema's verdicts on the values of each case.
func judged(t *testing.T, cases []judgedCase) [][]bool {
	t.Helper()
	python := hosttest.Program(t, "python3")
	var in bytes.Buffer
	for _, c := range cases {
		hosttest.Check(t, json.NewEncoder(&in).Encode(c))
	}
	var errs bytes.Buffer
	command := exec.Command(python, "testdata/judge.py")
	command.Stdin, command.Stderr = &in, &errs
	out, err := command.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 3 {
		hosttest.Lacks(t, "python3 has no jsonschema")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.Bytes())
	}
	var all [][]bool
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var valid []bool
		hosttest.Check(t, d.Decode(&valid))
		all = append(all, valid)
	}
	if len(all) != len(cases) {
		t.Fatalf("%d of %d cases were judged", len(all), len(cases))
	}
	return all
}

type judgedCase struct {
	Schema any   `json:"schema"`
	Values []any `json:"values"`
}

type dict = map[string]any

var nameList = []string{"a", "b", "c", "d"}

// randomNames are some of the names, each once.
func randomNames(rng *rand.Rand, most int) []any {
	var out []any
	for _, i := range rng.Perm(len(nameList))[:1+rng.IntN(most)] {
		out = append(out, nameList[i])
	}
	return out
}

func randomValue(rng *rand.Rand, deep int) any {
	switch n := rng.IntN(9); {
	case n == 0:
		return nil
	case n == 1:
		return rng.IntN(2) == 0
	case n == 2:
		return rng.IntN(6) - 1
	case n == 3:
		return float64(rng.IntN(40)-8) / 8
	case n < 6 || deep == 0:
		return []any{"", "a", "ab", "b", "abc", "xy"}[rng.IntN(6)]
	case n == 6:
		list := []any{}
		for range rng.IntN(4) {
			list = append(list, randomValue(rng, deep-1))
		}
		return list
	}
	o := dict{}
	for range rng.IntN(5) {
		o[nameList[rng.IntN(len(nameList))]] = randomValue(rng, deep-1)
	}
	return o
}

// randomSchema has a few keywords, logic among them.
func randomSchema(rng *rand.Rand, deep int) any {
	if rng.IntN(16) == 0 {
		return rng.IntN(3) > 0
	}
	types := []any{"null", "boolean", "number", "integer", "string", "array", "object"}
	s := dict{}
	sub := func() any { return randomSchema(rng, deep-1) }
	for range 1 + rng.IntN(3) {
		n := rng.IntN(13)
		if deep > 0 {
			n = rng.IntN(38)
		}
		switch n {
		case 0, 1:
			s["type"] = types[rng.IntN(len(types))]
		case 2:
			s["type"] = []any{types[rng.IntN(3)], types[3+rng.IntN(4)]}
		case 3, 4, 5:
			s["required"] = randomNames(rng, 2)
		case 6:
			s["minimum"] = float64(rng.IntN(16)-4) / 4
		case 7:
			s["exclusiveMaximum"] = rng.IntN(4)
		case 8:
			s["minLength"], s["maxLength"] = rng.IntN(3), 1+rng.IntN(3)
		case 9:
			s["enum"] = []any{randomValue(rng, 0), randomValue(rng, 0), "a"}
		case 10:
			s["pattern"] = []string{"^a", "b", "^[ab]*$", "c$"}[rng.IntN(4)]
		case 11:
			s["maxItems"], s["minProperties"] = rng.IntN(3), rng.IntN(2)
		case 12:
			s["const"] = randomValue(rng, 0)
		case 13, 14:
			s["not"] = sub()
		case 15, 16:
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case 17, 18, 19:
			s["oneOf"] = []any{sub(), sub(), sub()}[:2+rng.IntN(2)]
		case 20:
			s["anyOf"] = []any{sub(), sub()}
		case 21:
			s["dependentRequired"] = dict{nameList[rng.IntN(4)]: randomNames(rng, 2)}
		case 22:
			s["dependentSchemas"] = dict{nameList[rng.IntN(4)]: sub()}
		case 23:
			s["items"] = sub()
		case 24:
			s["prefixItems"] = []any{sub(), sub()}
		case 25:
			s["allOf"] = []any{sub(), sub()}
		case 26:
			s["properties"], s["additionalProperties"] = dict{"a": sub(), "b": sub()}, false
		case 27:
			s["contains"] = sub()
		case 28:
			s["contains"], s["minContains"] = sub(), rng.IntN(3)
		case 29:
			s["propertyNames"] = []any{dict{"enum": randomNames(rng, 3)}, dict{"pattern": "^[ab]"},
				dict{"not": dict{"const": "a"}}, sub()}[rng.IntN(4)]
		case 30:
			s["unevaluatedProperties"] = []any{false, false, sub()}[rng.IntN(3)]
		case 31:
			s["unevaluatedItems"] = []any{false, false, sub()}[rng.IntN(3)]
		case 33:
			s["uniqueItems"] = true
		case 32:
			s["patternProperties"] = dict{"^[ab]": sub()}
		default:
			p := dict{}
			for _, n := range randomNames(rng, 3) {
				p[n.(string)] = sub()
			}
			s["properties"] = p
		}
	}
	return s
}

func TestRandomLogic(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 3))
	each := 500
	if os.Getenv("OSSRUN_LONG") != "" {
		each = 40_000
	}
	var cases []judgedCase
	for range each {
		c := judgedCase{Schema: randomSchema(rng, 2)}
		for range 40 {
			c.Values = append(c.Values, randomValue(rng, 2))
		}
		cases = append(cases, c)
	}
	held, relaxed, refused, empty, valid, faults := 0, 0, 0, 0, 0, 0
	for i, verdicts := range judged(t, cases) {
		raw := hosttest.Must(json.Marshal(cases[i].Schema))(t)
		g, less, err := RelaxedWithin(t.Context(), raw, false)
		switch err.(type) {
		case nil:
			if less != nil {
				relaxed++
			} else {
				held++
			}
		case *InvalidError:
			empty++
		case *UnsupportedError: // too much of it would have to be left out
			refused++
			continue
		default:
			t.Fatalf("%s: %v", raw, err)
		}
		for k, v := range cases[i].Values {
			text := hosttest.Must(json.Marshal(v))(t)
			if verdicts[k] {
				valid++
			}
			taken := g != nil && takes(g, text)
			if taken != verdicts[k] && (less == nil || verdicts[k]) {
				if faults++; faults < 10 {
					t.Errorf("%s: %s is taken: %v; less %q", raw, text, taken, less)
				}
			}
		}
	}
	t.Logf("%d schemas held, %d relaxed, %d refused, %d that nothing fulfils; %d values valid", held,
		relaxed, refused, empty, valid)
	if held < each/2 || refused > each/1000 {
		t.Errorf("only %d schemas are held, %d are refused", held, refused)
	}
}

// Golden cases: drafts, formats, and overlapping alternatives.
func TestLogicCases(t *testing.T) {
	for _, c := range []struct{ schema, yes, no string }{
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","type":"null",
			"definitions":{"a":{"type":"string"}}}`, `"x"`, `null`},
		{`{"$ref":"#/$defs/a","maxLength":1,"$defs":{"a":{"type":"string"}}}`, `"x"`, `"xy"`},
		{`{"format":"uri"}`, `"file:///x"`, `"x"`},
		{`{"format":"uri-reference"}`, `"../a?b"`, `"a b"`},
		{`{"format":"iri"}`, `"http://é/ü"`, `"é"`},
		{`{"format":"uri-template"}`, `"/a{/b*}{?c,d:3}"`, `"{a"`},
		{`{"not":{"format":"date"}}`, `"x"`, `"2026-11-23"`},
		{`{"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]}`, `2.5`, `3`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"}`, `{"b":1}`,
			`{"a":1,"b":1}`},
		{`{"oneOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},
			{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}]}`,
			`{"b":1}`, `{"a":1}`},
		{`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"}},
			"type":"object"}}}`, `{"x":1}`, `{"x":{"x":{}}}`},
		{`{"not":{"enum":["a",1,null,true]}}`, `"b"`, `1.0`},
		// the replacement of a keyword may be newer than the draft
		{`{"$schema":"http://json-schema.org/draft-04/schema#","not":{"items":{"type":"string"}}}`,
			`["x",1]`, `["x"]`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","not":{"enum":[true,null,""]},
			"type":["boolean","null"]}`, `false`, `true`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"array",
			"not":{"items":[{"type":"null"}]}}`, `[1]`, `[null,1]`},
		{`{"pattern":"^(?!io\\.)(?!x$)[a-z.]+$"}`, `"xx"`, `"x"`},
		{`{"pattern":"^(?!io\\.)(?!x$)[a-z.]+$"}`, `"ios"`, `"io.s"`},
		{`{"pattern":"^(?=.*[0-9])(?=.*[a-z])[^ ]{3}$"}`, `"1bc"`, `"abc"`},
		{`{"format":"regex"}`, `"^(?:[a-z_]{3,16}|\\d+)?$"`, `"a{3,2}"`},
	} {
		g := schemaOf(t, c.schema)
		if !takes(g, []byte(c.yes)) || takes(g, []byte(c.no)) {
			t.Errorf("%s: takes %s: %v, %s: %v", c.schema, c.yes, takes(g, []byte(c.yes)), c.no,
				takes(g, []byte(c.no)))
		}
	}
}

// An unenforceable keyword is dropped alone, also if the schema around it is negated.
func TestRelaxedKeepsTheRest(t *testing.T) {
	for _, c := range []struct {
		schema    string
		yes, no   []string
		complaint string
	}{
		{`{"type":"object","properties":{"a":{"type":"object","maxContains":2,"contains":{}},
			"b":{"type":"integer"}},"required":["a"]}`, []string{`{"a":{"x":1}}`},
			[]string{`{"a":1}`, `{}`, `{"a":{},"b":"x"}`},
			`schema at "#/properties/a": maxContains: is not supported`},
		{`{"oneOf":[{"type":"string","format":"regex"},{"type":"string","minLength":2},
			{"type":"null"}]}`, []string{`"(("`, `"ab"`, `null`}, []string{`1`},
			`schema at "#": oneOf: two alternatives may hold at once (cannot be held with format in it); use anyOf`},
		{`{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"array",
			"items":{"type":"boolean"},"maxItems":1}}`, []string{`[[],[true]]`}, []string{`[[]]`},
			`schema at "#": uniqueItems: is not supported where so few items differ`},
		{`{"type":"integer","not":{"multipleOf":3}}`, []string{`4`, `3`}, []string{`"x"`, `1.5`},
			`schema at "#": not: cannot be held with multipleOf in it`},
		{`{"type":"object","if":{"properties":{"a":{"uniqueItems":true}}},"then":{"required":["b"]},
			"else":{"required":["c"]}}`, []string{`{"a":[1,1],"c":1}`, `{"a":[1],"b":1}`},
			[]string{`[]`, `{"a":[]}`}, ""},
	} {
		if _, err := cached(t.Context(), []byte(c.schema), false); err == nil {
			t.Errorf("%s is held", c.schema)
		}
		g, less, err := RelaxedWithin(t.Context(), []byte(c.schema), false)
		if err != nil || len(less) == 0 || c.complaint != "" && less[0] != c.complaint {
			t.Errorf("%s: %q, %v", c.schema, less, err)
			continue
		}
		for _, text := range c.yes {
			if !takes(g, []byte(text)) {
				t.Errorf("%s: %s is refused", c.schema, text)
			}
		}
		for _, text := range c.no {
			if takes(g, []byte(text)) {
				t.Errorf("%s: %s is taken", c.schema, text)
			}
		}
	}
}

// Decimal multiples, with bounds and with each other, against exact arithmetic.
func TestDecimalMultiples(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, schema := range []string{`{"type":"number","multipleOf":0.01}`,
		`{"type":"number","multipleOf":0.25,"minimum":-1.5,"exclusiveMaximum":20}`,
		`{"type":"integer","multipleOf":0.5}`, `{"type":"integer","multipleOf":2.5}`,
		`{"allOf":[{"multipleOf":0.4},{"multipleOf":0.06}],"type":"number"}`,
		`{"type":"number","multipleOf":2.5,"not":{"type":"integer"}}`} {
		g := schemaOf(t, schema)
		d := hosttest.Must(jsondoc.Parse([]byte(schema), jsondoc.Lenient))(t)
		c := newCompiler(t.Context(), d, nil, newRounds())
		some := 0
		for range 3000 {
			text := fmt.Sprintf("%.*f", rng.IntN(4), float64(rng.IntN(40_000)-4000)/1000)
			v := hosttest.Must(jsondoc.Parse([]byte(text), jsondoc.Lenient))(t)
			want := hosttest.Must(c.satisfies(v, c.root))(t)
			if want {
				some++
			}
			if got := takes(g, []byte(text)); got != want {
				t.Fatalf("%s: %s is taken: %v", schema, text, got)
			}
		}
		if some == 0 {
			t.Errorf("%s: no number fulfils it", schema)
		}
	}
}

// TestAlternativesTakeTooLong: distinguishing alternatives that refer to each other is abandoned
// after a bounded effort.
func TestAlternativesTakeTooLong(t *testing.T) {
	const n = 8
	var levels []string
	for level := range n {
		var alternatives []string
		for i := range n {
			alternatives = append(alternatives, fmt.Sprintf(
				`{"properties":{"p%d":{"$ref":"#/$defs/%d"},"all":{"$ref":"#/$defs/%d"}}}`,
				i, (level+i)%n, (level*i+1)%n))
		}
		levels = append(levels, fmt.Sprintf(`"%d":{"oneOf":[%s]}`, level,
			strings.Join(alternatives, ",")))
	}
	schema := fmt.Sprintf(`{"$defs":{%s},"$ref":"#/$defs/0"}`, strings.Join(levels, ","))
	d, err := jsondoc.Parse([]byte(schema), jsondoc.Lenient)
	hosttest.Check(t, err)
	known := newRounds()
	_, err = compileRounds(t.Context(), d, false, nil, known)
	if err == nil || !strings.Contains(err.Error(), "take too long to tell apart") {
		t.Errorf("%v", err)
	}
	if known.effort > 4*maxCompileEffort {
		t.Errorf("it took %d of %d", known.effort, maxCompileEffort)
	}
}

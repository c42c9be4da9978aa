// Random walks: everything that the automaton can write satisfies its schema, as judged by
// jsonschema (Python), and every mask agrees with the automaton token by token.

package schema

import (
	"bufio"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func schemaOf(t testing.TB, raw string) *automaton.Grammar {
	t.Helper()
	c, err := cached(t.Context(), []byte(raw), false)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return c
}

// walkSchemas are schemas for walks, in addition to those of the suite.
var walkSchemas = []string{
	`true`,
	`{"type":"object"}`,
	`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"],"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"array","items":{"type":"number"}}},"required":["b"]}`,
	`{"type":"array","items":{"type":"string","maxLength":5},"minItems":2,"maxItems":4}`,
	`{"type":"string","minLength":3,"maxLength":6}`,
	`{"type":"string","pattern":"^[a-z]+@[a-z]+\\.(com|org)$"}`,
	`{"type":"string","pattern":"ab+c","maxLength":6}`,
	`{"type":"string","pattern":"^\\S+$","maxLength":7}`,
	`{"type":"string","pattern":"^(a|b)*$","minLength":4,"maxLength":9}`,
	`{"type":"string","pattern":"^[^\"\\\\]*\"[\\n\\t]?$"}`,
	`{"type":"string","pattern":"^\\u00e9{2}[äöü]+.$"}`,
	`{"type":"integer","minimum":-17,"maximum":1234}`,
	`{"type":"integer","exclusiveMinimum":5}`,
	`{"type":"integer","multipleOf":7,"minimum":-100,"maximum":1000}`,
	`{"type":"number","minimum":0.5,"exclusiveMaximum":2.25}`,
	`{"type":"number","exclusiveMinimum":-3.125,"maximum":-0.001}`,
	`{"type":"number","maximum":-1}`,
	`{"type":["integer","null"],"minimum":0}`,
	`{"enum":[1,"a",null,{"k":[1,2]},1.5,-0.25,true]}`,
	`{"const":{"b":1,"a":"\u0001\n\"\\ä"}}`,
	`{"type":"object","properties":{"kind":{"const":"x"},"n":{"type":"integer"}},"required":["kind","n"],"additionalProperties":{"type":"boolean"}}`,
	`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"v":{"type":"string"}},"required":["kind"]},{"type":"object","properties":{"kind":{"const":"b"},"v":{"type":"integer"}},"required":["kind"]}]}`,
	`{"anyOf":[{"type":"string","format":"date"},{"type":"integer","minimum":3},{"type":"array","items":{"type":"boolean"}}]}`,
	`{"allOf":[{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]},{"properties":{"a":{"maximum":9},"b":{"type":"string"}},"required":["b"]}]}`,
	`{"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"anyOf":[{"type":"integer","minimum":10},{"type":"boolean"}]}]}`,
	`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"value":{"type":"integer"},"left":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"right":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["value","left","right"],"additionalProperties":false}}}`,
	`{"type":"object","patternProperties":{"^s_":{"type":"string"},"_n$":{"minLength":2}},"additionalProperties":{"type":"integer"},"maxProperties":3}`,
	`{"type":"object","properties":{"s_x":{"maxLength":3},"z":{"type":"null"}},"patternProperties":{"^s_":{"type":"string"}},"additionalProperties":false,"minProperties":1}`,
	`{"type":"object","minProperties":2,"maxProperties":3,"properties":{"a":{},"b":{},"c":{},"d":{"type":"string"}},"additionalProperties":false}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"},"minItems":1}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`,
	`{"type":"array","items":{"type":"array","items":{"type":"integer"},"maxItems":2},"maxItems":3}`,
	`{"type":"string","format":"date-time"}`, `{"type":"string","format":"date"}`,
	`{"type":"string","format":"time"}`,
	`{"type":"string","format":"email"}`, `{"type":"string","format":"uuid"}`,
	`{"type":"string","format":"ipv4"}`,
	`{"type":"string","format":"ipv6"}`, `{"type":"string","format":"uri"}`,
	`{"type":"string","format":"hostname"}`,
	`{"type":"string","format":"duration"}`, `{"type":"string","format":"json-pointer"}`,
	`{"type":"string","format":"email","maxLength":20}`,
	`{"type":"object","properties":{"deep":{"type":"object","properties":{"deeper":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"],"additionalProperties":false}}},"required":["deeper"],"additionalProperties":false}},"required":["deep"],"additionalProperties":false}`,
	`{"type":"array","uniqueItems":true,"items":{"enum":["a","ab","abc",1,12,{"a":1}]},"minItems":2}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[ab]{1,2}$"}}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":1,"maximum":12},"minItems":9}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"number","minimum":0,"maximum":2}}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"array","uniqueItems":true,"items":{"type":"boolean"}}}`,
	`{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"k":{"enum":["x","y"]}},"additionalProperties":{"type":"boolean"}}}`,
	`{"anyOf":[{"type":"array","uniqueItems":true,"items":{"enum":["a","b"]}},{"type":"array","items":{"const":"a"}}]}`,
	`{"type":"array","contains":{"const":1},"items":{"enum":[1,2]},"uniqueItems":true}`,
	`{"type":"array","contains":{"type":"null"},"minContains":2,"maxItems":4}`,
	`{"type":"object","propertyNames":{"pattern":"^[a-c]{1,2}$"},"additionalProperties":{"type":"null"}}`,
	`{"type":"object","propertyNames":{"enum":["x","xy","z"]},"patternProperties":{"^x":{"type":"null"}}}`,
	`{"allOf":[{"properties":{"a":{"type":"null"}}}],"properties":{"b":{"type":"null"}},"unevaluatedProperties":false,"type":"object"}`,
	`{"type":"string","format":"regex"}`,
	`{"type":"object","required":["unlisted"],"properties":{"a":{"type":"string"}}}`,
	`{"type":"object","properties":{"":{"type":"integer"},"a\"b":{"type":"string"},"ünï":{"type":"null"}},"required":["","a\"b"]}`,
}

// read reads an allowed byte at a place: the first of some that is allowed, else any; false if none
// is.
func read(rng *rand.Rand, at *automaton.Matcher, first string) (b byte, ok bool) {
	order := make([]byte, 256)
	for i, b := range rng.Perm(256) {
		order[i] = byte(b)
	}
	for _, b := range append([]byte(first), order...) {
		if probe := *at; probe.AcceptText([]byte{b}) {
			*at = probe
			return b, true
		}
	}
	return 0, false
}

// walk writes a random text of the grammar byte by byte; "" if it did not end within the limit.
func walk(rng *rand.Rand, c *automaton.Grammar, limit int) string {
	var out []byte
	at := c.Matcher()
	for len(out) < limit {
		if at.Done() && rng.IntN(3) == 0 {
			return string(out)
		}
		ends := ""
		if rng.IntN(3) == 0 || len(out) > limit/3 {
			ends = `}]"`
		}
		b, ok := read(rng, at, ends)
		if !ok {
			return string(out) // whole, or a dead end: then it is judged as what it is
		}
		out = append(out, b)
	}
	return ""
}

func TestWalksValidate(t *testing.T) {
	python := hosttest.Program(t, "python3")
	each := 5
	if os.Getenv("OSSRUN_LONG") != "" {
		each = 60
	}
	schemas := walkSchemas
	names, groups := readSuite(t)
	for _, name := range names {
		if name == "format" || name == "vocabulary" {
			continue
		}
		for _, g := range groups[name] {
			schemas = append(schemas, string(g.Schema))
		}
	}
	path := filepath.Join(t.TempDir(), "walks.jsonl")
	f := hosttest.Must(os.Create(path))(t)
	w := bufio.NewWriter(f)
	held := hosttest.Must(json.Marshal(slices.Sorted(maps.Keys(formats))))(t)
	hosttest.Must(w.Write(append(held, '\n')))(t)
	rng := rand.New(rand.NewPCG(7, 7))
	used := 0
	for i, raw := range schemas {
		c, err := cached(t.Context(), []byte(raw), false)
		if err != nil {
			if i < len(walkSchemas) {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		var texts []string
		n := each
		if i < len(walkSchemas) {
			n *= 4
		}
		for range n {
			if s := walk(rng, c, 2000); s != "" {
				texts = append(texts, s)
			}
		}
		if len(texts) == 0 {
			t.Errorf("%s: no walk ends", raw)
			continue
		}
		used++
		line, err := json.Marshal(map[string]any{"schema": json.RawMessage(raw), "texts": texts})
		hosttest.Check(t, err)
		hosttest.Must(w.Write(append(line, '\n')))(t)
	}
	hosttest.Check(t, w.Flush())
	hosttest.Check(t, f.Close())
	out, err := exec.Command(python, "testdata/verify_walks.py", path).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 3 {
		hosttest.Lacks(t, "python3 has no jsonschema")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d schemas: %s", used, strings.TrimSpace(string(out)))
}

// A mask allows exactly the tokens whose bytes the automaton accepts.
func TestMasksAgreeWithTheAutomaton(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	tok := token.Get()
	for _, raw := range walkSchemas {
		c := schemaOf(t, raw)
		text := walk(rng, c, 300)
		m := c.Matcher()
		cut := 0
		if len(text) > 0 {
			cut = rng.IntN(len(text))
		}
		if !m.AcceptText([]byte(text[:cut])) {
			t.Fatalf("%s: %q is refused", raw, text[:cut])
		}
		mask := m.Mask(token.Call)
		if automaton.Allows(mask, token.Call) != m.Done() {
			t.Errorf("%s after %q: the ender is allowed: %v", raw, text[:cut], !m.Done())
		}
		check := func(id int32) {
			if probe := *m; probe.AcceptText(tok.TokenBytes(id)) != automaton.Allows(mask, id) {
				t.Errorf("%s after %q: token %q is allowed: %v", raw, text[:cut],
					tok.TokenBytes(id), automaton.Allows(mask, id))
			}
		}
		for range 3000 {
			check(int32(rng.IntN(automaton.OrdinaryTokens)))
		}
		for id := range int32(600) {
			check(id)
		}
	}
}

// 300 tools in a megabyte.
func manyTools() [][]byte {
	var out [][]byte
	for i := range 300 {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{`)
		for k := range 20 {
			if k > 0 {
				b.WriteByte(',')
			}
			name := string(rune('a'+k)) + "_" + strings.Repeat("name", 2)
			switch k % 4 {
			case 0:
				b.WriteString(`"` + name + `":{"type":"string","description":"` +
					strings.Repeat("what it is for ", 10) + `"}`)
			case 1:
				b.WriteString(`"` + name + `":{"type":"integer","minimum":1,"description":"` +
					strings.Repeat("how many of them ", 8) + `"}`)
			case 2:
				b.WriteString(`"` + name +
					`":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"enum":["a","b"]}},"required":["x"]}}`)
			default:
				b.WriteString(`"` + name +
					`":{"anyOf":[{"type":"string","pattern":"^[a-z]{1,20}$"},{"type":"null"}],"description":"` + strings.Repeat("or nothing ", 12) + `"}`)
			}
		}
		b.WriteString(`},"required":["a_namename"],"title":"tool` + string(rune('0'+i%10)) +
			strings.Repeat("x", i) + `"}`)
		out = append(out, []byte(b.String()))
	}
	return out
}

func BenchmarkCompile300Tools(b *testing.B) {
	tools := manyTools()
	size := 0
	for _, raw := range tools {
		size += len(raw)
	}
	b.SetBytes(int64(size))
	begin := hosttest.ProcessTime()
	for b.Loop() {
		for _, raw := range tools {
			hosttest.Must(Compile(b.Context(), raw, true))(b)
		}
	}
	b.ReportMetric(float64((hosttest.ProcessTime()-begin).Milliseconds())/float64(b.N), "cpu-ms/op")
}

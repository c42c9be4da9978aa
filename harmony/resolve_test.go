package harmony

// Tools' schemas as Pydantic and Zod write them (testdata/schemas, with their scripts) reach the
// model completely.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

var update = flag.Bool("update", false, "write testdata/schemas/rendered.txt anew")

// shown is a function's signature in the prompt.
func shown(t testing.TB, schema string) string {
	t.Helper()
	text := hosttest.Must(toolsText(Functions([]ToolDescription{{Name: "f",
		Parameters: json.RawMessage(schema)}})))(t)
	_, text, _ = strings.Cut(text, "type f = (_: ")
	text, _, _ = strings.Cut(text, ") => any;\n")
	return text
}

// told collects the content of a schema: the names of properties, descriptions, and texts in enum
// or const.
func told(v any, each func(string)) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			told(v, each)
		}
	case map[string]any:
		for name, v := range v {
			switch name {
			case "properties":
				for name, v := range v.(map[string]any) {
					each(name)
					told(v, each)
				}
			case "description", "const":
				if text, ok := v.(string); ok {
					each(text)
				}
			case "enum":
				for _, v := range v.([]any) {
					if text, ok := v.(string); ok && text != "null" { // OpenAPI 3's null
						each(`"` + text + `"`)
					}
				}
			case "default", "examples", "propertyNames", "discriminator":
			default:
				told(v, each)
			}
		}
	}
}

func TestSchemasOfPydanticAndZod(t *testing.T) {
	const folder = "testdata/schemas/"
	var all bytes.Buffer
	for _, file := range []string{"pydantic.jsonl", "zod.jsonl"} {
		text := hosttest.Must(os.ReadFile(folder + file))(t)
		lines := 0
		for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); lines++ {
			var c struct {
				By, Name string
				Schema   json.RawMessage
			}
			var schema any
			hosttest.Check(t, json.Unmarshal(in.Bytes(), &c))
			hosttest.Check(t, json.Unmarshal(c.Schema, &schema))
			got := shown(t, string(c.Schema))
			told(schema, func(what string) {
				if !strings.Contains(got, what) {
					t.Errorf("%s, %s: the model does not read %q in\n%s", c.By, c.Name, what, got)
				}
			})
			fmt.Fprintf(&all, "=== %s: %s\n%s\n\n", c.By, c.Name, got)
		}
		if lines < 10 {
			t.Errorf("%s has %d schemas", file, lines)
		}
	}
	path := folder + "rendered.txt"
	if *update {
		hosttest.Check(t, os.WriteFile(path, all.Bytes(), 0o644))
	}
	want := hosttest.Must(os.ReadFile(path))(t)
	if !bytes.Equal(all.Bytes(), want) {
		t.Errorf("not as in %s (-update writes it):\n%s", path, all.Bytes())
	}
}

// Each keyword that the library writes any for, and termination.
func TestResolvedWords(t *testing.T) {
	object := func(property string) string {
		return `{"type":"object","properties":{"a":` + property + `},"$defs":{` +
			`"P":{"type":"object","title":"Point","description":"A place.","properties":{` +
			`"x":{"type":"number","description":"east"}},"required":["x"]},` +
			`"E":{"enum":["u","v"],"type":"string"},"S":{"type":"string","description":"Any."},` +
			`"N":{"type":"object","title":"Node","properties":{"next":{"$ref":"#/$defs/N"}}},` +
			`"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"},` +
			`"a/b ~":{"type":"boolean"}}}`
	}
	for _, c := range []struct{ property, want string }{
		{`{"$ref":"#/$defs/E"}`, "a?: \"u\" | \"v\",\n"},
		{`{"$ref":"#/$defs/S","description":"Mine."}`, "// Mine. Any.\na?: string,\n"},
		{`{"$ref":"#/$defs/a~1b%20~0"}`, "a?: boolean,\n"},
		{`{"$ref":"https://example.com/x","description":"D."}`, "// D.\na?: any,\n"},
		{`{"$ref":"#/$defs/none"}`, "a?: any,\n"},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, "a?: string | null,\n"},
		{`{"oneOf":[{"type":"null"},{"$ref":"#/$defs/E"}]}`, "a?: \"u\" | \"v\" | null,\n"},
		{`{"anyOf":[{"$ref":"#/$defs/E"}],"default":"u"}`, "a?: \"u\" | \"v\", // default: u\n"},
		{`{"anyOf":[{"type":"integer"},{"type":"number"},{"type":"string"}]}`,
			"a?: number | string,\n"},
		{`{"anyOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"type":"null"}]}`,
			"a?: string | null,\n"},
		{`{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"null"}]}`,
			"a?: string | boolean | null,\n"},
		{`{"anyOf":[{"type":"object","properties":{"b":{"type":["string","null"]}}},` +
			`{"type":"null"}]}`, "a?: {\n    b?: string | null,\n    } | null,\n"},
		{`{"allOf":[{"$ref":"#/$defs/S"}],"title":"T"}`, "// T\n//\n// Any.\na?: string,\n"},
		{`{"const":"k"}`, "a?: \"k\",\n"},
		{`{"const":7,"type":"integer"}`, "a?: 7,\n"},
		{`{"type":["string","null"],"enum":["u",null]}`, "a?: \"u\" | null,\n"},
		{`{"type":["null","array"],"items":{"type":"number"}}`, "a?: number[] | null,\n"},
		{`{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}}`,
			"a?: (string | number)[],\n"},
		{`{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}}`,
			"a?: (string | null)[],\n"},
		{`{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/E"},{"type":"null"}]}}`,
			"a?: (\"u\" | \"v\" | null)[],\n"},
		{`{"type":"array","items":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/N"}]}}`,
			"a?: (\n     | string\n     |        // Node\n{\n       next?: Node,\n       } // Node\n" +
				"    )[],\n"},
		{`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}`,
			"a?: (number | string)[],\n"},
		{`{"type":"object","additionalProperties":{"$ref":"#/$defs/P"}}`,
			"a?: Record<string,     // A place.\n{\n    // east\n"},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, "a?: Record<string, number>,\n"},
		{`{"type":"object","additionalProperties":{"type":"string","description":"Each."}}`,
			"// Each.\na?: Record<string, string>,\n"},
		{`{"type":"object","additionalProperties":true}`, "a?: Record<string, any>,\n"},
		{`{"type":"dict","additionalProperties":{}}`, "a?: Record<string, any>,\n"},
		{`{"type":"object","patternProperties":{"^x":{"type":["integer","null"]}},` +
			`"additionalProperties":false}`, "a?: Record<string, number | null>,\n"},
		{`{"type":"object","additionalProperties":{"anyOf":[{"type":"string","enum":["u"]},` +
			`{"type":"object","properties":{"b":{"type":"string"}}}]}}`,
			"a?: Record<string, \n     | \"u\"\n     | {\n       b?: string,\n       }\n    >,\n"},
		{`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":` +
			`{"type":"number"}}`, "a?: {\n    b?: string,\n    [key: string]: number,\n    },\n"},
		{`{"type":"object","properties":{},"additionalProperties":true}`, "a?: {\n    },\n"},
		{`{"type":["object","null"],"additionalProperties":{"type":"string"}}`,
			"a?: Record<string, string> | null,\n"},
		// values, and types in other words
		{`{"enum":["u","v"]}`, "a?: \"u\" | \"v\",\n"},
		{`{"enum":[1,"u",true,null],"default":"u"}`, "a?: 1 | \"u\" | true | null, // default: u\n"},
		{`{"type":"integer","enum":[1,2],"default":2}`, "a?: 1 | 2, // default: 2\n"},
		{`{"type":["integer","null"],"enum":[1,null]}`, "a?: 1 | null,\n"},
		{`{"type":"array","items":{"enum":[1,2]}}`, "a?: (1 | 2)[],\n"},
		{`{"type":"STRING","enum":["u"]}`, "a?: \"u\",\n"},
		{`{"type":["str","None"]}`, "a?: string | null,\n"},
		{`{"type":"ARRAY","items":{"type":"int"}}`, "a?: number[],\n"},
		{`{"type":"any"}`, "a?: any,\n"},
		{`{"properties":{"b":{"type":"bool"}}}`, "a?: {\n    b?: boolean,\n    },\n"},
		{`{"items":{"type":"string"}}`, "a?: string[],\n"},
		{`{"type":"string","enum":null,"pattern":null}`, "a?: string,\n"},
		// recursive references
		{`{"$ref":"#/properties/a"}`, "a?: a,\n"},
		{`{"$ref":"#/$defs/A"}`, "a?: A,\n"},
		{`{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}`, "a?: A | null,\n"},
		{`{"allOf":[{"$ref":"#/$defs/A"}]}`, "a?: A,\n"},
		{`{"$ref":"#"}`, "a?: any,\n"},
		{`{"$ref":"#/$defs/N"}`, "// Node\n//\na?: {\n    next?: Node,\n    },\n"},
		{`true`, "a?: any,\n"},
	} {
		if got := shown(t, object(c.property)); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwithout\n%s", c.property, got, c.want)
		}
	}
	const itself = `{"$ref":"#/$defs/N","$defs":{"N":{"type":"object","title":"Tree","properties":{` +
		`"n":{"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]},"v":{"type":"string"}}}}}`
	if got := shown(t, itself); got != "// Tree\n{\nn?: Tree | null,\nv?: string,\n}" {
		t.Errorf("a document that refers to itself: %s", got)
	}
}

// A schema without references is rendered as by OpenAI's library, and so is a complete
// conversation.
func TestNothingToResolve(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"default":"x"},"b":{"type":` +
			`["string","null"]},"c":{"type":"array","items":{"type":"string","enum":["p","q"]}},"d":{` +
			`"oneOf":[{"type":"string","description":"s"},{"type":"number"}],"description":"D"},"e":{` +
			`"type":"object","title":"E","description":"In E.","properties":{"f":{"type":"boolean",` +
			`"nullable":true}},"required":["f"]},"g":{"type":"integer"},"h":{}},` +
			`"required":["a","zz"],"additionalProperties":false}`,
		`{"type":"object"}`, `{}`, `true`, `[]`, `"x"`, `{"type":"object","properties":[1]}`,
		`{"oneOf":[{"type":"object"},{"type":"string"}]}`, `{"type":"strange"}`,
	} {
		tools := []ToolDescription{{Name: "f", Parameters: json.RawMessage(schema)}}
		want, err := toolsText(map[string]ToolNamespace{"functions": {Name: "functions", Tools: tools}})
		hosttest.Check(t, err)
		if got, err := toolsText(Functions(tools)); err != nil || got != want {
			t.Errorf("%s, %v:\n%s\nOpenAI's:\n%s", schema, err, got, want)
		}
	}
}

// Definitions that refer to each other many times do not exceed a prompt, nor does a long one that
// is referred to often, or a long chain.
func TestResolvingEnds(t *testing.T) {
	const most = 60
	var tangle, often, chain strings.Builder
	tangle.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range most {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, (i+1)%most)
		fmt.Fprintf(&tangle, `"d%d":{"allOf":[%s,%[2]s],"type":"object","properties":{"l":%[2]s,`+
			`"r":{"anyOf":[%[2]s,{"type":"array","items":%[2]s},{"type":"null"}]}}},`, i, next)
	}
	tangle.WriteString(`"z":{}}}`)
	often.WriteString(`{"type":"object","properties":{`)
	chain.WriteString(`{"type":"object","properties":{`)
	for i := range 5000 {
		fmt.Fprintf(&often, `"p%d":{"$ref":"#/$defs/long"},`, i)
		fmt.Fprintf(&chain, `"p%d":{"$ref":"#/$defs/d0"},`, i)
	}
	fmt.Fprintf(&often, `"z":{}},"$defs":{"long":{"type":"string","description":"%s"}}}`,
		strings.Repeat("long ", 10_000))
	chain.WriteString(`"z":{}},"$defs":{`)
	for i := range 5000 {
		fmt.Fprintf(&chain, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	chain.WriteString(`"d5000":{"type":"string"}}}`)
	for name, s := range map[string]string{"tangle": tangle.String(), "often": often.String(),
		"chain": chain.String()} {
		if got := shown(t, s); len(got) > 4*maxResolved {
			t.Errorf("%s: %d bytes became %d", name, len(s), len(got))
		}
	}
}

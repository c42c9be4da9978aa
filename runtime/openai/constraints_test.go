// Every name under which clients send what an answer must be, in every dialect: it is held or
// refused by its name, and never left out in silence.

package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestConstraintsAreHeldOrRefused(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"enum":[1,2]}},"required":["n"],"additionalProperties":false}`
	const named = `"name":"a","schema":` + schema
	quoted := fmt.Sprintf("%q", schema)
	const good, bad = `{"n":1}`, `{"n":3}`
	const rules = `"root ::= \"{\\\"n\\\":\" [12] \"}\""`
	const expression = `"\\{\"n\":[12]\\}"`
	type constraint struct {
		member string
		param  string // of the fault; "": it is held
	}
	all := []constraint{
		{`"response_format":{"type":"json_schema","json_schema":{` + named + `}}`, ""},
		{`"response_format":{"type":"json_schema","json_schema":{` + named + `,"strict":true}}`, ""},
		{`"response_format":{"type":"json_schema",` + named + `}`, ""},
		{`"response_format":{"type":"json_object","schema":` + schema + `}`, ""},
		{`"response_format":{"type":"json_object","json_schema":{` + named + `}}`, ""},
		{`"response_format":{"type":"grammar","grammar":` + rules + `}`, "response_format.type"},
		{`"response_format":{"type":"regex","pattern":"a"}`, "response_format.type"},
		{`"response_format":{"type":"structural_tag","structures":[]}`, "response_format.type"},
		{`"response_format":{"schema":` + schema + `}`, "response_format.type"},
		{`"response_format":{"type":"text","schema":` + schema + `}`, "response_format.schema"},
		{`"response_format":{"type":"json_object","grammar":` + rules + `}`,
			"response_format.grammar"},
		{`"response_format":{"type":"json_schema","json_schema":{` + named + `,"regex":"a"}}`,
			"response_format.json_schema.regex"},
		{`"response_format":"json"`, "response_format"},
		{`"text":{"format":{"type":"json_schema",` + named + `}}`, ""},
		{`"text":{"format":{"type":"json_object","schema":` + schema + `}}`, ""},
		{`"text":{"format":{"type":"grammar","definition":"a"}}`, "text.format.type"},
		{`"text":{"format":{"type":"json_schema",` + named + `,"pattern":"a"}}`,
			"text.format.pattern"},
		{`"output_format":{"type":"json_schema","schema":` + schema + `}`, ""},
		{`"output_format":{"type":"xml"}`, "output_format.type"},
		{`"output_format":{"schema":` + schema + `}`, "output_format.type"},
		{`"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`, ""},
		{`"output_config":{"format":{"type":"json_schema","schema":` + schema + `,"rules":1}}`,
			"output_config.format.rules"},
		{`"format":` + schema, ""},
		{`"format":{"type":"json_schema",` + named + `}`, ""},
		{`"format":"xml"`, "format"},
		{`"json_schema":` + schema, ""}, {`"json_schema":` + quoted, ""},
		{`"json_schema":{"type":"nothing"}`, "json_schema"},
		{`"response_schema":` + schema, ""}, {`"guided_json":` + schema, ""},
		{`"guided_json":` + quoted, ""},
		{`"grammar":` + rules, ""}, {`"guided_grammar":` + rules, ""}, {`"ebnf":` + rules, ""},
		{`"grammar_string":` + rules, ""}, {`"grammar":"root ::= ("`, "grammar"},
		{`"grammar":{"type":"json","value":` + schema + `}`, ""},
		{`"grammar":{"type":"regex","value":` + expression + `}`, ""},
		{`"grammar":{"type":"json_schema","value":{}}`, "grammar.type"},
		{`"grammar":{"type":"json"}`, "grammar.value"},
		{`"grammar":{"type":"json","value":{},"root":"a"}`, "grammar.root"},
		{`"regex":` + expression, ""}, {`"guided_regex":` + expression, ""},
		{`"regex_pattern":` + expression, ""}, {`"guided_choice":["{\"n\":1}","b"]`, ""},
		{`"structured_outputs":{"json":` + schema + `}`, ""},
		{`"structured_outputs":{"json":` + schema + `,"disable_any_whitespace":true}`, ""},
		{`"structured_outputs":{"regex":` + expression + `}`, ""},
		{`"structured_outputs":{"grammar":` + rules + `}`, ""},
		{`"structured_outputs":{"choice":["{\"n\":1}"]}`, ""},
		{`"structured_outputs":{"structural_tag":"a"}`, "structured_outputs.structural_tag"},
		{`"structured_outputs":{"whitespace_pattern":"a"}`, "structured_outputs.whitespace_pattern"},
		{`"structured_outputs":{"disable_additional_properties":true}`,
			"structured_outputs.disable_additional_properties"},
		{`"structured_outputs":7`, "structured_outputs"},
		{`"guided_structural_tag":"a"`, "guided_structural_tag"},
		{`"structural_tag":{"a":1}`, "structural_tag"},
		{`"guided_whitespace_pattern":"a"`, "guided_whitespace_pattern"},
		{`"guided_decoding":{"json":{}}`, "guided_decoding"},
		{`"grammar_triggers":["a"]`, "grammar_triggers"},
		{`"extra_body":{"guided_json":` + schema + `}`, ""},
		{`"extra_body":{"structural_tag":1}`, "extra_body.structural_tag"},
		{`"nvext":{"guided_regex":` + expression + `}`, ""},
		{`"sampling_params":{"json_schema":` + quoted + `}`, ""},
		{`"sampling_params":{"regex":` + expression + `,"ebnf":` + rules + `}`,
			"sampling_params.ebnf"},
		{`"grammar":` + rules + `,"json_schema":` + schema, ""}, // two: either is named
	}
	srv, f := porttest.Server(t, sessiontest.Answers(good))
	for path, base := range map[string]string{
		"/v1/chat/completions": `"messages":[` + porttest.Hello + `],`,
		"/v1/completions":      `"prompt":"a",`, "/v1/responses": `"input":"a",`,
		"/v1/messages":  `"max_tokens":9,"messages":[` + porttest.Hello + `],`,
		"/api/chat":     `"model":"gpt-oss:20b","messages":[` + porttest.Hello + `],`,
		"/api/generate": `"model":"gpt-oss:20b","prompt":"a",`,
	} {
		for i, c := range all {
			members := []string{c.member}
			if strings.HasPrefix(path, "/api") {
				members = append(members, `"options":{`+c.member+`}`)
			}
			for at, member := range members {
				r := porttest.Ask(t, "POST", srv.URL+path, `{`+base+member+`}`)
				two := i == len(all)-1
				switch {
				case two && (r.Status != 400 || !strings.Contains(r.Body, "one format only")):
					t.Errorf("%s with two formats: %d %s", path, r.Status, r.Body)
				case two:
				case c.param != "":
					if at == 1 {
						c.param = "options." + c.param
					}
					if r.Status != 400 || !strings.Contains(r.Body, c.param) {
						t.Errorf("%s with %s: %d %s, want %s named", path, member, r.Status,
							r.Body, c.param)
					}
				case r.Status != 200 || r.Header.Get("X-Ossrun-Ignored") != "":
					t.Errorf("%s with %s: %d %s ignored %q", path, member, r.Status, r.Body,
						r.Header.Get("X-Ossrun-Ignored"))
				default:
					if got := f.Last(t).Final; got == nil || !porttest.Holds(got, good) ||
						porttest.Holds(got, bad) {
						t.Errorf("%s with %s: the answer is not held", path, member)
					}
				}
			}
		}
	}
}

// A client that always sends these names asks for nothing with these values.
func TestConstraintsThatAskForNothing(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	for _, member := range []string{`"response_format":null`, `"response_format":{}`,
		`"response_format":{"type":"text"}`, `"grammar":""`, `"guided_json":null`, `"format":""`,
		`"guided_json_object":false`, `"structured_outputs":{}`, `"text":{}`, `"extra_body":{}`,
		`"structured_outputs":{"json_object":false}`, `"output_config":{}`} {
		porttest.Post(t, srv, "/v1/chat/completions", porttest.ChatWith(member))
		if f.Last(t).Final != nil {
			t.Errorf("%s holds the answer", member)
		}
	}
}

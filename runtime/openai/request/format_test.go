package request_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

const personSchema = `{"type":"object", "properties":{"name":{"type":"string"},"age":{"type":"integer"}}, "required":["name","age"], "additionalProperties":false}`

func TestFormats(t *testing.T) {
	const section = "# Response Formats\n\n## person\n\n// Who it is.\n" +
		`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}`
	const person, object, array, plain = `{"name":"Ada","age":36}`, `{"x":[1]}`, `[1]`, `Hello.`
	named := `"name":"person","description":"Who it is.","schema":` + personSchema
	for _, c := range []struct {
		name, chat, responses string // fields of the two requests
		allowed, refused      []string
		section               string
		relaxed               string // begins the header, after the place in the request
	}{
		{"none", `"user":"u"`, `"user":"u"`, []string{person, plain}, nil, "", ""},
		{"text", `"response_format":{"type":"text"}`, `"text":{"format":{"type":"text"}}`,
			[]string{person, plain}, nil, "", ""},
		{"json_object", `"response_format":{"type":"json_object"}`,
			`"text":{"format":{"type":"json_object"}}`, []string{person, object}, []string{array,
				plain}, "", ""},
		{"json_schema", `"response_format":{"type":"json_schema","json_schema":{"strict":true,` +
			named + `}}`, `"text":{"format":{"type":"json_schema","strict":true,` + named + `}}`,
			[]string{person}, []string{object, array, plain, `{"name":"Ada"}`}, section, ""},
		{"json_schema not strict", `"response_format":{"type":"json_schema","json_schema":{` +
			named + `}}`, `"text":{"format":{"type":"json_schema",` + named + `}}`,
			[]string{person}, []string{object}, section, ""},
		{"relaxed", `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":` +
			porttest.Beyond + `}}`, `"text":{"format":{"type":"json_schema","name":"a","schema":` + porttest.Beyond +
			`}}`,
			[]string{person, object}, []string{array, plain}, "# Response Formats\n\n## a\n\n" +
				porttest.Beyond, `schema at "#/properties/a": $ref`},
		{"guided_json", `"guided_json":` + personSchema, `"guided_json":` + personSchema,
			[]string{person}, []string{object, plain},
			strings.NewReplacer("person", "response", "// Who it is.\n", "").Replace(section), ""},
		{"guided_json as a text", `"guided_json":"{\"enum\":[1,2]}"`,
			`"guided_json":"{\"enum\":[1,2]}"`, []string{"1", "2"}, []string{"3"},
			"# Response Formats\n\n## response\n\n{\"enum\":[1,2]}", ""},
		{"guided_regex", `"guided_regex":"[a-z]+\\d"`, `"structured_outputs":{"regex":"[a-z]+\\d"}`,
			[]string{"abc7"}, []string{"abc", plain}, "", ""},
		{"guided_choice", `"guided_choice":["yes","no"]`,
			`"structured_outputs":{"choice":["yes","no"],"json_object":false}`, []string{"yes",
				"no"}, []string{"maybe", "y"}, "", ""},
		{"guided_grammar", `"guided_grammar":"root ::= \"a\" [0-9]+"`,
			`"structured_outputs":{"grammar":"start: \"a\" /[0-9]+/"}`, []string{"a1", "a42"},
			[]string{"a", "b1"}, "", ""},
		{"json_object of vLLM", `"structured_outputs":{"json_object":true}`,
			`"guided_json_object":true`, []string{object}, []string{array, plain}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			for path, body := range map[string]string{"/v1/chat/completions": `{"messages":[{"role":"system","content":"Be brief."},` + porttest.Hello + `],` + c.chat + `}`,
				"/v1/responses": `{"instructions":"Be brief.","input":"hi",` + c.responses + `}`} {
				r := porttest.Post(t, srv, path, body)
				got := f.Last(t)
				for _, text := range c.allowed {
					if !porttest.Holds(got.Final, text) {
						t.Errorf("%s: %s is refused", path, text)
					}
				}
				for _, text := range c.refused {
					if porttest.Holds(got.Final, text) {
						t.Errorf("%s: %s is allowed", path, text)
					}
				}
				if got.Instructions != "Be brief." || got.Formats != c.section {
					t.Errorf("%s: instructions %q, format\n%q\nwant\n%q", path,
						got.Instructions, got.Formats, c.section)
				}
				relaxed := r.Header.Get("X-Ossrun-Relaxed")
				if _, reason, _ := strings.Cut(relaxed,
					": "); (relaxed == "") != (c.relaxed == "") || !strings.HasPrefix(reason,
					c.relaxed) {
					t.Errorf("%s: X-Ossrun-Relaxed: %q, want ... %q", path, relaxed, c.relaxed)
				}
			}
		})
	}
}

// The Responses API echoes the format with all its members.
func TestFormatEcho(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers(`{}`))
	for _, format := range []string{`{"type":"text"}`, `{"type":"json_object"}`,
		`{"type":"json_schema","name":"a","description":"d","schema":{"type":"object"},"strict":true}`, `{"type":"json_schema","name":"a","schema":{"type":"object"}}`} {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
			`{"input":"hi","text":{"format":`+format+`}}`).Body)
		porttest.Conform(t, "Response", m)
		if got, want := porttest.At(m, "text", "format"), porttest.Decode(t, format); !reflect.DeepEqual(got,
			any(want)) {
			t.Errorf("format %v, want %v", got, want)
		}
	}
}

func TestToolChoice(t *testing.T) {
	const other = `{"type":"function","function":{"name":"other"}}`
	onlyOther := func(mode string) any {
		return map[string]any{"type": "allowed_tools", "mode": mode,
			"tools": []any{map[string]any{"type": "function", "name": "other"}}}
	}
	for _, c := range []struct {
		choice    string
		mode      grammar.ToolChoice
		name      string
		functions int
		echo      any
	}{
		{`null`, grammar.Auto, "", 2, "auto"},
		{`"auto"`, grammar.Auto, "", 2, "auto"},
		{`"none"`, grammar.None, "", 0, "none"},
		{`"required"`, grammar.Required, "", 2, "required"},
		{`{"type":"function","function":{"name":"other"}}`, grammar.Named, "other", 2,
			map[string]any{"type": "function", "name": "other"}},
		{`{"type":"function","name":"get_weather"}`, grammar.Named, "get_weather", 2,
			map[string]any{"type": "function", "name": "get_weather"}},
		{`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"other"}]}`,
			grammar.Required, "", 1, onlyOther("required")},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"other"}}]}}`, grammar.Auto, "", 1, onlyOther("auto")},
	} {
		t.Run(c.choice, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Calls("other", `{}`))
			fields := `"tool_choice":` + c.choice + `,"tools":[` + porttest.WeatherTool + `,` + other + `]}`
			check := func() {
				t.Helper()
				if r := f.Last(t); r.ToolChoice != c.mode || r.ToolName != c.name ||
					len(r.Functions) != c.functions {
					t.Errorf("choice %d of %q among %d functions", r.ToolChoice, r.ToolName,
						len(r.Functions))
				}
			}
			porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],`+fields)
			check()
			m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi",`+fields).Body)
			check()
			porttest.Conform(t, "Response", m)
			if !reflect.DeepEqual(m["tool_choice"], c.echo) {
				t.Errorf("tool_choice %v, want %v", m["tool_choice"], c.echo)
			}
		})
	}
}

func TestStrictFunctions(t *testing.T) {
	var log bytes.Buffer
	srv, f := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log,
			nil))
	})
	f.Relaxed = []string{`g: schema at "#": not: is not supported`, "h: so too\n"}
	tools := `"tools":[` + porttest.WeatherFunction + `,{"type":"function","name":"g","parameters":` +
		porttest.Beyond + `},{"type":"function","name":"h","strict":false,"parameters":` + porttest.Beyond + `}]}`
	for path, body := range map[string]string{"/v1/chat/completions": `{"messages":[` + porttest.Hello +
		`],` + tools, "/v1/responses": `{"input":"hi",` + tools,
		"/v1/responses?": `{"stream":true,"input":"hi",` + tools} {
		log.Reset()
		r := porttest.Post(t, srv, path, body)
		if got := f.Last(t).Strict; !reflect.DeepEqual(got, []string{"get_weather"}) {
			t.Errorf("%s: strict %q", path, got)
		}
		if got := r.Header.Get("X-Ossrun-Relaxed"); got != `g: schema at "#": not: is not supported; h: so too?` {
			t.Errorf("%s: X-Ossrun-Relaxed: %q", path, got)
		}
	}
	srv.Close() // the log line is written after the answer
	if !strings.Contains(log.String(), "relaxed=") {
		t.Errorf("log: %s", log.String())
	}
}

// What a client parses is the answer alone: a preamble is shown as reasoning where the answer has a
// form.
func TestPreambleBeforeAForm(t *testing.T) {
	start := func(t *testing.T) *httptest.Server {
		srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Commentary{Text: "Here it is:"},
				session.Answer{Text: `{"a":1}`}, sessiontest.Done(session.FinishStop)}, nil
		})
		return srv
	}
	m := porttest.Decode(t, porttest.Post(t, start(t), "/v1/chat/completions",
		`{"messages":[`+porttest.Hello+`],"response_format":{"type":"json_object"}}`).Body)
	if got := porttest.At(m, "choices", 0, "message", "content"); got != `{"a":1}` || porttest.At(m, "choices", 0,
		"message", "reasoning") != "Here it is:" {
		t.Errorf("message %v", porttest.At(m, "choices", 0, "message"))
	}
	m = porttest.Decode(t, porttest.Post(t, start(t), "/v1/responses",
		`{"input":"hi","text":{"format":{"type":"json_object"}}}`).Body)
	if len(m["output"].([]any)) != 2 || porttest.At(m, "output", 0, "type") != "reasoning" || porttest.At(m, "output",
		1, "content", 0, "text") != `{"a":1}` {
		t.Errorf("output %v", m["output"])
	}
	m = porttest.Decode(t, porttest.Post(t, start(t), "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`).Body)
	if got := porttest.At(m, "choices", 0, "message", "content"); got != "Here it is:\n\n{\"a\":1}" {
		t.Errorf("content without a form: %q", got)
	}
}

// The port's own bound on reasoning holds for requests that do not say.
func TestReasoningBoundOfThePort(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.MaxReasoning = 7 })
	for field, want := range map[string]int{"": 7, `,"max_reasoning_tokens":3`: 3,
		`,"max_reasoning_tokens":-1`: 0, `,"max_reasoning_tokens":0`: -1} {
		for path, body := range map[string]string{"/v1/chat/completions": `{"messages":[` + porttest.Hello +
			`]`, "/v1/responses": `{"input":"hi"`} {
			porttest.Post(t, srv, path, body+field+"}")
			if got := f.Last(t).MaxReasoning; got != want {
				t.Errorf("%s with %q: %d, want %d", path, field, got, want)
			}
		}
	}
}

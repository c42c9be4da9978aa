package openai_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// The support matrix of vLLM's guide for this model: each way of asking with each thing that can be
// asked for. vLLM's has gaps; here every cell works.
func TestSupportMatrix(t *testing.T) {
	// a way asks and returns the answer's text and, as one text, everything that came
	ways := []struct {
		name string
		ask  func(t *testing.T, srv *httptest.Server, tools, format string) (text, all string)
	}{
		{"Responses", func(t *testing.T, srv *httptest.Server, tools,
			format string) (string, string) {
			r := porttest.Post(t, srv, "/v1/responses", `{"input":"x"`+tools+responsesFormat(format)+`}`)
			porttest.Conform(t, "Response", porttest.Decode(t, r.Body))
			return responseText(porttest.Decode(t, r.Body)), r.Body
		}},
		{"Responses in the background", func(t *testing.T, srv *httptest.Server, tools,
			format string) (string, string) {
			r := porttest.Post(t, srv, "/v1/responses", `{"input":"x","background":true`+tools+
				responsesFormat(format)+`}`)
			id := porttest.Decode(t, r.Body)["id"].(string)
			m := porttest.Ended(t, srv, id)
			return responseText(m), porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+id, "").Body
		}},
		{"Responses streamed", func(t *testing.T, srv *httptest.Server, tools,
			format string) (string, string) {
			r := porttest.Post(t, srv, "/v1/responses", `{"input":"x","stream":true`+tools+
				responsesFormat(format)+`}`)
			list := porttest.Events(t, r.Body)
			porttest.ConformResponses(t, list)
			var text strings.Builder
			for _, e := range list {
				if e.Name == "response.output_text.delta" {
					text.WriteString(e.Json["delta"].(string))
				}
			}
			return text.String(), list[len(list)-1].Data
		}},
		{"Chat", func(t *testing.T, srv *httptest.Server, tools, format string) (string, string) {
			r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]`+tools+
				chatFormat(format)+`}`)
			porttest.Conform(t, "CreateChatCompletionResponse", porttest.Decode(t, r.Body))
			text, _ := porttest.At(porttest.Decode(t, r.Body), "choices", 0, "message", "content").(string)
			return text, r.Body
		}},
		{"Chat streamed", func(t *testing.T, srv *httptest.Server, tools, format string) (string,
			string) {
			r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"stream":true`+
				tools+chatFormat(format)+`}`)
			var text strings.Builder
			for _, e := range porttest.Events(t, r.Body) {
				if e.Json != nil {
					porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
				}
				piece, _ := porttest.At(e.Json, "choices", 0, "delta", "content").(string)
				text.WriteString(piece)
			}
			return text.String(), r.Body
		}},
	}
	const schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`
	things := []struct {
		name, tools, format, text string
		script                    sessiontest.Script
		check                     func(t *testing.T, f *sessiontest.Model, way, all string)
	}{
		{"basic text", "", "", "Hello.", sessiontest.Answers("Hello."), func(*testing.T, *sessiontest.Model, string,
			string) {
		}},
		{"structured output", "", schema, `{"a":1}`, sessiontest.Answers(`{"a":1}`), func(t *testing.T,
			f *sessiontest.Model, _, _ string) {
			if r := f.Last(t); r.Final == nil || !strings.Contains(r.Formats, `"integer"`) {
				t.Error("the answer is not held to the schema")
			}
		}},
		{"built-in tools", `,"tools":[{"type":"code_interpreter","container":{"type":"auto"}},` +
			`{"type":"web_search"}]`, "", "Tö 42 【1†L2】.", porttest.ToolUser, func(t *testing.T,
			f *sessiontest.Model, way, all string) {
			got := sessiontest.History(f.Last(t))
			if !strings.Contains(got, "\ntool python") || !strings.Contains(got,
				"\ntool browser.search") {
				t.Errorf("not both have run:\n%s", got)
			}
			if strings.HasPrefix(way, "Responses") && (!strings.Contains(all,
				`"web_search_call"`) || !strings.Contains(all, `"code_interpreter_call"`)) {
				t.Errorf("the calls are not shown: %s", all)
			}
		}},
		{"MCP", `,"tools":[{"type":"mcp","server_label":"sums","require_approval":"never"}]`, "", "Tö 42 【1†L2】.", porttest.ToolUser,
			func(t *testing.T, f *sessiontest.Model, way, all string) {
				if got := sessiontest.History(f.Last(t)); !strings.Contains(got,
					"\ntool functions.sums_add") {
					t.Errorf("it has not run:\n%s", got)
				}
				if strings.HasPrefix(way, "Responses") && !strings.Contains(all, `"mcp_call"`) {
					t.Errorf("the call is not shown: %s", all)
				}
			}},
		{"function calling", `,"tools":[` + porttest.WeatherTool + `]`, "", "", sessiontest.Agent, func(t *testing.T,
			_ *sessiontest.Model, _, all string) {
			if !strings.Contains(all, "get_weather") || !strings.Contains(all, "Paris") {
				t.Errorf("there is no call: %s", all)
			}
		}},
	}
	cells := 0
	for _, way := range ways {
		for _, thing := range things {
			cells++
			t.Run(way.name+"/"+thing.name, func(t *testing.T) {
				srv, f := porttest.ToolServer(t, thing.script, nil)
				text, all := way.ask(t, srv, thing.tools, thing.format)
				if text != thing.text {
					t.Errorf("text %q, want %q", text, thing.text)
				}
				thing.check(t, f, way.name, all)
			})
		}
	}
	if cells != 25 {
		t.Errorf("%d cells", cells)
	}
}

func responsesFormat(schema string) string {
	if schema == "" {
		return ""
	}
	return `,"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":` + schema +
		`}}`
}

func chatFormat(schema string) string {
	if schema == "" {
		return ""
	}
	return `,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,` +
		`"schema":` + schema + `}}`
}

// responseText is the text of all messages of a response.
func responseText(m map[string]any) (text string) {
	items, _ := m["output"].([]any)
	for _, i := range items {
		if porttest.At(i, "type") == "message" {
			text += porttest.At(i, "content", 0, "text").(string)
		}
	}
	return text
}

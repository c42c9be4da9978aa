package openai

import (
	"net/http/httptest"
	"strings"
	"testing"
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
			r := post(t, srv, "/v1/responses", `{"input":"x"`+tools+responsesFormat(format)+`}`)
			conform(t, "Response", decode(t, r.body))
			return responseText(decode(t, r.body)), r.body
		}},
		{"Responses in the background", func(t *testing.T, srv *httptest.Server, tools,
			format string) (string, string) {
			r := post(t, srv, "/v1/responses", `{"input":"x","background":true`+tools+
				responsesFormat(format)+`}`)
			id := decode(t, r.body)["id"].(string)
			m := ended(t, srv, id)
			return responseText(m), ask(t, "GET", srv.URL+"/v1/responses/"+id, "").body
		}},
		{"Responses streamed", func(t *testing.T, srv *httptest.Server, tools,
			format string) (string, string) {
			r := post(t, srv, "/v1/responses", `{"input":"x","stream":true`+tools+
				responsesFormat(format)+`}`)
			list := events(t, r.body)
			conformResponses(t, list)
			var text strings.Builder
			for _, e := range list {
				if e.name == "response.output_text.delta" {
					text.WriteString(e.json["delta"].(string))
				}
			}
			return text.String(), list[len(list)-1].data
		}},
		{"Chat", func(t *testing.T, srv *httptest.Server, tools, format string) (string, string) {
			r := post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]`+tools+
				chatFormat(format)+`}`)
			conform(t, "CreateChatCompletionResponse", decode(t, r.body))
			text, _ := at(decode(t, r.body), "choices", 0, "message", "content").(string)
			return text, r.body
		}},
		{"Chat streamed", func(t *testing.T, srv *httptest.Server, tools, format string) (string,
			string) {
			r := post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],"stream":true`+
				tools+chatFormat(format)+`}`)
			var text strings.Builder
			for _, e := range events(t, r.body) {
				if e.json != nil {
					conform(t, "CreateChatCompletionStreamResponse", e.json)
				}
				piece, _ := at(e.json, "choices", 0, "delta", "content").(string)
				text.WriteString(piece)
			}
			return text.String(), r.body
		}},
	}
	const schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`
	things := []struct {
		name, tools, format, text string
		script                    script
		check                     func(t *testing.T, f *fakeRunner, way, all string)
	}{
		{"basic text", "", "", "Hello.", answers("Hello."), func(*testing.T, *fakeRunner, string,
			string) {
		}},
		{"structured output", "", schema, `{"a":1}`, answers(`{"a":1}`), func(t *testing.T,
			f *fakeRunner, _, _ string) {
			if r := f.last(t); r.Final == nil || !strings.Contains(r.Instructions, `"integer"`) {
				t.Error("the answer is not held to the schema")
			}
		}},
		{"built-in tools", `,"tools":[{"type":"code_interpreter","container":{"type":"auto"}},` +
			`{"type":"web_search"}]`, "", "Tö 42 【1†L2】.", toolUser, func(t *testing.T,
			f *fakeRunner, way, all string) {
			got := history(f.last(t))
			if !strings.Contains(got, "\ntool python") || !strings.Contains(got,
				"\ntool browser.search") {
				t.Errorf("not both have run:\n%s", got)
			}
			if strings.HasPrefix(way, "Responses") && (!strings.Contains(all,
				`"web_search_call"`) || !strings.Contains(all, `"code_interpreter_call"`)) {
				t.Errorf("the calls are not shown: %s", all)
			}
		}},
		{"MCP", `,"tools":[{"type":"mcp","server_label":"sums"}]`, "", "Tö 42 【1†L2】.", toolUser,
			func(t *testing.T, f *fakeRunner, way, all string) {
				if got := history(f.last(t)); !strings.Contains(got,
					"\ntool functions.sums_add") {
					t.Errorf("it has not run:\n%s", got)
				}
				if strings.HasPrefix(way, "Responses") && !strings.Contains(all, `"mcp_call"`) {
					t.Errorf("the call is not shown: %s", all)
				}
			}},
		{"function calling", `,"tools":[` + weatherTool + `]`, "", "", agent, func(t *testing.T,
			_ *fakeRunner, _, all string) {
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
				srv, f := toolServer(t, thing.script, nil)
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
		if at(i, "type") == "message" {
			text += at(i, "content", 0, "text").(string)
		}
	}
	return text
}

package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// A search's sources and results are shown to a client that asks for them.
func TestSearchSources(t *testing.T) {
	srv, _ := porttest.ToolServer(t, porttest.ToolUser, nil)
	for include, want := range map[string]string{
		"": `{"type":"search","query":"the answer","queries":["the answer"]} <nil>`,
		`"web_search_call.action.sources"`: `{"type":"search","query":"the answer",` +
			`"queries":["the answer"],"sources":[{"type":"url","url":"https://example.org/"}]} <nil>`,
		`"web_search_call.results"`: `{"type":"search","query":"the answer",` +
			`"queries":["the answer"]} [map[title:T url:https://example.org/]]`,
	} {
		r := porttest.Post(t, srv, "/v1/responses", `{"input":"x","include":[`+include+`],`+
			porttest.BuiltinTools+`}`)
		m := porttest.Decode(t, r.Body)
		porttest.Conform(t, "Response", m)
		for _, i := range m["output"].([]any) {
			if porttest.At(i, "type") != "web_search_call" {
				continue
			}
			action, results, _ := strings.Cut(want, "} ")
			if got := porttest.At(i, "action"); !reflect.DeepEqual(got,
				porttest.Decode(t, action+"}")) || fmt.Sprint(porttest.At(i, "results")) != results {
				t.Errorf("%s: %v", include, i)
			}
		}
	}
}

func TestBuiltinTools(t *testing.T) {
	srv, _ := porttest.ToolServer(t, porttest.ToolUser, nil)
	r := porttest.Post(t, srv, "/v1/responses", `{"input":"x","include":["code_interpreter_call.outputs"],`+
		porttest.BuiltinTools+`}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "Response", m)
	var kinds []string
	items := map[string]map[string]any{}
	for _, i := range m["output"].([]any) {
		kind := porttest.At(i, "type").(string)
		kinds = append(kinds, kind)
		items[kind] = i.(map[string]any)
		delete(items[kind], "id")
	}
	want := []string{"mcp_list_tools", "reasoning", "code_interpreter_call", "reasoning",
		"web_search_call", "reasoning", "mcp_call", "message"}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("items %v", kinds)
	}
	code := items["code_interpreter_call"]
	delete(code, "container_id")
	for kind, fields := range map[string]string{
		"code_interpreter_call": `{"type":"code_interpreter_call","status":"completed",` +
			`"code":"print(42)","outputs":[{"type":"logs","logs":"42"}]}`,
		"web_search_call": `{"type":"web_search_call","status":"completed","action":` +
			`{"type":"search","query":"the answer","queries":["the answer"]}}`,
		"mcp_call": `{"type":"mcp_call","status":"completed","server_label":"sums",` +
			`"name":"add","arguments":"{\"city\":\"Paris\"}","output":"42","error":null,` +
			`"approval_request_id":null}`,
		"mcp_list_tools": `{"type":"mcp_list_tools","server_label":"sums","tools":` + // ai refuses null
			`[{"name":"add","description":"","input_schema":{"type":"object"}}]}`,
	} {
		if want := porttest.Decode(t, fields); !reflect.DeepEqual(items[kind], want) {
			t.Errorf("%s\n got %v\nwant %v", kind, items[kind], want)
		}
	}
	annotation := porttest.At(items["message"], "content", 0, "annotations", 0)
	if porttest.At(annotation, "start_index") != 6.0 || porttest.At(annotation, "url") != "https://example.org/" {
		t.Errorf("annotation %v", annotation)
	}
	if porttest.At(m, "usage", "output_tokens") != 48.0 {
		t.Errorf("the usage is not that of four turns: %v", m["usage"])
	}
	if r.Header.Get("X-Ossrun-Ignored") != "" {
		t.Errorf("ignored: %s", r.Header.Get("X-Ossrun-Ignored"))
	}
}

func TestBuiltinToolsStream(t *testing.T) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","stream":true,`+porttest.BuiltinTools+
		`}`).Body)
	porttest.ConformResponses(t, list)
	var names []string
	for _, e := range list {
		for _, part := range []string{"code_interpreter", "web_search", "mcp", "annotation"} {
			name := strings.TrimPrefix(e.Name, "response.")
			if strings.Contains(name, part) && (len(names) == 0 || names[len(names)-1] != name) {
				names = append(names, name)
			}
		}
	}
	want := []string{"mcp_list_tools.in_progress", "mcp_list_tools.completed",
		"code_interpreter_call.in_progress", "code_interpreter_call_code.delta",
		"code_interpreter_call_code.done", "code_interpreter_call.interpreting",
		"code_interpreter_call.completed", "web_search_call.in_progress",
		"web_search_call.searching", "web_search_call.completed", "mcp_call.in_progress",
		"mcp_call_arguments.delta", "mcp_call_arguments.done", "mcp_call.completed",
		"output_text.annotation.added"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("events\n%s", strings.Join(names, "\n"))
	}
	// what a client sends back is read: code and calls with their results
	output := porttest.At(list[len(list)-1].Json, "response", "output").([]any)
	b, _ := json.Marshal(append(output, map[string]any{"role": "user", "content": "And?"}))
	porttest.Post(t, srv, "/v1/responses", `{"input":`+string(b)+`}`)
	got := sessiontest.History(f.Last(t))
	for _, want := range []string{"assistant <analysis> to python", ": print(42)\ntool python",
		`assistant <analysis> to browser.search`, `{"query":"the answer"}` + "\ntool browser.search",
		"[what it returned was not kept]", "to functions.sums_add", "tool functions.sums_add <commentary> to assistant", ": 42"} {
		if !strings.Contains(got, want) {
			t.Errorf("the history lacks %q:\n%s", want, got)
		}
	}
}

// Whatever form of a search comes back, the model reads its call.
func TestSearchesComeBack(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	r := porttest.Post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"?"},
		{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","queries":["a b"]}},
		{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"open_page","url":"https://example.org/"}},
		{"type":"web_search_call","id":"ws_3","status":"failed","action":{"type":"find_in_page","url":"x","pattern":"\"q\""}},
		{"type":"web_search_call","id":"ws_4","status":"completed"}]}`)
	got := sessiontest.History(f.Last(t))
	for _, want := range []string{`to browser.search`, `{"query":"a b"}`, "to browser.open",
		`{"id":"https://example.org/"}`, "to browser.find", `{"pattern":"\"q\""}`,
		"Error: the call failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("the history lacks %q:\n%s", want, got)
		}
	}
	if h := r.Header.Get("X-Ossrun-Ignored"); h != "web_search_call" { // the last one
		t.Errorf("ignored: %s", h)
	}
}

// A failing tool is reported to the model and shown as failed; the turn continues.
func TestBuiltinToolsFail(t *testing.T) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, errors.New("no route"))
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","stream":true,`+porttest.BuiltinTools+
		`}`).Body)
	porttest.ConformResponses(t, list)
	m := porttest.At(list[len(list)-1].Json, "response")
	for _, i := range porttest.At(m, "output").([]any) {
		if kind := porttest.At(i, "type"); strings.HasSuffix(kind.(string), "_call") &&
			porttest.At(i, "status") != "failed" {
			t.Errorf("%v", i)
		}
	}
	if porttest.At(m, "status") != "completed" || !strings.Contains(sessiontest.History(f.Last(t)), "no route") {
		t.Errorf("status %v\n%s", porttest.At(m, "status"), sessiontest.History(f.Last(t)))
	}
}

func TestBuiltinToolsAreBounded(t *testing.T) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","max_tool_calls":2,`+porttest.BuiltinTools+`}`)
	if got := f.Last(t); got.ToolChoice != grammar.None ||
		strings.Count(sessiontest.History(got), "\ntool ") != 2 {
		t.Errorf("choice %v after\n%s", got.ToolChoice, sessiontest.History(got))
	}
}

// No tool vanishes: without a back end it is refused, alone and beside functions; but a search and
// an interpreter beside functions are dropped from the answer's tools too.
func TestToolsWithoutABackEnd(t *testing.T) {
	searches := porttest.WeatherFunction + `,{"type":"web_search"},{"type":"code_interpreter",` +
		`"container":{"type":"auto"}}`
	for _, c := range []struct{ tools, want string }{
		{`{"type":"web_search"},{"type":"mcp","server_label":"unknown"}`,
			"--tools browser"},
		{porttest.WeatherFunction + `,{"type":"mcp","server_label":"unknown"}`, "cannot be used"},
		{`{"type":"file_search","vector_store_ids":[]}`, "no vector stores"},
		{`{"type":"mcp","server_label":"sums","require_approval":"never"},{"type":"imagine"}`,
			"a tool of type imagine"},
		{`{"type":"web_search_2025_08_26"}`, "--tools browser"},
		{`{"type":"code_interpreter","container":{"type":"auto"}}`, "--tools python"},
		{searches, ""},
	} {
		for path, input := range map[string]string{"/v1/responses": `"input":"x"`,
			"/v1/chat/completions": `"messages":[` + porttest.Hello + `]`} {
			if strings.HasPrefix(path, "/v1/chat") {
				c.tools = strings.Replace(c.tools, porttest.WeatherFunction,
					porttest.WeatherTool, 1)
			}
			for _, offers := range []func() ([]string, []string){nil, func() ([]string, []string) {
				return nil, []string{"sums"}
			}} {
				var open atomic.Int64
				srv, f := porttest.Server(t, porttest.ToolUser, func(o *openai.Options) {
					o.Offers = offers
					o.Tools = func(kind, label string) ([]session.Tool, error) {
						if label != "sums" {
							return nil, nil
						}
						open.Add(1)
						return []session.Tool{&porttest.ScriptedTool{Kind: kind, Open: &open}}, nil
					}
				})
				r := porttest.Ask(t, "POST", srv.URL+path, `{`+input+`,"tools":[`+c.tools+`]}`)
				if c.want == "" {
					list, _ := porttest.Decode(t, r.Body)["tools"].([]any)
					if last := f.Last(t); r.Status != 200 || last.Browser || last.Python ||
						offers != nil && len(list) != 1 && path == "/v1/responses" {
						t.Errorf("%s %s: %d, echoed %v", path, c.tools, r.Status, list)
					}
				} else if r.Status != 400 || !strings.Contains(r.Body, c.want) || open.Load() != 0 {
					t.Errorf("%s %s: %d %s", path, c.tools, r.Status, r.Body)
				}
			}
		}
	}
	srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
	for _, choice := range []string{`"none"`,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"sums"}]}`} {
		porttest.Post(t, srv, "/v1/responses", `{"input":"x","tool_choice":`+choice+`,`+porttest.BuiltinTools+`}`)
		if r := f.Last(t); r.Python || r.Browser {
			t.Errorf("%s: python %v, browser %v", choice, r.Python, r.Browser)
		}
	}
	for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
		porttest.Post(t, srv, path, `{"input":"x","messages":[`+porttest.Hello+`]}`)
		if r := f.Last(t); r.Python || r.Browser || len(r.Functions) > 0 {
			t.Errorf("%s has tools that nobody asked for", path)
		}
	}
}

// In chat completions the client sees its own calls only, numbered from 0.
func TestBuiltinToolsInChat(t *testing.T) {
	srv, _ := porttest.ToolServer(t, porttest.ToolUser, nil)
	tools := strings.TrimSuffix(porttest.BuiltinTools, "]") + `,` + porttest.WeatherTool + `]`
	for _, stream := range []string{"false", "true"} {
		r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"stream":`+stream+`,`+
			tools+`}`)
		for _, hidden := range []string{"print(42)", "the answer", "sums_add"} {
			if strings.Contains(r.Body, hidden) {
				t.Errorf("%q is shown: %s", hidden, r.Body)
			}
		}
		if !strings.Contains(r.Body, `"tool_calls"`) || !strings.Contains(r.Body, "get_weather") ||
			strings.Contains(r.Body, `"index":3`) {
			t.Errorf("%s", r.Body)
		}
		r = porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"stream":`+stream+`,`+
			porttest.BuiltinTools+`}`)
		if !strings.Contains(r.Body, "Tö 42") || strings.Contains(r.Body, `"tool_calls"`) {
			t.Errorf("%s", r.Body)
		}
	}
}

package openai

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
)

func TestBuiltinTools(t *testing.T) {
	srv, _ := toolServer(t, toolUser, nil)
	r := post(t, srv, "/v1/responses", `{"input":"x","include":["code_interpreter_call.outputs"],`+
		builtinTools+`}`)
	m := decode(t, r.body)
	conform(t, "Response", m)
	var kinds []string
	items := map[string]map[string]any{}
	for _, i := range m["output"].([]any) {
		kind := at(i, "type").(string)
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
			`"name":"sums_add","arguments":"{\"city\":\"Paris\"}","output":"42","error":null,` +
			`"approval_request_id":null}`,
		"mcp_list_tools": `{"type":"mcp_list_tools","server_label":"sums","error":null,"tools":` +
			`[{"name":"sums_add","description":"","input_schema":{"type":"object"},` +
			`"annotations":null}]}`,
	} {
		if want := decode(t, fields); !reflect.DeepEqual(items[kind], want) {
			t.Errorf("%s\n got %v\nwant %v", kind, items[kind], want)
		}
	}
	annotation := at(items["message"], "content", 0, "annotations", 0)
	if at(annotation, "start_index") != 6.0 || at(annotation, "url") != "https://example.org/" {
		t.Errorf("annotation %v", annotation)
	}
	if at(m, "usage", "output_tokens") != 48.0 {
		t.Errorf("the usage is not that of four turns: %v", m["usage"])
	}
	if r.header.Get("X-Ossrun-Ignored") != "" {
		t.Errorf("ignored: %s", r.header.Get("X-Ossrun-Ignored"))
	}
}

func TestBuiltinToolsStream(t *testing.T) {
	srv, f := toolServer(t, toolUser, nil)
	list := events(t, post(t, srv, "/v1/responses", `{"input":"x","stream":true,`+builtinTools+
		`}`).body)
	conformResponses(t, list)
	var names []string
	for _, e := range list {
		for _, part := range []string{"code_interpreter", "web_search", "mcp", "annotation"} {
			name := strings.TrimPrefix(e.name, "response.")
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
	output := at(list[len(list)-1].json, "response", "output").([]any)
	b, _ := json.Marshal(append(output, map[string]any{"role": "user", "content": "And?"}))
	post(t, srv, "/v1/responses", `{"input":`+string(b)+`}`)
	got := history(f.last(t))
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
	srv, f := server(t, answers("ok"))
	r := post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"?"},
		{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","queries":["a b"]}},
		{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"open_page","url":"https://example.org/"}},
		{"type":"web_search_call","id":"ws_3","status":"failed","action":{"type":"find_in_page","url":"x","pattern":"\"q\""}},
		{"type":"web_search_call","id":"ws_4","status":"completed"}]}`)
	got := history(f.last(t))
	for _, want := range []string{`to browser.search`, `{"query":"a b"}`, "to browser.open",
		`{"id":"https://example.org/"}`, "to browser.find", `{"pattern":"\"q\""}`,
		"Error: the call failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("the history lacks %q:\n%s", want, got)
		}
	}
	if h := r.header.Get("X-Ossrun-Ignored"); h != "web_search_call" { // the last one
		t.Errorf("ignored: %s", h)
	}
}

// A tool that fails is told to the model and shown as failed; the turn goes on.
func TestBuiltinToolsFail(t *testing.T) {
	srv, f := toolServer(t, toolUser, errors.New("no route"))
	list := events(t, post(t, srv, "/v1/responses", `{"input":"x","stream":true,`+builtinTools+
		`}`).body)
	conformResponses(t, list)
	m := at(list[len(list)-1].json, "response")
	for _, i := range at(m, "output").([]any) {
		if kind := at(i, "type"); strings.HasSuffix(kind.(string), "_call") &&
			at(i, "status") != "failed" {
			t.Errorf("%v", i)
		}
	}
	if at(m, "status") != "completed" || !strings.Contains(history(f.last(t)), "no route") {
		t.Errorf("status %v\n%s", at(m, "status"), history(f.last(t)))
	}
}

func TestBuiltinToolsAreBounded(t *testing.T) {
	srv, f := toolServer(t, toolUser, nil)
	post(t, srv, "/v1/responses", `{"input":"x","max_tool_calls":2,`+builtinTools+`}`)
	if got := f.last(t); got.ToolChoice != grammar.None || strings.Count(history(got), "\ntool ") != 2 {
		t.Errorf("choice %v after\n%s", got.ToolChoice, history(got))
	}
}

// What has no back end is passed over, and the client is told.
func TestBuiltinToolsPassedOver(t *testing.T) {
	for fields, want := range map[string]string{
		`{"type":"web_search"},{"type":"mcp","server_label":"unknown"}`:                      "mcp",
		`{"type":"file_search","vector_store_ids":[]}`:                                       "file_search",
		`{"type":"mcp","server_label":"sums","require_approval":"never"},{"type":"imagine"}`: "imagine",
	} {
		for path, input := range map[string]string{"/v1/responses": `"input":"x"`,
			"/v1/chat/completions": `"messages":[` + hello + `]`} {
			srv, _ := toolServer(t, toolUser, nil)
			r := post(t, srv, path, `{`+input+`,"tools":[`+fields+`]}`)
			if got := r.header.Get("X-Ossrun-Ignored"); got != want {
				t.Errorf("%s %s: ignored %q", path, fields, got)
			}
		}
	}
	srv, f := toolServer(t, toolUser, nil)
	for _, choice := range []string{`"none"`,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"sums"}]}`} {
		post(t, srv, "/v1/responses", `{"input":"x","tool_choice":`+choice+`,`+builtinTools+`}`)
		if r := f.last(t); r.Python || r.Browser {
			t.Errorf("%s: python %v, browser %v", choice, r.Python, r.Browser)
		}
	}
	for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
		post(t, srv, path, `{"input":"x","messages":[`+hello+`]}`)
		if r := f.last(t); r.Python || r.Browser || len(r.Functions) > 0 {
			t.Errorf("%s has tools that nobody asked for", path)
		}
	}
}

// In chat completions the client sees its own calls only, numbered from 0.
func TestBuiltinToolsInChat(t *testing.T) {
	srv, _ := toolServer(t, toolUser, nil)
	tools := strings.TrimSuffix(builtinTools, "]") + `,` + weatherTool + `]`
	for _, stream := range []string{"false", "true"} {
		r := post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],"stream":`+stream+`,`+
			tools+`}`)
		for _, hidden := range []string{"print(42)", "the answer", "sums_add"} {
			if strings.Contains(r.body, hidden) {
				t.Errorf("%q is shown: %s", hidden, r.body)
			}
		}
		if !strings.Contains(r.body, `"tool_calls"`) || !strings.Contains(r.body, "get_weather") ||
			strings.Contains(r.body, `"index":3`) {
			t.Errorf("%s", r.body)
		}
		r = post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],"stream":`+stream+`,`+
			builtinTools+`}`)
		if !strings.Contains(r.body, "Tö 42") || strings.Contains(r.body, `"tool_calls"`) {
			t.Errorf("%s", r.body)
		}
	}
}

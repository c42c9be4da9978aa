package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// historyBody is the body of a request with these messages.
func historyBody(path, messages string) string {
	switch path {
	case "/v1/responses":
		return `{"input":[` + messages + `]}`
	case "/v1/messages":
		return `{"max_tokens":9,"messages":[` + messages + `]}`
	}
	return `{"model":"gpt-oss:20b","stream":false,"messages":[` + messages + `]}`
}

// histories are messages of each route with all the fields that clients send. The model reads the
// words in capitals.
var histories = []struct{ path, messages string }{
	{"/v1/chat/completions", `{"role":"system","content":"WSYSTEM"},{"role":"developer","name":"d",` +
		`"content":[{"type":"text","text":"WDEVELOPER"}]},{"role":"user","name":"u","content":"WUSER"},` +
		`{"role":"assistant","content":"WANSWER","refusal":null,"name":"a","annotations":[],` +
		`"audio":{"id":"a"}},{"role":"user","content":[{"type":"text","text":"WPART"},` +
		`{"type":"image_url","image_url":{"url":"data:","detail":"low"}},{"type":"input_audio",` +
		`"input_audio":{"data":"AA==","format":"wav"}},{"type":"file","file":{"filename":"f",` +
		`"file_data":"V0ZJTEU=","file_id":null}}]}`},
	{"/v1/chat/completions", `{"role":"assistant","content":"WNOTE","reasoning":"WTHINK",` +
		`"provider_specific_fields":{"reasoning_content":"r"},"tool_calls":[{"id":"c1","index":0,` +
		`"type":"function","function":{"name":"read","arguments":"{\"a\":\"WARGUMENT\"}"}},` +
		`{"id":"c2","type":"custom","custom":{"name":"patch","input":"WINPUT"}}]},` +
		`{"role":"tool","tool_call_id":"c1","name":"read","content":"WRESULT"},` +
		`{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"WDONE"},` +
		`{"type":"image_url","image_url":{"url":"data:"}}]}`},
	{"/v1/chat/completions", `{"role":"assistant","content":null,"function_call":{"name":"old",` +
		`"arguments":"{}"}},{"role":"function","name":"old","content":"WOLD"}`},
	{"/v1/chat/completions", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},` +
		`{"type":"text","text":"WTEXT"},{"type":"refusal","refusal":"WREFUSAL"}]}`},

	{"/v1/responses", `{"type":"message","id":"msg_1","status":"completed","role":"developer",` +
		`"content":"WDEVELOPER"},{"role":"user","content":[{"type":"input_text","text":"WPART"},` +
		`{"type":"input_image","image_url":"data:","detail":"auto","file_id":null},` +
		`{"type":"input_file","filename":"f","file_data":"V0ZJTEU="}]},{"type":"reasoning",` +
		`"id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":` +
		`"reasoning_text","text":"WTHINK"}],"encrypted_content":"e","status":"completed"},` +
		`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text",` +
		`"text":"WNOTE","annotations":[],"logprobs":[]}]}`},
	{"/v1/responses", `{"type":"function_call","id":"fc_1","call_id":"c1","namespace":"n",` +
		`"name":"read","arguments":"{\"a\":\"WARGUMENT\"}","status":"completed"},` +
		`{"type":"function_call_output","id":"o","call_id":"c1","output":"WRESULT","status":"x"},` +
		`{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"WINPUT"},` +
		`{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text",` +
		`"text":"WDONE"}]}`},
	// an output of an unknown tool is not read without its call
	{"/v1/responses", `{"type":"local_shell_call","id":"l","call_id":"c3","action":{"type":"exec",` +
		`"command":["ls"],"env":{}},"status":"completed"},{"type":"local_shell_call_output",` +
		`"call_id":"c3","output":"shell"},{"type":"file_search_call","id":"f1","queries":["q"],` +
		`"results":[{"filename":"f","text":"WFOUND"}]},{"type":"web_search_call","id":"ws","status":` +
		`"completed","action":{"type":"search","query":"WQUERY","queries":["q"]}},{"type":` +
		`"web_search_call","action":{"type":"open_page","url":"WURL"}},{"type":"web_search_call",` +
		`"action":{"type":"find_in_page","url":"u","pattern":"WPATTERN"}},{"type":` +
		`"code_interpreter_call","id":"ci","code":"WCODE","container_id":"c","outputs":[{"type":` +
		`"logs","logs":"WLOGS"}]}`},
	{"/v1/responses", `{"type":"mcp_list_tools","server_label":"s","tools":[{"name":"t"}]},` +
		`{"type":"mcp_call","id":"m1","server_label":"s","name":"t","arguments":"{}","output":"WMCP",` +
		`"error":null,"approval_request_id":null},{"type":"mcp_call","id":"m2","server_label":"s",` +
		`"name":"t","arguments":"{}","error":{"type":"e","message":"WERROR","content":[{"type":` +
		`"text","text":"x"}]}},{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s",` +
		`"name":"t","arguments":"WASKED"},{"type":"additional_tools","role":"developer","tools":[` +
		`{"type":"function","name":"more","description":"d","strict":false,"parameters":{"type":` +
		`"object"}},{"type":"namespace","name":"n","tools":[{"type":"custom","name":"x","format":` +
		`{"type":"text"}}]}]},{"type":"compaction","id":"k","encrypted_content":"e"},{"type":` +
		`"item_reference","id":"msg_9"}`},

	{"/v1/messages", `{"role":"system","content":[{"type":"text","text":"WSYSTEM","cache_control":` +
		`{"type":"ephemeral"}}]},{"role":"user","content":"WUSER"},{"role":"assistant","content":[` +
		`{"type":"thinking","thinking":"WTHINK","signature":"s"},{"type":"redacted_thinking",` +
		`"data":"d"},{"type":"text","text":"WANSWER","citations":[]}]},{"role":"user","content":[` +
		`{"type":"text","text":"WPART"},{"type":"image","source":{"type":"base64","media_type":` +
		`"image/png","data":"AA=="}},{"type":"document","title":"t","context":"c","source":{"type":` +
		`"text","media_type":"text/plain","data":"WDOCUMENT"}}]}`},
	{"/v1/messages", `{"role":"assistant","content":[{"type":"text","text":"WNOTE"},{"type":` +
		`"tool_use","id":"t1","name":"read","input":{"a":"WARGUMENT"}}]},{"role":"user","content":[` +
		`{"type":"tool_result","tool_use_id":"t1","is_error":false,"content":[{"type":"text",` +
		`"text":"WRESULT"},{"type":"image","source":{"type":"base64","data":"AA=="}}]}]}`},
	{"/v1/messages", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":` +
		`"web_search","input":{"query":"WQUERY"}},{"type":"web_search_tool_result","tool_use_id":` +
		`"s1","content":[{"type":"web_search_result","url":"u","title":"WTITLE"}]},{"type":"text",` +
		`"text":"WANSWER"}]}`},

	{"/api/chat", `{"role":"system","content":"WSYSTEM"},{"role":"user","content":"WUSER","images":[` +
		`"AA=="]},{"role":"assistant","content":"WANSWER","thinking":"WTHINK","images":null}`},
	{"/api/chat", `{"role":"assistant","content":"WNOTE","tool_calls":[{"id":"c1","type":"function",` +
		`"function":{"index":0,"name":"read","arguments":{"a":"WARGUMENT"}}}]},{"role":"tool",` +
		`"tool_name":"read","tool_call_id":"c1","content":"WRESULT"}`},
}

// broken are values that no field of a history has; nil: the field is missing.
var broken = []any{nil, json.RawMessage("null"), json.RawMessage(`""`), json.RawMessage("[]"),
	json.RawMessage("{}"), json.RawMessage("0"), json.RawMessage(`"text"`)}

// eachBroken passes copies of v with each value in it replaced or missing.
func eachBroken(v any, at string, pass func(v any, at string)) {
	set := func(path string, put func(b any), old any) {
		for _, b := range broken {
			put(b)
			pass(v, fmt.Sprintf("%s = %s", path, b))
		}
		put(old)
	}
	var walk func(inner any, at string)
	walk = func(inner any, at string) {
		switch inner := inner.(type) {
		case map[string]any:
			for name, old := range inner {
				set(at+"."+name, func(b any) {
					if inner[name] = b; b == nil {
						delete(inner, name)
					}
				}, old)
				walk(old, at+"."+name)
			}
		case []any:
			for i, old := range inner {
				set(fmt.Sprint(at, "[", i, "]"), func(b any) { inner[i] = b }, old)
				walk(old, fmt.Sprint(at, "[", i, "]"))
			}
		}
	}
	walk(v, at)
}

// TestHistoryNeverRefuses breaks every field of every kind of earlier message, before the user's
// last one and, where no user speaks in them, after it. The request is answered, its prompt can be
// rendered, and the model reads the other messages.
func TestHistoryNeverRefuses(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	words := regexp.MustCompile(`\bW[A-Z]{2,}`)
	store := records.NewStore()
	checked := 0
	for _, h := range histories {
		var list any
		hosttest.Check(t, json.Unmarshal([]byte("["+h.messages+"]"), &list))
		// Anthropic's API has no answer that the client begins
		speaks := strings.Contains(h.messages, "WPART") || strings.Contains(h.messages, "WUSER") ||
			h.path == "/v1/messages" && !strings.Contains(h.messages, `"tool_result"`)
		check := func(changed any, at string) {
			items := changed.([]any)
			text := string(hosttest.Must(json.Marshal(items))(t))
			text = text[1 : len(text)-1]
			const now = `{"role":"user","content":"WNOW"}`
			bodies := []string{text + "," + now}
			if !speaks && !(h.path == "/v1/messages" && strings.HasPrefix(at, "[1]")) {
				bodies = append(bodies, now+","+text)
			}
			for _, messages := range bodies {
				checked++
				r := porttest.Ask(t, "POST", srv.URL+h.path, historyBody(h.path, messages))
				if r.Status != 200 {
					t.Errorf("%s %s: %d %s", h.path, at, r.Status, r.Body)
					continue
				}
				ids, err := session.Prompt(context.Background(), store, f.Last(t))
				if err != nil {
					t.Errorf("%s %s: %v", h.path, at, err)
					continue
				}
				prompt := string(token.Get().Decode(nil, ids)) + sessiontest.History(f.Last(t))
				for i, m := range items {
					if strings.HasPrefix(at, fmt.Sprintf("[%d]", i)) {
						continue
					}
					own := string(hosttest.Must(json.Marshal(m))(t))
					for _, word := range words.FindAllString(own, -1) {
						if !strings.Contains(prompt, word) {
							t.Errorf("%s %s: %s is not read:\n%s", h.path, at, word, prompt)
						}
					}
				}
				if !strings.Contains(prompt, "WNOW") {
					t.Errorf("%s %s: the user is not heard:\n%s", h.path, at, prompt)
				}
			}
		}
		check(list, "as it is")
		eachBroken(list, "", check)
	}
	if checked < 3000 {
		t.Errorf("only %d requests", checked)
	}
}

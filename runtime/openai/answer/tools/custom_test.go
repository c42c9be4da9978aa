package tools_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// patchGrammar is in the shape of Codex's for apply_patch.
const patchGrammar = `start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?
hunk: add_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
update_hunk: "*** Update File: " filename LF change?
filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF
%import common.LF
`

const patch = "*** Begin Patch\n*** Add File: a.go\n+x {\n*** End Patch\n"

// custom is a custom tool of responses, or of chat completions.
func custom(t *testing.T, chat bool, format string) string {
	t.Helper()
	if !chat {
		return `{"type":"custom","name":"apply_patch","description":"Patches.","format":` + format + `}`
	}
	if syntax, ok := strings.CutPrefix(format, `{"type":"grammar",`); ok {
		format = `{"type":"grammar","grammar":{` + syntax + `}`
	}
	return `{"type":"custom","custom":{"name":"apply_patch","format":` + format + `}}`
}

func grammarFormat(syntax, definition string) string {
	b, _ := json.Marshal(definition)
	return `{"type":"grammar","syntax":"` + syntax + `","definition":` + string(b) + `}`
}

func TestCustomTools(t *testing.T) {
	format := grammarFormat("lark", patchGrammar)
	for _, stream := range []string{"false", "true"} {
		srv, f := porttest.Server(t, sessiontest.Calls("apply_patch", patch))
		r := porttest.Post(t, srv, "/v1/responses", `{"input":"x","stream":`+stream+`,"tools":[`+
			custom(t, false, format)+`],"tool_choice":{"type":"custom","name":"apply_patch"}}`)
		var m any
		if stream == "true" {
			list := porttest.Events(t, r.Body)
			porttest.ConformResponses(t, list)
			m = porttest.At(list[len(list)-1].Json, "response")
			for _, want := range []string{"custom_tool_call_input.delta", "custom_tool_call_input.done"} {
				if !strings.Contains(r.Body, "event: response."+want) {
					t.Errorf("no event %s", want)
				}
			}
		} else {
			m = porttest.Decode(t, r.Body)
			porttest.Conform(t, "Response", m)
		}
		call := porttest.LastItem(m, "custom_tool_call")
		item, _ := json.Marshal(call)
		delete(call, "id")
		if want := map[string]any{"type": "custom_tool_call", "call_id": "call_1", "status": "completed",
			"name": "apply_patch", "input": patch}; !reflect.DeepEqual(call, want) {
			t.Errorf("%v", call)
		}
		if want := map[string]any{"type": "custom", "name": "apply_patch"}; !reflect.DeepEqual(
			porttest.At(m, "tool_choice"), want) {
			t.Errorf("tool_choice %v", porttest.At(m, "tool_choice"))
		}
		asked := f.Last(t)
		held := asked.Texts["apply_patch"]
		if held == nil || !strings.Contains(asked.Functions[0].Description, "begin_patch: ") {
			t.Fatalf("%+v", asked)
		}
		porttest.Post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"x"},`+string(item)+
			`,{"type":"custom_tool_call_output","call_id":"call_1","output":"Done"}],"tools":[`+
			custom(t, false, format)+`]}`)
		h := f.Last(t)
		if got := h.Messages[1]; got.Recipient != "functions.apply_patch" || got.ContentType != "" ||
			got.Text() != patch || h.Messages[2].Text() != "Done" {
			t.Errorf("%s", sessiontest.History(h))
		}

		r = porttest.Post(t, srv, "/v1/chat/completions", `{"stream":`+stream+`,"messages":[`+porttest.Hello+
			`],"tools":[`+custom(t, true, format)+`]}`)
		if strings.Contains(r.Body, `"function"`) || !strings.Contains(r.Body, `"type":"custom"`) {
			t.Errorf("%s", r.Body)
		}
		if stream == "false" {
			m := porttest.Decode(t, r.Body)
			porttest.Conform(t, "CreateChatCompletionResponse", m)
			if got := porttest.At(m, "choices", 0, "message", "tool_calls", 0, "custom", "input"); got != patch {
				t.Errorf("%v", got)
			}
		}
	}
}

// The model writes nothing but the format, by the mask of a real turn.
func TestCustomToolIsHeld(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Calls("apply_patch", "12"))
	porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[`+custom(t, false,
		grammarFormat("regex", "[0-9]+"))+`]}`)
	g := f.Last(t).Texts["apply_patch"]
	for text, want := range map[string]bool{"12": true, "": false, "x": false, `"12"`: false} {
		m, whole := g.Matcher(), true
		for _, id := range token.Get().Encode(nil, text) {
			whole = whole && m.Accept(id)
		}
		if got := whole && m.Done(); got != want {
			t.Errorf("%q is held: %v", text, got)
		}
	}
}

func TestCustomToolsRefuse(t *testing.T) {
	for format, want := range map[string]string{
		grammarFormat("lark", "start: x\nx: \"a\"\n%declare Y"):     "line 3",
		grammarFormat("lark", "start: e\n\ne: e \"+\" e | /[0-9]/"): "line 3",
		grammarFormat("regex", "(?=a)"):                             "regular expression",
		grammarFormat("ebnf", "x"):                                  "lark or regex",
		`{"type":"xml"}`:                                            "text or grammar",
	} {
		srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
		for path, body := range map[string]string{
			"/v1/responses":        `{"input":"x","tools":[` + custom(t, false, format) + `]}`,
			"/v1/chat/completions": `{"messages":[` + porttest.Hello + `],"tools":[` + custom(t, true, format) + `]}`,
		} {
			r := porttest.Ask(t, "POST", srv.URL+path, body)
			if r.Status != 400 || !strings.Contains(r.Body, want) {
				t.Errorf("%s %s: %d %s", path, format, r.Status, r.Body)
			}
		}
	}
}

// Tools of a namespace are the model's under one name, the client's under two.
func TestNamespaces(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Calls("agents_spawn", `{}`))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"x"},`+
		`{"type":"function_call","namespace":"agents","name":"wait","call_id":"c1","arguments":"{}"},`+
		`{"type":"function_call_output","call_id":"c1","output":"ok"}],`+
		`"tools":[{"type":"namespace","name":"agents","description":"d","tools":[`+
		`{"type":"function","name":"spawn","parameters":{"type":"object"}},`+
		`{"type":"custom","name":"say"}]}]}`).Body)
	porttest.Conform(t, "Response", m)
	call := porttest.LastItem(m, "function_call")
	if call["name"] != "spawn" || call["namespace"] != "agents" {
		t.Errorf("%v", call)
	}
	r := f.Last(t)
	if len(r.Functions) != 2 || r.Functions[0].Name != "agents_spawn" ||
		r.Functions[1].Name != "agents_say" {
		t.Errorf("%v", r.Functions)
	}
	if _, text := r.Texts["agents_say"]; !text || !strings.Contains(sessiontest.History(r),
		"to functions.agents_wait #c1") {
		t.Errorf("%s", sessiontest.History(r))
	}
}

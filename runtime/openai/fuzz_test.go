// Whatever bytes come, the parsers answer with a request or with a fault of the client, and what
// they accept is something a session can start.

package openai

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
)

func seedBodies(f *testing.F) {
	f.Helper()
	for _, s := range []string{`{}`, `{"messages":[{"role":"user","content":"hi"}]}`,
		`{"input":"hi","previous_response_id":"x"}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"a"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"x"}]}],"logit_bias":{"1":1},"stop":["a"],"seed":1e3}`,
		`{"input":[{"type":"reasoning","content":[{"text":"a"}],"encrypted_content":"ossrun1.YQ"},{"type":"item_reference","id":"i"},{"type":"function_call","name":"f"}],"tools":[{"type":"function","name":"f","parameters":{}}]}`,
		`{"reasoning":{"effort":"high"},"chat_template_kwargs":7,"text":{"format":{"type":"text"}},"tool_choice":{"type":"allowed_tools","tools":[{}]}}`,
		`{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"a":{"type":"string"}}}}}}`,
		`{"input":"hi","text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":{"enum":[1,2]}}},"tools":[{"type":"function","name":"f","strict":true}],"tool_choice":{"type":"function","name":"f"}}`,
		`{"input":"hi","guided_regex":"a+","max_reasoning_tokens":0}`} {
		f.Add([]byte(s))
	}
	files, err := filepath.Glob("testdata/clients/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			var q recordedRequest
			if json.Unmarshal([]byte(line), &q) == nil && len(q.Body) > 4 && len(q.Body) < 8<<10 {
				f.Add([]byte(q.Body))
			}
		}
	}
}

// wellFormed checks what every fault must be.
func wellFormed(t *testing.T, f *fault) {
	t.Helper()
	if f.status < 400 || f.status > 499 || f.kind != kindInvalid || f.message == "" {
		t.Errorf("fault %+v", f)
	}
}

func startable(t *testing.T, r session.Request) {
	t.Helper()
	if err := r.Params.Check(1 << 18); err != nil {
		t.Error(err)
	}
	if r.MaxTokens < 0 || r.Effort != "low" && r.Effort != "medium" && r.Effort != "high" {
		t.Errorf("max tokens %d, effort %q", r.MaxTokens, r.Effort)
	}
	for _, m := range r.Messages {
		if m.Role == "" || m.Role == harmony.RoleTool && m.Name == "" ||
			!utf8.ValidString(m.Text()) || strings.ContainsAny(m.Recipient+m.Name, " <>|\n") {
			t.Errorf("message %+v", m)
		}
	}
	if r.ToolChoice == grammar.Required && len(r.Functions) == 0 ||
		r.ToolChoice == grammar.Named && !slices.ContainsFunc(r.Functions,
			func(f harmony.ToolDescription) bool { return f.Name == r.ToolName }) {
		t.Errorf("choice %d of %q among %d functions", r.ToolChoice, r.ToolName, len(r.Functions))
	}
	if r.Final != nil {
		r.Final.Matcher() // of a nil *grammar.Compiled it would panic
	}
	for _, f := range r.Functions {
		if !toolName(f.Name) || f.Parameters != nil && !json.Valid(f.Parameters) {
			t.Errorf("function %+v", f)
		}
	}
}

func FuzzChatRequest(f *testing.F) {
	seedBodies(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := parseObject(b)
		if bad == nil {
			r := parseChat(o, 0)
			if bad = o.c.first; bad == nil {
				startable(t, r.turns[0])
				return
			}
		}
		wellFormed(t, bad)
	})
}

func FuzzResponsesRequest(f *testing.F) {
	seedBodies(f)
	store := session.NewStore()
	item := json.RawMessage(`{"role":"user","content":"a"}`)
	if err := putResponse(store, "x", storedResponse{Body: json.RawMessage(`{}`),
		Items: map[string]json.RawMessage{"i": item}}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := parseObject(b)
		if bad == nil {
			r := parseResponses(o, &Options{Store: store})
			if bad = o.c.first; bad == nil {
				startable(t, r.turns[0])
				if _, err := marshal(&r.response); err != nil {
					t.Error(err)
				}
				return
			}
		}
		wellFormed(t, bad)
	})
}

func FuzzMessagesRequest(f *testing.F) {
	seedBodies(f)
	f.Add([]byte(turnOf(askFiles+`,{"role":"assistant","content":[{"type":"thinking","signature":`+
		`"ossrun1.YQ"},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user",`+
		`"content":[{"type":"tool_result","tool_use_id":"c"}]}`, `,"thinking":{"type":"enabled",`+
		`"budget_tokens":9}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, bad := parseObject(b)
		if bad == nil {
			r := parseMessages(o, 0)
			if bad = o.c.first; bad == nil {
				startable(t, r.turns[0])
				return
			}
		}
		wellFormed(t, bad)
	})
}

func FuzzOllamaRequest(f *testing.F) {
	seedBodies(f)
	f.Add([]byte(`{"model":"a","prompt":"b","raw":true,"think":"low","options":{"stop":"c"}}`))
	f.Add([]byte(`{"model":"a","messages":[{"role":"assistant","tool_calls":[{"function":` +
		`{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f"}],"format":"json"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &port{}
		for _, read := range []reader{p.readOllamaChat, p.readOllamaGenerate} {
			o, bad := parseObject(b)
			if bad == nil {
				r, _ := read(o)
				if bad = o.c.first; bad == nil {
					startable(t, r.turns[0])
					continue
				}
			}
			wellFormed(t, bad)
		}
	})
}

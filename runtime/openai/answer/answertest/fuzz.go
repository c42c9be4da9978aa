// Package answertest has seeds and checks of all fuzzers of request readers: for any bytes, the
// reader returns a request or a fault of the client, and a session can start every accepted
// request.
package answertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// RecordedRequest is a line of testdata/clients. Response and Calls are the ids of the recorded
// answer.
type RecordedRequest struct {
	Method, Path string
	Body         json.RawMessage
	Status       int
	Response     string
	Calls        []string
}

// SeedBodies adds bodies of every dialect; recorded is the folder of requests that clients have
// sent.
func SeedBodies(f *testing.F, recorded string) {
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
	files := hosttest.Must(filepath.Glob(filepath.Join(recorded, "*.jsonl")))(f)
	for _, file := range files {
		b := hosttest.Must(os.ReadFile(file))(f)
		for line := range strings.SplitSeq(string(b), "\n") {
			var q RecordedRequest
			if json.Unmarshal([]byte(line), &q) == nil && len(q.Body) > 4 && len(q.Body) < 8<<10 {
				f.Add([]byte(q.Body))
			}
		}
	}
}

// WellFormed checks the form of a fault.
func WellFormed(t *testing.T, status int, kind, message string) {
	t.Helper()
	if status < 400 || status > 499 || kind != "invalid_request_error" || message == "" {
		t.Errorf("fault %d %q %q", status, kind, message)
	}
}

// headerWord is a word of a Harmony header.
var headerWord = regexp.MustCompile(`^[-A-Za-z0-9_.:/]{1,128}$`)

// Startable checks a request that a reader has accepted.
func Startable(t *testing.T, r session.Request) {
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
		r.Final.Matcher() // a nil *grammar.Grammar in r.Final would panic
	}
	for _, f := range r.Functions {
		if !headerWord.MatchString(f.Name) || f.Parameters != nil && !json.Valid(f.Parameters) {
			t.Errorf("function %+v", f)
		}
	}
}

// AskFiles is a user's message.
const AskFiles = `{"role":"user","content":[{"type":"text","text":"Context."},{"type":"text","text":"List the files."}]}`

const bashTool = `{"name":"Bash","description":"Run a command","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}`

// TurnOf is a request of an agent in Claude Code's form.
func TurnOf(messages, extra string) string {
	return `{"model":"gpt-oss:20b","max_tokens":32000,"system":[{"type":"text","text":` +
		`"x-anthropic-billing-header: cc_version=2.1.329.649; cc_entrypoint=sdk-cli;"},` +
		`{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],` +
		`"metadata":{"user_id":"{\"device_id\":\"0\"}"},"context_management":{"edits":[]},` +
		`"output_config":{"effort":"high"},"tools":[` + bashTool + `],"messages":[` + messages +
		`]` + extra + `}`
}

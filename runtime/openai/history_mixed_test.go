package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Results of tools are refused neither next to the user's text nor where no user speaks.
func TestResultsAreNeverRefused(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	const use = `{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use",` +
		`"id":"t1","name":"read","input":{}}]},`
	for _, bad := range broken {
		value := `null`
		if bad != nil {
			value = string(hosttest.Must(json.Marshal(bad))(t))
		}
		for path, messages := range map[string]string{
			"/v1/messages": use + `{"role":"user","content":[{"type":"tool_result","tool_use_id":` +
				value + `,"content":"WRESULT"},{"type":"text","text":"WNOW"}]}`,
			"/v1/messages ": use + `{"role":"user","content":[{"type":"tool_result","tool_use_id":` +
				`"t1","content":` + value + `},{"type":"text","text":"WNOW"}]}`,
			"/v1/responses": `{"type":"function_call","call_id":"c","name":"f","arguments":"WNOW"},` +
				`{"type":"function_call_output","call_id":` + value + `,"output":"WRESULT"}`,
			"/v1/chat/completions": `{"role":"assistant","content":"WNOW","tool_calls":[{"id":"c",` +
				`"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":` + value +
				`,"content":"WRESULT"}`,
		} {
			path = strings.TrimSpace(path)
			r := porttest.Ask(t, "POST", srv.URL+path, historyBody(path, messages))
			if r.Status != 200 {
				t.Errorf("%s %s: %d %s", path, value, r.Status, r.Body)
				continue
			}
			text := sessiontest.History(f.Last(t))
			if !strings.Contains(text, "WNOW") ||
				strings.Contains(messages, "WRESULT") && !strings.Contains(text, "WRESULT") {
				t.Errorf("%s %s reads %s", path, value, text)
			}
		}
	}
}

// A document is the same text in the history as in the newest message: else its pages are computed
// again with the next question.
func TestDocumentsStayTheSame(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	for _, source := range []string{`{"type":"text","media_type":"text/plain","data":"page one"}`,
		`{"type":"base64","media_type":"text/plain","data":"cGFnZSBvbmU="}`,
		`{"type":"content","content":[{"type":"text","text":"page one"}]}`} {
		message := `{"role":"user","content":[{"type":"document","title":"Plan","context":"of us",` +
			`"source":` + source + `},{"type":"text","text":"Read it."}]}`
		read := func(messages string) string {
			porttest.Post(t, srv, "/v1/messages", historyBody("/v1/messages", messages))
			return f.Last(t).Messages[0].Text()
		}
		first := read(message)
		later := read(message + `,{"role":"assistant","content":"Yes."},{"role":"user","content":"So?"}`)
		if first != later || first != "Plan:\nof us\npage one\n\nRead it." {
			t.Errorf("%s: first %q, then %q", source, first, later)
		}
	}
}

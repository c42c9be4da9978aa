package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestConversationIsCompacted(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Summarises("They said word."))
	old := `{"role":"user","content":"` + strings.Repeat("word ", 1200) +
		`"},{"role":"assistant","content":"Fine."},{"role":"user","content":"And now?"}`
	const at1000 = `"context_management":[{"type":"compaction","compact_threshold":1000}]`
	const from = "user: Summary of our conversation so far:\n\nThey said word.\nuser: And now?"
	for _, stream := range []string{"false", "true"} {
		r := porttest.Post(t, srv, "/v1/responses", `{"input":[`+old+`],`+at1000+`,"stream":`+stream+`}`)
		if got := sessiontest.History(f.Last(t)); got != from {
			t.Errorf("the turn goes on from %q", got)
		}
		var m map[string]any
		if stream == "true" {
			list := porttest.Events(t, r.Body)
			porttest.ConformResponses(t, list)
			m = porttest.At(list[len(list)-1].Json, "response").(map[string]any)
		} else {
			m = porttest.Decode(t, r.Body)
			porttest.Conform(t, "Response", m)
		}
		output := m["output"].([]any)
		if len(output) != 3 || porttest.At(output, 0, "type") != "compaction" ||
			porttest.At(m, "usage", "input_tokens") != 80.0 || porttest.At(m, "usage", "output_tokens") != 24.0 {
			t.Fatalf("%v", m)
		}
		// the next response, of what the server has and of what the client has
		next := from + "\nassistant <final>: ok\nuser: More?"
		porttest.Post(t, srv, "/v1/responses", `{"input":"More?","previous_response_id":"`+
			m["id"].(string)+`"}`)
		if got := withoutReasoning(sessiontest.History(f.Last(t))); got != next {
			t.Errorf("the next turn goes on from %q", got)
		}
		b, _ := json.Marshal(output)
		porttest.Post(t, srv, "/v1/responses", `{"input":[`+old+`,`+string(b[1:len(b)-1])+
			`,{"role":"user","content":"More?"}]}`)
		if got := withoutReasoning(sessiontest.History(f.Last(t))); got != next {
			t.Errorf("with the item it goes on from %q", got)
		}
	}
}

// All that the model reads of a conversation is kept apart by its salt: summaries and counts too.
func TestSaltOfEveryTurn(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Summarises("They said word."))
	const salted = `{"model":"gpt-oss:20b","cache_salt":"a","input":[`
	old := `{"role":"user","content":"` + strings.Repeat("word ", 1200) +
		`"},{"role":"assistant","content":"Fine."},{"role":"user","content":"And now?"}]`
	for path, more := range map[string]string{
		"/v1/responses":         `,"context_management":[{"type":"compaction","compact_threshold":1000}]`,
		"/v1/responses/compact": "", "/v1/responses/input_tokens": ""} {
		before := len(f.Requests)
		porttest.Post(t, srv, path, salted+old+more+`}`)
		if len(f.Requests) == before {
			t.Errorf("%s: no turn", path)
		}
		for _, r := range f.Requests[before:] {
			if r.Salt != "\na" {
				t.Errorf("%s: a turn has the salt %q", path, r.Salt)
			}
		}
	}
}

// withoutReasoning leaves out the lines of analysis.
func withoutReasoning(history string) string {
	var list []string
	for line := range strings.SplitSeq(history, "\n") {
		if !strings.Contains(line, "<analysis>") {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

func TestConversationIsNotCompacted(t *testing.T) {
	const short = `{"role":"user","content":"a"},{"role":"assistant","content":"b"},` +
		`{"role":"user","content":"c"}`
	long := strings.Replace(short, `"a"`, `"`+strings.Repeat("word ", 1200)+`"`, 1)
	srv, f := porttest.Server(t, sessiontest.Summarises("")) // the model has no words for it
	for _, c := range []struct{ input, how string }{
		{short, `{"type":"compaction","compact_threshold":1000}`},
		{long, `{"type":"compaction"}`}, // three quarters of the context of 4096
		{long, `{"type":"compaction","compact_threshold":1000}`},
		{`{"role":"user","content":"` + strings.Repeat("word ", 1200) + `"}`,
			`{"type":"compaction","compact_threshold":1000}`}, // there is nothing before it
	} {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":[`+c.input+
			`],"context_management":[`+c.how+`]}`).Body)
		if porttest.At(m, "output", 0, "type") != "reasoning" || m["status"] != "completed" ||
			strings.Contains(sessiontest.History(f.Last(t)), "Summary") {
			t.Errorf("%s: %v", c.how, m)
		}
	}
	for how, param := range map[string]string{
		`[{"type":"forget"}]`:                            "context_management[0].type",
		`[{"type":"compaction","compact_threshold":10}]`: "context_management[0].compact_threshold",
		`7`: "context_management",
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","context_management":`+how+`}`)
		if m := porttest.Decode(t, r.Body); r.Status != 400 || porttest.At(m, "error", "param") != param {
			t.Errorf("%s: %d %s", how, r.Status, r.Body)
		}
	}
}

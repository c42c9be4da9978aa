package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// summarises answers "ok", and text where it is asked for a summary.
func summarises(text string) script {
	return func(r session.Request) ([]session.Event, error) {
		if strings.HasPrefix(r.Messages[len(r.Messages)-1].Text(), "Write a summary") {
			return []session.Event{session.Answer{Text: text}, done(session.FinishStop)}, nil
		}
		return answers("ok")(r)
	}
}

func TestConversationIsCompacted(t *testing.T) {
	srv, f := server(t, summarises("They said word."))
	old := `{"role":"user","content":"` + strings.Repeat("word ", 1200) +
		`"},{"role":"assistant","content":"Fine."},{"role":"user","content":"And now?"}`
	const at1000 = `"context_management":[{"type":"compaction","compact_threshold":1000}]`
	const from = "user: Summary of our conversation so far:\n\nThey said word.\nuser: And now?"
	for _, stream := range []string{"false", "true"} {
		r := post(t, srv, "/v1/responses", `{"input":[`+old+`],`+at1000+`,"stream":`+stream+`}`)
		if got := history(f.last(t)); got != from {
			t.Errorf("the turn goes on from %q", got)
		}
		var m map[string]any
		if stream == "true" {
			list := events(t, r.body)
			conformResponses(t, list)
			m = at(list[len(list)-1].json, "response").(map[string]any)
		} else {
			m = decode(t, r.body)
			conform(t, "Response", m)
		}
		output := m["output"].([]any)
		if len(output) != 3 || at(output, 0, "type") != "compaction" ||
			at(m, "usage", "input_tokens") != 80.0 || at(m, "usage", "output_tokens") != 24.0 {
			t.Fatalf("%v", m)
		}
		// the next response, of what the server has and of what the client has
		next := from + "\nassistant <final>: ok\nuser: More?"
		post(t, srv, "/v1/responses", `{"input":"More?","previous_response_id":"`+
			m["id"].(string)+`"}`)
		if got := withoutReasoning(history(f.last(t))); got != next {
			t.Errorf("the next turn goes on from %q", got)
		}
		b, _ := json.Marshal(output)
		post(t, srv, "/v1/responses", `{"input":[`+old+`,`+string(b[1:len(b)-1])+
			`,{"role":"user","content":"More?"}]}`)
		if got := withoutReasoning(history(f.last(t))); got != next {
			t.Errorf("with the item it goes on from %q", got)
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
	srv, f := server(t, summarises("")) // the model has no words for it
	for _, c := range []struct{ input, how string }{
		{short, `{"type":"compaction","compact_threshold":1000}`},
		{long, `{"type":"compaction"}`}, // three quarters of the context of 4096
		{long, `{"type":"compaction","compact_threshold":1000}`},
		{`{"role":"user","content":"` + strings.Repeat("word ", 1200) + `"}`,
			`{"type":"compaction","compact_threshold":1000}`}, // there is nothing before it
	} {
		m := decode(t, post(t, srv, "/v1/responses", `{"input":[`+c.input+
			`],"context_management":[`+c.how+`]}`).body)
		if at(m, "output", 0, "type") != "reasoning" || m["status"] != "completed" ||
			strings.Contains(history(f.last(t)), "Summary") {
			t.Errorf("%s: %v", c.how, m)
		}
	}
	for how, param := range map[string]string{
		`[{"type":"forget"}]`:                            "context_management[0].type",
		`[{"type":"compaction","compact_threshold":10}]`: "context_management[0].compact_threshold",
		`7`: "context_management",
	} {
		r := ask(t, "POST", srv.URL+"/v1/responses", `{"input":"x","context_management":`+how+`}`)
		if m := decode(t, r.body); r.status != 400 || at(m, "error", "param") != param {
			t.Errorf("%s: %d %s", how, r.status, r.body)
		}
	}
}

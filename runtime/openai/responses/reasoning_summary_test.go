package responses_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Reasoning where the client asks for a summary of it.

func TestReasoningSummary(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	const thought = "They ask. I answer."
	for _, how := range []string{"summary", "generate_summary"} {
		body := `{"input":"hi","reasoning":{"` + how + `":"auto"}`
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", body+`}`).Body)
		porttest.Conform(t, "Response", m)
		item := porttest.At(m, "output", 0).(map[string]any)
		if porttest.At(m, "reasoning", "summary") != "auto" || !reflect.DeepEqual(item["summary"],
			[]any{map[string]any{"type": "summary_text", "text": thought}}) ||
			len(item["content"].([]any)) != 0 ||
			request.Unseal(item["encrypted_content"].(string)) != thought {
			t.Errorf("%s: %v", how, m)
		}
		list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", body+`,"stream":true}`).Body)
		porttest.ConformResponses(t, list)
		wantSummary(t, list, thought)
		// the kept events are the same
		id := porttest.At(list[0].Json, "response", "id").(string)
		kept := porttest.Events(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+id+"?stream=true", "").Body)
		porttest.ConformResponses(t, kept)
		wantSummary(t, kept, thought)
		// what the client sends back is read, also without the text
		porttest.Post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"hi"},`+
			`{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":"`+
			item["encrypted_content"].(string)+`"},{"type":"function_call","call_id":"c",`+
			`"name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c",`+
			`"output":"x"}]}`)
		if got := sessiontest.History(f.Last(t)); !strings.Contains(got, thought) {
			t.Errorf("the history lacks the reasoning:\n%s", got)
		}
	}
	for _, off := range []string{`{"summary":null}`, `{}`} {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi","reasoning":`+off+`}`).Body)
		if porttest.At(m, "output", 0, "content", 0, "text") != thought ||
			len(porttest.At(m, "output", 0, "summary").([]any)) != 0 || porttest.At(m, "reasoning", "summary") != nil {
			t.Errorf("%s: %v", off, m)
		}
	}
	r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"hi","reasoning":{"summary":"long"}}`)
	porttest.WantFault(t, r, 400, fields.KindInvalid, "reasoning.summary", "",
		"auto, concise, detailed")
}

func wantSummary(t *testing.T, list []porttest.Event, thought string) {
	t.Helper()
	var kinds []string
	var said strings.Builder
	for _, e := range list {
		if strings.Contains(e.Name, "reasoning_text") {
			t.Errorf("%s", e.Name)
		}
		name, ok := strings.CutPrefix(e.Name, "response.reasoning_summary_")
		if !ok {
			continue
		}
		if e.Json["summary_index"] != 0.0 || e.Json["content_index"] != nil {
			t.Errorf("%s", e.Data)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != name {
			kinds = append(kinds, name)
		}
		delta, _ := e.Json["delta"].(string)
		said.WriteString(delta)
	}
	want := []string{"part.added", "text.delta", "text.done", "part.done"}
	if !reflect.DeepEqual(kinds, want) || said.String() != thought {
		t.Errorf("%v say %q", kinds, said.String())
	}
}

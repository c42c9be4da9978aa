package openai

// Reasoning where the client asks for a summary of it.

import (
	"reflect"
	"strings"
	"testing"
)

func TestReasoningSummary(t *testing.T) {
	srv, f := server(t, answers("ok"))
	const thought = "They ask. I answer."
	for _, how := range []string{"summary", "generate_summary"} {
		body := `{"input":"hi","reasoning":{"` + how + `":"auto"}`
		m := decode(t, post(t, srv, "/v1/responses", body+`}`).body)
		conform(t, "Response", m)
		item := at(m, "output", 0).(map[string]any)
		if at(m, "reasoning", "summary") != "auto" || !reflect.DeepEqual(item["summary"],
			[]any{map[string]any{"type": "summary_text", "text": thought}}) ||
			len(item["content"].([]any)) != 0 ||
			unseal(item["encrypted_content"].(string)) != thought {
			t.Errorf("%s: %v", how, m)
		}
		list := events(t, post(t, srv, "/v1/responses", body+`,"stream":true}`).body)
		conformResponses(t, list)
		wantSummary(t, list, thought)
		// the kept events are the same
		id := at(list[0].json, "response", "id").(string)
		kept := events(t, ask(t, "GET", srv.URL+"/v1/responses/"+id+"?stream=true", "").body)
		conformResponses(t, kept)
		wantSummary(t, kept, thought)
		// what the client sends back is read, also without the text
		post(t, srv, "/v1/responses", `{"input":[{"role":"user","content":"hi"},`+
			`{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":"`+
			item["encrypted_content"].(string)+`"},{"type":"function_call","call_id":"c",`+
			`"name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c",`+
			`"output":"x"}]}`)
		if got := history(f.last(t)); !strings.Contains(got, thought) {
			t.Errorf("the history lacks the reasoning:\n%s", got)
		}
	}
	for _, off := range []string{`{"summary":null}`, `{}`} {
		m := decode(t, post(t, srv, "/v1/responses", `{"input":"hi","reasoning":`+off+`}`).body)
		if at(m, "output", 0, "content", 0, "text") != thought ||
			len(at(m, "output", 0, "summary").([]any)) != 0 || at(m, "reasoning", "summary") != nil {
			t.Errorf("%s: %v", off, m)
		}
	}
	r := ask(t, "POST", srv.URL+"/v1/responses", `{"input":"hi","reasoning":{"summary":"long"}}`)
	wantFault(t, r, 400, kindInvalid, "reasoning.summary", "", "auto, concise, detailed")
}

func wantSummary(t *testing.T, list []event, thought string) {
	t.Helper()
	var kinds []string
	var said strings.Builder
	for _, e := range list {
		if strings.Contains(e.name, "reasoning_text") {
			t.Errorf("%s", e.name)
		}
		name, ok := strings.CutPrefix(e.name, "response.reasoning_summary_")
		if !ok {
			continue
		}
		if e.json["summary_index"] != 0.0 || e.json["content_index"] != nil {
			t.Errorf("%s", e.data)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != name {
			kinds = append(kinds, name)
		}
		delta, _ := e.json["delta"].(string)
		said.WriteString(delta)
	}
	want := []string{"part.added", "text.delta", "text.done", "part.done"}
	if !reflect.DeepEqual(kinds, want) || said.String() != thought {
		t.Errorf("%v say %q", kinds, said.String())
	}
}

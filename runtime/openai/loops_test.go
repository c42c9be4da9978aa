package openai

// What the port says of turns that were ended because they repeated themselves.

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// A loop is told of, in each API's own way, and detect_loops reaches the session.
func TestLoopsAreNamed(t *testing.T) {
	srv, f := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "ha ha"}, session.Done{
			Finish: session.FinishLoop, Usage: usage, Err: session.ErrLoop}}, nil
	})
	r := post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],"detect_loops":false}`)
	if at(decode(t, r.body), "choices", 0, "finish_reason") != "stop" ||
		r.header.Get("X-Ossrun-Loop") == "" || r.header.Get("X-Ossrun-Ignored") != "" {
		t.Errorf("%s, %v", r.body, r.header)
	}
	if !f.last(t).AllowLoops {
		t.Error("detect_loops is not heard")
	}
	whole := at(decode(t, r.body), "choices", 0, "ossrun", "loop")
	list := events(t, post(t, srv, "/v1/chat/completions",
		`{"messages":[`+hello+`],"stream":true}`).body)
	for i, e := range list[:len(list)-1] {
		conform(t, "CreateChatCompletionStreamResponse", e.json)
		last := i == len(list)-2
		if loop := at(e.json, "choices", 0, "ossrun", "loop"); last != (loop != nil) ||
			last && (loop != session.ErrLoop.Error() || loop != whole) {
			t.Errorf("%s", e.data)
		}
	}
	const message = `"max_tokens":9,"messages":[` + hello + `]`
	r = post(t, srv, "/v1/messages", `{`+message+`}`)
	if m := decode(t, r.body); at(m, "ossrun", "loop") != whole || m["stop_reason"] != "end_turn" ||
		r.header.Get("X-Ossrun-Loop") == "" {
		t.Errorf("%s, %v", r.body, r.header)
	}
	list = events(t, post(t, srv, "/v1/messages", `{"stream":true,`+message+`}`).body)
	for _, e := range list {
		if loop := at(e.json, "ossrun", "loop"); (e.name == "message_delta") != (loop == whole) ||
			loop == nil != (e.json["ossrun"] == nil) {
			t.Errorf("%s", e.data)
		}
	}
	for _, body := range []string{`{"input":"hi"}`, `{"input":"hi","stream":true}`} {
		r := post(t, srv, "/v1/responses", body)
		if !strings.Contains(r.body, `"status":"failed"`) ||
			!strings.Contains(r.body, `"code":"server_error"`) ||
			!strings.Contains(r.body, "repeated the same tokens") ||
			strings.Contains(r.body, "max_output_tokens\"}") {
			t.Errorf("%s", r.body)
		}
	}
	if f.last(t).AllowLoops {
		t.Error("loops are allowed without a word")
	}
}

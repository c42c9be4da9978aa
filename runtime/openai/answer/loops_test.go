package answer_test

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// What the port says of turns that were ended because they repeated themselves.

// A loop is reported, in each API's own way, and detect_loops reaches the session.
func TestLoopsAreNamed(t *testing.T) {
	srv, f := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "ha ha"}, session.Done{
			Finish: session.FinishLoop, Usage: sessiontest.Usage, Err: session.ErrLoop}}, nil
	})
	r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"detect_loops":false}`)
	if porttest.At(porttest.Decode(t, r.Body), "choices", 0, "finish_reason") != "stop" ||
		r.Header.Get("X-Ossrun-Loop") == "" || r.Header.Get("X-Ossrun-Ignored") != "" {
		t.Errorf("%s, %v", r.Body, r.Header)
	}
	if !f.Last(t).AllowLoops {
		t.Error("detect_loops is not heard")
	}
	whole := porttest.At(porttest.Decode(t, r.Body), "choices", 0, "ossrun", "loop")
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/chat/completions",
		`{"messages":[`+porttest.Hello+`],"stream":true}`).Body)
	for i, e := range list[:len(list)-1] {
		porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
		last := i == len(list)-2
		if loop := porttest.At(e.Json, "choices", 0, "ossrun", "loop"); last != (loop != nil) ||
			last && (loop != session.ErrLoop.Error() || loop != whole) {
			t.Errorf("%s", e.Data)
		}
	}
	const message = `"max_tokens":9,"messages":[` + porttest.Hello + `]`
	r = porttest.Post(t, srv, "/v1/messages", `{`+message+`}`)
	if m := porttest.Decode(t, r.Body); porttest.At(m, "ossrun", "loop") != whole || m["stop_reason"] != "end_turn" ||
		r.Header.Get("X-Ossrun-Loop") == "" {
		t.Errorf("%s, %v", r.Body, r.Header)
	}
	list = porttest.Events(t, porttest.Post(t, srv, "/v1/messages", `{"stream":true,`+message+`}`).Body)
	for _, e := range list {
		if loop := porttest.At(e.Json, "ossrun", "loop"); (e.Name == "message_delta") != (loop == whole) ||
			loop == nil != (e.Json["ossrun"] == nil) {
			t.Errorf("%s", e.Data)
		}
	}
	for _, body := range []string{`{"input":"hi"}`, `{"input":"hi","stream":true}`} {
		r := porttest.Post(t, srv, "/v1/responses", body)
		if !strings.Contains(r.Body, `"status":"failed"`) ||
			!strings.Contains(r.Body, `{"type":"server_error","code":"invalid_prompt",`) ||
			!strings.Contains(r.Body, "repeated the same tokens") ||
			strings.Contains(r.Body, "max_output_tokens\"}") {
			t.Errorf("%s", r.Body)
		}
	}
	if f.Last(t).AllowLoops {
		t.Error("loops are allowed without a word")
	}
}

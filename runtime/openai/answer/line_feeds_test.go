package answer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Line feeds of any kind, and what looks like the protocol, come through a stream whole, in each
// API.
func TestLineFeedsInsideEvents(t *testing.T) {
	const text = "one\ntwo\r\nthree\rfour\n\n\ndata: [DONE]\n\nevent: x\n: " +
		"y\u2028six\u2029seven\u0085\x00\v\f end\n"
	srv, _ := porttest.Server(t, sessiontest.Answers(text))
	for _, c := range []struct {
		path, body string
		piece      func(e porttest.Event) any
	}{
		{"/v1/chat/completions", `{"stream":true,"messages":[` + porttest.Hello + `]}`,
			func(e porttest.Event) any { return porttest.At(e.Json, "choices", 0, "delta", "content") }},
		{"/v1/completions", `{"stream":true,"prompt":"x"}`, func(e porttest.Event) any {
			return porttest.At(e.Json,
				"choices", 0, "text")
		}},
		{"/v1/responses", `{"stream":true,"input":"x"}`, func(e porttest.Event) any {
			if e.Name == "response.output_text.delta" {
				return porttest.At(e.Json, "delta")
			}
			return nil
		}},
	} {
		body := porttest.Post(t, srv, c.path, c.body).Body
		var got strings.Builder
		for _, e := range porttest.Events(t, body) {
			if piece := c.piece(e); piece != nil {
				fmt.Fprint(&got, piece)
			}
		}
		if got.String() != text {
			t.Errorf("%s: %q", c.path, got.String())
		}
		if strings.ContainsAny(body, "\r\u2028\u2029\v\f") && strings.Contains(body, "\r") {
			t.Errorf("%s: a line of the stream is broken: %q", c.path, body)
		}
	}
}

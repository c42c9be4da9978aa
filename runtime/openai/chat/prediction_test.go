package chat_test

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// A client's prediction reaches the turn, and its result is in the usage.
func TestPrediction(t *testing.T) {
	srv, f := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "x = 1"}, session.Done{
			Finish: session.FinishStop, Usage: session.Usage{Prompt: 9, Completion: 8, Accepted: 5,
				Rejected: 2}}}, nil
	})
	const told = `"completion_tokens_details":{"reasoning_tokens":0,` +
		`"accepted_prediction_tokens":5,"rejected_prediction_tokens":2}`
	const untold = `"completion_tokens_details":{"reasoning_tokens":0}`
	for _, c := range []struct{ body, want, usage string }{
		{`,"prediction":{"type":"content","content":"x = 1\n"}`, "x = 1\n", told},
		{`,"prediction":{"type":"content","content":[{"type":"text","text":"x "},` +
			`{"type":"text","text":"= 1"}]}`, "x = 1", told},
		{`,"prediction":{"type":"content","content":"x"},"stream":true,` +
			`"stream_options":{"include_usage":true}`, "x", told},
		{`,"prediction":null`, "", untold},
		{``, "", untold},
	} {
		r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]`+c.body+`}`)
		if got := f.Last(t).Prediction; got != c.want || !strings.Contains(r.Body, c.usage) {
			t.Errorf("%s: the turn has %q\n%s", c.body, got, r.Body)
		}
	}
	for _, c := range []struct{ prediction, param, code string }{
		{`"x"`, "prediction", "invalid_type"},
		{`{"type":"tokens","content":"x"}`, "prediction.type", ""},
		{`{"type":"content","content":7}`, "prediction.content", "invalid_type"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"prediction":`+
			c.prediction+`}`)
		porttest.WantFault(t, r, 400, fields.KindInvalid, c.param, c.code, "prediction")
	}
}

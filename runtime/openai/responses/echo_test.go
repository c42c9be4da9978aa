package responses_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// What a request asks for comes back in the response as it was asked for.
func TestResponseEcho(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","tools":[`+porttest.WeatherFunction+`,`+
		strings.ReplaceAll(porttest.WeatherFunction, "get_weather", "other")+`,{"type":"web_search","search_context_size":"low"}],`+
		`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"get_weather"}]},`+
		`"max_tool_calls":3,"truncation":"auto","text":{"verbosity":"low"},"safety_identifier":"s","prompt_cache_key":"k",`+
		`"presence_penalty":0.5,"include":["reasoning.encrypted_content"]}`).Body)
	porttest.Conform(t, "Response", m)
	for key, want := range map[string]any{
		"tool_choice": map[string]any{"type": "allowed_tools", "mode": "auto",
			"tools": []any{map[string]any{"type": "function", "name": "get_weather"}}},
		"max_tool_calls": 3.0, "truncation": "auto", "safety_identifier": "s",
		"prompt_cache_key": "k", "presence_penalty": 0.5, "frequency_penalty": 0.0,
	} {
		if got := m[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if porttest.At(m, "tools", 1, "name") != "other" || porttest.At(m, "tools", 2, "search_context_size") != "low" ||
		porttest.At(m, "text", "verbosity") != "low" {
		t.Errorf("tools %v, text %v", m["tools"], m["text"])
	}
	if n := len(f.Last(t).Functions); n != 1 {
		t.Errorf("%d functions are offered, not the one that is allowed", n)
	}
	m = porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","tool_choice":"none","tools":[`+
		porttest.WeatherFunction+`]}`).Body)
	if porttest.At(m, "tools", 0, "name") != "get_weather" || m["tool_choice"] != "none" {
		t.Errorf("with none: %v %v", m["tools"], m["tool_choice"])
	}
}

// Before the end usage is there and null, and no event has an encrypted_content that is null.
func TestResponsesStreamHasRequiredFields(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"input":"x","stream":true}`).Body)
	first := list[0].Json["response"].(map[string]any)
	for _, key := range []string{"usage", "safety_identifier", "presence_penalty",
		"frequency_penalty", "error", "incomplete_details", "completed_at"} {
		if _, ok := first[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if first["usage"] != nil {
		t.Errorf("usage %v", first["usage"])
	}
	for _, e := range list {
		if strings.Contains(e.Data, `"encrypted_content":null`) {
			t.Errorf("%s", e.Data)
		}
	}
}

// An overlong conversation loses its oldest messages, and the client is told.
func TestTruncation(t *testing.T) {
	fits := func(r session.Request) ([]session.Event, error) {
		if len(r.Messages) > 3 {
			return nil, &sched.ContextLengthError{Needed: 5000, Max: 4096}
		}
		return sessiontest.Answers("ok")(r)
	}
	srv, f := porttest.Server(t, fits)
	input := `"input":[{"role":"user","content":"1"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":"x"},{"role":"assistant","content":"2"},{"role":"user","content":"3"}]`
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{`+input+`}`), 400,
		fields.KindInvalid, "input", fields.CodeContextLength, "maximum context length")
	r := porttest.Post(t, srv, "/v1/responses", `{"truncation":"auto",`+input+`}`)
	if got := sessiontest.History(f.Last(t)); got != "assistant <final>: 2\nuser: 3" {
		t.Errorf("history\n%s", got)
	}
	if got := r.Header.Get(responses.TruncatedHeader); !strings.HasPrefix(got, "3 of the oldest messages") {
		t.Errorf("%s: %q", responses.TruncatedHeader, got)
	}
	srv, _ = porttest.Server(t, sessiontest.Fails(&sched.ContextLengthError{Needed: 5000,
		Max: 4096}))
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"truncation":"auto",`+input+`}`), 400,
		fields.KindInvalid, "input", fields.CodeContextLength, "maximum context length")
}

// A stream whose client has left is stored as cancelled, without an error.
func TestResponseOfClientThatLeft(t *testing.T) {
	store := records.NewStore()
	gate := make(chan struct{})
	srv, f := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "Hel"}, sessiontest.Pause{Until: gate},
			session.Answer{Text: "lo"}, sessiontest.Done(session.FinishStop)}, nil
	}, func(o *openai.Options) { o.Store = store })
	ctx, leave := context.WithCancel(t.Context())
	stream := porttest.OpenStream(t, ctx, srv.URL+"/v1/responses", `{"input":"x","stream":true}`)
	created := stream.Next(t)
	for stream.Next(t).Name != "response.output_text.delta" {
	}
	leave()
	porttest.Eventually(t, func() (any, bool) { return nil, f.Active() == 0 })
	id := porttest.At(created.Json, "response", "id").(string)
	r := porttest.Eventually(t, func() (porttest.Reply, bool) {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+id, "")
		return r, r.Status == 200
	})
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "Response", m)
	if m["status"] != "cancelled" || m["error"] != nil ||
		porttest.At(m, "output", 0, "content", 0, "text") != "Hel" {
		t.Errorf("%s", r.Body)
	}
}

// An error's code is one of OpenAI's list.
func TestResponseErrorCodes(t *testing.T) {
	for _, err := range []error{errors.New("x"), sched.ErrClosed,
		&sched.EngineError{Fault: errors.New("y")},
		&sched.ContextLengthError{Needed: 2, Max: 1}, &session.BusyError{}} {
		srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Done{Finish: session.FinishError, Err: err}}, nil
		})
		porttest.ConformResponses(t, porttest.Events(t, porttest.Post(t, srv, "/v1/responses",
			`{"input":"x","stream":true}`).Body))
	}
}

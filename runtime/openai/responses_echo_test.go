package openai

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// What a request asks for comes back in the response as it was asked for.
func TestResponseEcho(t *testing.T) {
	srv, f := server(t, answers("ok"))
	m := decode(t, post(t, srv, "/v1/responses", `{"input":"x","tools":[`+weatherFunction+`,`+
		strings.ReplaceAll(weatherFunction, "get_weather", "other")+`,{"type":"web_search","search_context_size":"low"}],`+
		`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"get_weather"}]},`+
		`"max_tool_calls":3,"truncation":"auto","text":{"verbosity":"low"},"safety_identifier":"s","prompt_cache_key":"k",`+
		`"presence_penalty":0.5,"include":["reasoning.encrypted_content"]}`).body)
	conform(t, "Response", m)
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
	if at(m, "tools", 1, "name") != "other" || at(m, "tools", 2, "search_context_size") != "low" ||
		at(m, "text", "verbosity") != "low" {
		t.Errorf("tools %v, text %v", m["tools"], m["text"])
	}
	if n := len(f.last(t).Functions); n != 1 {
		t.Errorf("%d functions are offered, not the one that is allowed", n)
	}
	m = decode(t, post(t, srv, "/v1/responses", `{"input":"x","tool_choice":"none","tools":[`+
		weatherFunction+`]}`).body)
	if at(m, "tools", 0, "name") != "get_weather" || m["tool_choice"] != "none" {
		t.Errorf("with none: %v %v", m["tools"], m["tool_choice"])
	}
}

// Before the end usage is there and null, and no event has an encrypted_content that is null.
func TestResponsesStreamHasRequiredFields(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	list := events(t, post(t, srv, "/v1/responses", `{"input":"x","stream":true}`).body)
	first := list[0].json["response"].(map[string]any)
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
		if strings.Contains(e.data, `"encrypted_content":null`) {
			t.Errorf("%s", e.data)
		}
	}
}

// A conversation that is too long loses its oldest messages, and the client is told.
func TestTruncation(t *testing.T) {
	fits := func(r session.Request) ([]session.Event, error) {
		if len(r.Messages) > 3 {
			return nil, &sched.ContextLengthError{Asked: 5000, Max: 4096}
		}
		return answers("ok")(r)
	}
	srv, f := server(t, fits)
	input := `"input":[{"role":"user","content":"1"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":"x"},{"role":"assistant","content":"2"},{"role":"user","content":"3"}]`
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses", `{`+input+`}`), 400, kindInvalid, "input",
		codeContextLength, "maximum context length")
	r := post(t, srv, "/v1/responses", `{"truncation":"auto",`+input+`}`)
	if got := history(f.last(t)); got != "assistant <final>: 2\nuser: 3" {
		t.Errorf("history\n%s", got)
	}
	if got := r.header.Get(truncatedHeader); !strings.HasPrefix(got, "3 of the oldest messages") {
		t.Errorf("%s: %q", truncatedHeader, got)
	}
	srv, _ = server(t, fails(&sched.ContextLengthError{Asked: 5000, Max: 4096}))
	wantFault(t, ask(t, "POST", srv.URL+"/v1/responses", `{"truncation":"auto",`+input+`}`), 400,
		kindInvalid, "input", codeContextLength, "maximum context length")
}

// A stream whose client has left is stored as cancelled, without an error.
func TestResponseOfClientThatLeft(t *testing.T) {
	store := session.NewStore()
	gate := make(chan struct{})
	srv, f := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "Hel"}, pause{until: gate},
			session.Answer{Text: "lo"}, done(session.FinishStop)}, nil
	}, func(o *Options) { o.Store = store })
	ctx, leave := context.WithCancel(t.Context())
	stream := openStream(t, ctx, srv.URL+"/v1/responses", `{"input":"x","stream":true}`)
	created := stream.next(t)
	for stream.next(t).name != "response.output_text.delta" {
	}
	leave()
	for f.active() > 0 {
		time.Sleep(time.Millisecond)
	}
	id := at(created.json, "response", "id").(string)
	r := eventually(t, func() (reply, bool) {
		r := ask(t, "GET", srv.URL+"/v1/responses/"+id, "")
		return r, r.status == 200
	})
	m := decode(t, r.body)
	conform(t, "Response", m)
	if m["status"] != "cancelled" || m["error"] != nil ||
		at(m, "output", 0, "content", 0, "text") != "Hel" {
		t.Errorf("%s", r.body)
	}
}

// An error's code is one of OpenAI's list.
func TestResponseErrorCodes(t *testing.T) {
	for _, err := range []error{errors.New("x"), sched.ErrClosed,
		&sched.EngineError{Fault: errors.New("y")},
		&sched.ContextLengthError{Asked: 2, Max: 1}, &session.BusyError{}} {
		srv, _ := server(t, func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Done{Finish: session.FinishError, Err: err}}, nil
		})
		conformResponses(t, events(t, post(t, srv, "/v1/responses",
			`{"input":"x","stream":true}`).body))
	}
}

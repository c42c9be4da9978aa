package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/remote/pool"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// outcome is the part of a result that must not depend on the device.
func outcome(r session.Result) string {
	for i := range r.Calls {
		r.Calls[i].ID = ""
	}
	return fmt.Sprintf("%q %q %q %v %v %d+%d %v", r.Reasoning, r.Commentary, r.Answer, r.Calls,
		r.Done.Finish, r.Done.Usage.Prompt, r.Done.Usage.Completion, r.Tokens)
}

// Over another port of ours the demo says, greedily, what it says without one, token for token and
// with the same logprobs, whatever the grammar asks.
func TestElsewhere(t *testing.T) {
	here := loadHere(t, "demo", 4096)
	defer here.Close()
	handler := openai.NewHandler(openai.Options{Options: answer.Options{
		Models: sessiontest.Single(here.Model, here.Stats, "demo")}})
	defer handler.Close()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	o := DefaultOptions()
	o.Keep.RememberOnDisk, o.Notify = false, func(string) {}
	stopped := 0
	m := NewUpstream(t.Context(), o, Upstream{Name: "demo", Servers: pool.Options{
		URLs: []string{srv.URL}}, Start: func(context.Context, func(error)) (func() error, error) {
		return func() error { stopped++; return nil }, nil
	}})
	hosttest.Check(t, m.Ensure(t.Context()))
	if list := m.List(); len(list) != 1 || list[0].ID != "demo" || list[0].ContextLength != 4096 {
		t.Errorf("%+v", list)
	}
	if _, err := m.Get(t.Context(), "20b"); !errors.Is(err, session.ErrUnknownModel) {
		t.Error(err)
	}
	over := hosttest.Must(m.Get(t.Context(), "demo"))(t)
	form, err := schema.Compile(t.Context(), []byte(`{"type":"object","properties":{"answer":{"type":"string",`+
		`"maxLength":40},"sure":{"type":"boolean"}},"required":["answer","sure"],`+
		`"additionalProperties":false}`), false)
	hosttest.Check(t, err)
	weather := harmony.ToolDescription{Name: "get_weather", Description: "Tells the weather.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},` +
			`"days":{"type":"integer"}},"required":["city","days"],"additionalProperties":false}`)}
	for i, text := range []string{"How do I serve an OpenAI API?", "What is the weather in Paris?"} {
		for _, kind := range []string{"free", "form", "call", "short", "logprobs"} {
			r := session.Request{Messages: []session.Message{session.User(text)},
				Date: "2026-11-23", Effort: []string{"low", "high"}[i],
				Params: sample.Params{Logprobs: -1}, MaxTokens: 200}
			switch kind {
			case "form":
				r.Final = form
			case "call":
				r.Functions = []harmony.ToolDescription{weather}
				r.ToolChoice, r.Strict = grammar.Required, []string{"get_weather"}
			case "short":
				r.MaxTokens = 9
			case "logprobs":
				r.Params.Logprobs = 2
			}
			got, want := run(t, over, r), run(t, here, r)
			if got != want {
				t.Errorf("%s, %s:\n%s, here\n%s", text, kind, got, want)
			}
		}
	}
	if st := m.Stats()["demo"]; st.Failed+st.Cancelled > 0 || st.PrefixHits == 0 ||
		st.Stopped < 5 {
		t.Errorf("%+v", st)
	}
	if st := m.Status()[0]; st.State != Ready || m.Ready() != nil {
		t.Errorf("%s, %v", st.State, m.Ready())
	}
	srv.CloseClientConnections()
	srv.Close()
	err = porttest.Eventually(t, func() (error, bool) { return m.Ready(), m.Ready() != nil })
	if st := m.Status()[0]; st.State != Unreachable || !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("%s, %v", st.State, err)
	}
	if err, lost := m.Close(); err != nil || lost != nil || stopped != 1 {
		t.Error(err, lost, stopped)
	}
}

// Servers that end before they answer end the load, with their reason.
func TestServersThatEndAsTheyStart(t *testing.T) {
	o := DefaultOptions()
	o.Keep.RememberOnDisk, o.Notify = false, func(string) {}
	stopped := 0
	m := NewUpstream(t.Context(), o, Upstream{Name: "demo", Servers: pool.Options{
		URLs: []string{"http://127.0.0.1:1"}}, Start: func(_ context.Context,
		ended func(error)) (func() error, error) {
		time.AfterFunc(50*time.Millisecond, func() { ended(errors.New("vLLM ended")) })
		return func() error { stopped++; return nil }, nil
	}})
	if err := m.Ensure(t.Context()); err == nil || err.Error() != "vLLM ended" || stopped != 1 {
		t.Errorf("%v, stopped %d times", err, stopped)
	}
	if err, lost := m.Close(); err != nil || lost != nil || len(m.Damaged()) > 0 {
		t.Error(err, lost, len(m.Damaged()))
	}
}

// run is the outcome of a turn, and the logprobs of its answer.
func run(t *testing.T, m session.Runner, r session.Request) string {
	t.Helper()
	turn := hosttest.Must(m.Start(t.Context(), r))(t)
	var logprobs []session.TokenLogprob
	for {
		e, ok := turn.Next()
		if !ok {
			return outcome(turn.Result()) + fmt.Sprintf(" %.4v", logprobs)
		}
		if a, ok := e.(session.Answer); ok {
			logprobs = append(logprobs, a.Logprobs...)
		}
	}
}

// A front takes and lists the names of the engine of this process, for every model that it knows.
func TestNamesOfUpstreams(t *testing.T) {
	o := DefaultOptions()
	o.Keep.RememberOnDisk, o.Notify = false, func(string) {}
	for _, e := range models.Catalogue() {
		m := NewUpstream(t.Context(), o, Upstream{Name: e.ID})
		here := newModels(t.Context(), o)
		here.Choose(checkpoint.Model{Name: e.Spec.Name, ID: e.ID, Path: "x"})
		got, want := m.List()[0], here.List()[0]
		if got.ID != want.ID || !slices.Equal(got.Aliases, want.Aliases) || len(m.List()) != 1 {
			t.Errorf("%s: %+v, here %+v", e.ID, m.List(), want)
		}
		for _, other := range models.Catalogue() {
			names := []string{other.ID, strings.ToUpper(other.ID), other.ID + ":latest"}
			if other.HF != "" {
				names = append(names, other.HF, "hf:"+other.HF)
			}
			for _, name := range append(names, other.Aliases...) {
				r, err := m.Get(t.Context(), name)
				if (err == nil) != (other.ID == e.ID) || err == nil && r.ID() != want.ID {
					t.Errorf("%s: %s is %v, %v", e.ID, name, r, err)
				}
			}
		}
		for _, m := range []*Models{m, here} {
			if err, lost := m.Close(); err != nil || lost != nil {
				t.Error(err, lost)
			}
		}
	}
}

// Two models in one front: each name answers with its own servers, and one that is down delays
// neither the start nor the other.
func TestTwoModelsUpstream(t *testing.T) {
	here := loadHere(t, "demo", 4096)
	defer here.Close()
	handler := openai.NewHandler(openai.Options{Options: answer.Options{
		Models: sessiontest.Single(here.Model, here.Stats, "demo")}})
	defer handler.Close()
	srv := httptest.NewServer(handler)
	defer srv.Close()
	o := DefaultOptions()
	o.Keep.RememberOnDisk, o.Notify = false, func(string) {}
	m := NewUpstream(t.Context(), o,
		Upstream{Name: "120b", Servers: pool.Options{URLs: []string{"http://127.0.0.1:1"}}},
		Upstream{Name: "20b", Servers: pool.Options{URLs: []string{srv.URL}}})
	hosttest.Check(t, m.Ensure(t.Context()))
	if m.Ready() != nil || len(m.List()) != 2 || m.First().ID() != "gpt-oss-120b" {
		t.Errorf("%v, %+v", m.Ready(), m.List())
	}
	small := hosttest.Must(m.Get(t.Context(), "gpt-oss:20b"))(t)
	got := run(t, small, session.Request{Messages: []session.Message{session.User("Hello!")},
		Params: sample.Params{Logprobs: -1}, MaxTokens: 5})
	if !strings.Contains(got, "+5 ") || small.ID() != "gpt-oss-20b" {
		t.Errorf("%s: %s", small.ID(), got)
	}
	if err, lost := m.Close(); err != nil || lost != nil {
		t.Error(err, lost)
	}
}

package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// model is a model of a process.
type model struct {
	sessiontest.Model
	closed bool
}

func (m *model) Close() error { m.closed = true; return nil }

// named is a model whose turns end at once.
func named(name string) *model {
	return &model{Model: sessiontest.Model{Name: name, Turns: [][]session.Event{
		{sessiontest.Done(session.FinishStop)}}}}
}

func TestAServerThatIsGoneIsReplaced(t *testing.T) {
	gone := fmt.Errorf("%w (process 1): no such file", session.ErrGone)
	first, second := named("first"), named("second")
	var told []string
	r := &Failover{active: first, report: func(s string) { told = append(told, s) },
		reopen: func(context.Context, string) (openModel, error) { return second, nil }}
	first.Refuse = errors.New("full")
	if _, err := r.Start(t.Context(), session.Request{}); err == nil || r.ID() != "first" {
		t.Errorf("another error moves the chat to %s: %v", r.ID(), err)
	}
	first.Refuse = gone
	if _, err := r.Start(t.Context(), session.Request{}); err != nil || len(second.Requests) != 1 ||
		r.ID() != "second" || !first.closed || !strings.Contains(strings.Join(told, ""), "second") {
		t.Errorf("%s, asked %d times, %q: %v", r.ID(), len(second.Requests), told, err)
	}
	second.Refuse = gone
	r.reopen = func(context.Context, string) (openModel, error) {
		return nil, errors.New("no memory")
	}
	if _, err := r.Start(t.Context(), session.Request{}); err == nil ||
		!strings.Contains(err.Error(), "no memory") || !errors.Is(err, session.ErrGone) {
		t.Errorf("nothing to go on with: %v", err)
	}
}

func TestATurnThatSaidNothingBeginsAnew(t *testing.T) {
	first := named("first")
	r := &Failover{active: first, report: func(string) {},
		reopen: func(context.Context, string) (openModel, error) {
			return named("second"), nil
		}}
	lost := session.Done{Finish: session.FinishError, Err: session.ErrGone}
	turn := r.withRetry(t.Context(), session.FinishedWith(lost), first, session.Request{})
	if e, _ := turn.Next(); e.(session.Done).Finish != session.FinishStop || r.ID() != "second" {
		t.Errorf("%+v of %s", e, r.ID())
	}
	turn = r.withRetry(t.Context(), session.Finished(session.Result{}, session.Answer{Text: "It"},
		lost), first, session.Request{})
	turn.Next()
	if e, _ := turn.Next(); !errors.Is(e.(session.Done).Err, session.ErrGone) {
		t.Errorf("a turn that has said something ends with %+v", e)
	}
}

// loading is a chat that still loads its model when it is joined.
type loading struct {
	*model
	statuses int
	looked   chan struct{} // closed when its status is read again
}

func (*loading) Stop(bool)                                             {}
func (l *loading) Get(context.Context, string) (session.Runner, error) { return l, nil }

func (l *loading) Status() Status {
	device := ""
	if l.statuses++; l.statuses == 2 {
		device = "cpu"
		close(l.looked)
	}
	return Status{Protocol: Protocol, State: Ready,
		Models: []Model{{Name: "demo", Device: device, Context: 100}}}
}

// A chat that joined a process which still loaded its model is no worse off when that dies.
func TestAServerJoinedWhileItLoadedIsReplaced(t *testing.T) {
	folder := t.TempDir()
	l, err := Listen(folder)
	if err != nil {
		t.Fatal(err)
	}
	alive, kill := context.WithCancel(t.Context())
	answered := make(chan struct{})
	host := &loading{model: named("demo"), looked: make(chan struct{})}
	host.Turns = [][]session.Event{{sessiontest.Pause{Until: host.looked},
		sessiontest.Do{Call: func() { l.Close(); kill(); <-answered }}}}
	served := make(chan error, 1)
	go func() { served <- Serve(alive, l, host) }()
	list, err := Servers(t.Context(), folder)
	if err != nil || len(list) != 1 || list[0].Models[0].Device != "" {
		t.Fatalf("%+v: %v", list, err)
	}
	r := &Failover{active: &Client{Server: list[0], Model: list[0].Models[0]},
		report: func(string) {},
		reopen: func(context.Context, string) (openModel, error) {
			return named("second"), nil
		}}
	turn, err := r.Start(t.Context(), session.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := turn.Next(); e.(session.Done).Finish != session.FinishStop || r.ID() != "second" {
		t.Errorf("%+v of %s", e, r.ID())
	}
	close(answered)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

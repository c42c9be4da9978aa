package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// fickle is a model that may be gone.
type fickle struct {
	id     string
	err    error
	asked  int
	closed bool
}

func (f *fickle) ID() string         { return f.id }
func (f *fickle) Device() string     { return "cpu" }
func (f *fickle) ContextLength() int { return 100 }
func (f *fickle) Close() error       { f.closed = true; return nil }
func (f *fickle) Start(context.Context, session.Request) (session.Turn, error) {
	f.asked++
	return nil, f.err
}

func TestAServerThatIsGoneIsReplaced(t *testing.T) {
	gone := fmt.Errorf("%w (process 1): no such file", session.ErrGone)
	first, second := &fickle{id: "first"}, &fickle{id: "second"}
	var told []string
	r := &Failover{active: first, report: func(s string) { told = append(told, s) },
		reopen: func(context.Context, string) (openModel, error) { return second, nil }}
	first.err = errors.New("full")
	if _, err := r.Start(t.Context(), session.Request{}); err == nil || r.ID() != "first" {
		t.Errorf("another error moves the chat to %s: %v", r.ID(), err)
	}
	first.err = gone
	if _, err := r.Start(t.Context(), session.Request{}); err != nil || second.asked != 1 ||
		r.ID() != "second" || !first.closed || !strings.Contains(strings.Join(told, ""), "second") {
		t.Errorf("%s, asked %d times, %q: %v", r.ID(), second.asked, told, err)
	}
	second.err = gone
	r.reopen = func(context.Context, string) (openModel, error) {
		return nil, errors.New("no memory")
	}
	if _, err := r.Start(t.Context(), session.Request{}); err == nil ||
		!strings.Contains(err.Error(), "no memory") || !errors.Is(err, session.ErrGone) {
		t.Errorf("nothing to go on with: %v", err)
	}
}

type fineTurn struct{ fickle }

func (f *fineTurn) Start(context.Context, session.Request) (session.Turn, error) {
	return session.FinishedWith(session.Done{Finish: session.FinishStop}), nil
}

func TestATurnThatSaidNothingBeginsAnew(t *testing.T) {
	first := &fickle{id: "first"}
	r := &Failover{active: first, report: func(string) {},
		reopen: func(context.Context, string) (openModel, error) {
			return &fineTurn{fickle{id: "second"}}, nil
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

// dying is a chat that still loads its model when it is joined, and that is killed in its turn.
type dying struct {
	fickle
	looked chan struct{} // closed when its status has been asked for again
	kill   func()
}

func (d *dying) Stop(bool)                                           {}
func (d *dying) Get(context.Context, string) (session.Runner, error) { return d, nil }
func (d *dying) Result() session.Result                              { return session.Result{} }
func (d *dying) Sampled() []int32                                    { return nil }

func (d *dying) Status() Status {
	device := ""
	if d.asked++; d.asked == 2 {
		device = "cpu"
		close(d.looked)
	}
	return Status{Protocol: Protocol, State: Ready,
		Models: []Model{{Name: "demo", Device: device, Context: 100}}}
}

func (d *dying) Start(context.Context, session.Request) (session.Turn, error) { return d, nil }

func (d *dying) Next() (session.Event, bool) {
	<-d.looked
	d.kill()
	return nil, false
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
	host := &dying{looked: make(chan struct{}), kill: func() { l.Close(); kill(); <-answered }}
	served := make(chan error, 1)
	go func() { served <- Serve(alive, l, host) }()
	list, err := Servers(t.Context(), folder)
	if err != nil || len(list) != 1 || list[0].Models[0].Device != "" {
		t.Fatalf("%+v: %v", list, err)
	}
	r := &Failover{active: &Client{Server: list[0], Model: list[0].Models[0]},
		report: func(string) {},
		reopen: func(context.Context, string) (openModel, error) {
			return &fineTurn{fickle{id: "second"}}, nil
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

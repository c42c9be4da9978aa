// A server's model that outlives the server: if its server is stopped, restarted or killed, a chat
// continues with the next turn on another server, or on a model loaded here. The turn carries the
// whole conversation, so nothing is lost.

package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Failover is the current model and the means to find another. Opener.Open makes it.
type Failover struct {
	reopen func(ctx context.Context, name string) (openModel, error)
	report func(string) // shows a line to the user

	mu     sync.Mutex
	active openModel
	name   string // the requested name; "": the best model here

	reopening sync.Mutex // held while another is being found
}

func (f *Failover) current() openModel {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}

func (f *Failover) ID() string         { return f.current().ID() }
func (f *Failover) Source() string     { return session.SourceOf(f.current()) }
func (f *Failover) Device() string     { return f.current().Device() }
func (f *Failover) ContextLength() int { return f.current().ContextLength() }
func (f *Failover) Close() error       { return f.current().Close() }

// Server is the process that has the model; ok is false if it is this one.
func (f *Failover) Server() (s Server, ok bool) {
	if c, elsewhere := f.current().(*Client); elsewhere {
		return c.Server, true
	}
	return Server{}, false
}

// Models lists the models that Switch can use.
func (f *Failover) Models(context.Context) (list []session.ModelInfo) {
	switch now := f.current().(type) {
	case *localModel:
		return now.models.List()
	case *Client:
		for _, m := range now.Server.Models {
			list = append(list, session.ModelInfo{ID: m.Name, ContextLength: m.Context})
		}
	}
	return list
}

// maxRetries limits the restarts elsewhere of a turn without events.
const maxRetries = 3

// Start starts a turn, on another model if the process that had the model is gone.
func (f *Failover) Start(ctx context.Context, q session.Request) (session.Turn, error) {
	for attempt := 0; ; attempt++ {
		used := f.current()
		turn, err := used.Start(ctx, q)
		if c, ok := used.(*Client); ok && err == nil {
			if c.Model.Device == "" { // it was joined before the model was loaded
				used = f.refresh(ctx, c)
			}
			return f.withRetry(ctx, turn, used, q), nil
		}
		if _, isOwn := used.(*localModel); isOwn || ctx.Err() != nil || err == nil ||
			attempt == maxRetries {
			return turn, err
		}
		if !errors.Is(err, session.ErrGone) && !errors.Is(err, sched.ErrClosed) {
			return nil, err
		}
		if failed := f.replace(ctx, used); failed != nil {
			return nil, errors.Join(err, failed)
		}
	}
}

// withRetry restarts a turn elsewhere if its process ends before the first event but Prefill.
func (f *Failover) withRetry(ctx context.Context, t session.Turn, used openModel,
	q session.Request) session.Turn {
	started := false
	return session.Wrap(t, session.Wrapper{Read: func(t session.Turn) (session.Event, bool,
		session.Turn) {
		e, ok := t.Next()
		d, isDone := e.(session.Done)
		if isDone && !started && errors.Is(d.Err, session.ErrGone) && ctx.Err() == nil {
			err := f.replace(ctx, used)
			if err == nil {
				t, err = f.Start(ctx, q)
			}
			if err != nil {
				t = session.FinishedWith(session.Done{Finish: session.FinishError,
					Err: errors.Join(d.Err, err)})
			}
			e, ok = t.Next()
		}
		_, prefill := e.(session.Prefill)
		started = started || !prefill
		return e, ok, t
	}})
}

// refresh updates the joined process's description of its model and returns the model now in use.
func (f *Failover) refresh(ctx context.Context, used *Client) openModel {
	now, err := used.Refresh(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.active != used {
		return used
	}
	f.active = now
	return now
}

// replace finds another model, unless that was already done since used failed.
func (f *Failover) replace(ctx context.Context, used openModel) error {
	f.reopening.Lock()
	defer f.reopening.Unlock()
	if f.current() != used {
		return nil
	}
	next, err := f.reopen(ctx, f.name)
	if err != nil {
		return err
	}
	where := "which is loaded here"
	if c, ok := next.(*Client); ok {
		where = fmt.Sprintf("which process %d has", c.Server.PID)
	}
	f.report("the other ossrun stopped. The conversation continues with " + next.ID() + ", " +
		where)
	f.setActive(next, f.name)
	return used.Close()
}

func (f *Failover) setActive(next openModel, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active, f.name = next, name
}

// Switch continues with another model, of the same process if it has it.
func (f *Failover) Switch(ctx context.Context, name string) (session.Runner, error) {
	f.reopening.Lock()
	defer f.reopening.Unlock()
	var next openModel
	old := f.current()
	switch now := old.(type) {
	case *localModel:
		model, err := now.models.Get(ctx, name)
		if errors.Is(err, session.ErrUnknownModel) {
			model, err = now.models.Add(name)
		}
		if err != nil {
			return nil, err
		}
		next, old = &localModel{model, now.models, now.cancel}, nil
	case *Client:
		for _, m := range now.Server.Models {
			if isServedBy(name, false, m) {
				next = &Client{Server: now.Server, Model: m}
			}
		}
	}
	if next == nil {
		var err error
		if next, err = f.reopen(ctx, name); err != nil {
			return nil, err
		}
	}
	f.setActive(next, name)
	if old != nil {
		return f, old.Close()
	}
	return f, nil
}

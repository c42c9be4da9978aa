// A server's model that outlives the server: a chat whose server was stopped, restarted or killed
// goes on with the next turn, on another server or on a model that is loaded here. The turn carries
// the whole conversation, so nothing is lost.

package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// rejoining is the model that answers now, and how to get another.
type rejoining struct {
	again func(ctx context.Context, name string) (answerer, error)
	tell  func(string) // a line for the person

	mu   sync.Mutex
	now  answerer
	name string // what was asked for; "": the best that is here

	finding sync.Mutex // held while another is found
}

func (r *rejoining) current() answerer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rejoining) ID() string         { return r.current().ID() }
func (r *rejoining) Device() string     { return r.current().Device() }
func (r *rejoining) ContextLength() int { return r.current().ContextLength() }
func (r *rejoining) Close() error       { return r.current().Close() }

func (r *rejoining) others(context.Context) (list []session.ModelInfo) {
	switch now := r.current().(type) {
	case *alone:
		return now.models.List()
	case *local.Client:
		for _, m := range now.Server.Models {
			list = append(list, session.ModelInfo{ID: m.Name, ContextLength: m.Context})
		}
	}
	return list
}

// moves is how often a turn that has said nothing yet begins anew elsewhere.
const moves = 3

func (r *rejoining) Start(ctx context.Context, q session.Request) (session.Turn, error) {
	for moved := 0; ; moved++ {
		used := r.current()
		turn, err := used.Start(ctx, q)
		if g, ok := used.(*local.Client); ok && err == nil {
			if g.Model.Device == "" { // it was joined before the model was loaded
				used = r.look(ctx, g)
			}
			return r.movable(ctx, turn, used, q), nil
		}
		if _, own := used.(*alone); own || ctx.Err() != nil || err == nil || moved == moves {
			return turn, err
		}
		if !errors.Is(err, session.ErrGone) && !errors.Is(err, sched.ErrClosed) {
			return nil, err
		}
		if failed := r.replace(ctx, used); failed != nil {
			return nil, errors.Join(err, failed)
		}
	}
}

// movable is a turn that begins anew elsewhere if its process goes before it has said anything.
func (r *rejoining) movable(ctx context.Context, t session.Turn, used answerer,
	q session.Request) session.Turn {
	said := false
	return session.Wrap(t, session.Wrapper{Read: func(t session.Turn) (session.Event, bool,
		session.Turn) {
		e, ok := t.Next()
		d, over := e.(session.Done)
		if over && !said && errors.Is(d.Err, session.ErrGone) && ctx.Err() == nil {
			err := r.replace(ctx, used)
			if err == nil {
				t, err = r.Start(ctx, q)
			}
			if err != nil {
				t = session.Ended(session.Done{Finish: session.FinishError,
					Err: errors.Join(d.Err, err)})
			}
			e, ok = t.Next()
		}
		said = true
		return e, ok, t
	}})
}

// look asks the process that was joined how its model is now, and returns what is used from now on.
func (r *rejoining) look(ctx context.Context, used *local.Client) answerer {
	now, err := used.Refresh(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.now != used {
		return used
	}
	r.now = now
	return now
}

// replace finds another model, unless somebody has since used was asked.
func (r *rejoining) replace(ctx context.Context, used answerer) error {
	r.finding.Lock()
	defer r.finding.Unlock()
	if r.current() != used {
		return nil
	}
	next, err := r.again(ctx, r.name)
	if err != nil {
		return err
	}
	where := "which is loaded here"
	if g, ok := next.(*local.Client); ok {
		where = fmt.Sprintf("which process %d has", g.Server.PID)
	}
	r.tell("the process that had the model is gone: goes on with " + next.ID() + ", " + where)
	r.take(next, r.name)
	return used.Close()
}

func (r *rejoining) take(next answerer, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.name = next, name
}

// to goes on with another model: of the same process where it has it.
func (r *rejoining) to(ctx context.Context, name string) (session.Runner, error) {
	r.finding.Lock()
	defer r.finding.Unlock()
	var next answerer
	old := r.current()
	switch now := old.(type) {
	case *alone:
		model, err := now.models.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		next, old = &alone{model, now.models, now.leave}, nil
	case *local.Client:
		for _, m := range now.Server.Models {
			if wantsModel(name, false, m) {
				next = &local.Client{Server: now.Server, Model: m}
			}
		}
	}
	if next == nil {
		var err error
		if next, err = r.again(ctx, name); err != nil {
			return nil, err
		}
	}
	r.take(next, name)
	if old != nil {
		return r, old.Close()
	}
	return r, nil
}

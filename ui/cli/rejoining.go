// A server's model that outlives the server: a chat whose server was stopped, restarted or killed
// goes on with the next turn, on another server or on a model that is loaded here. The turn carries
// the whole conversation, so nothing is lost.

package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/ossrun/ossrun/runtime/join"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// rejoining is the model that answers now, and how to get another when its server is gone.
type rejoining struct {
	again func(context.Context) (answerer, error)
	tell  func(string) // a line for the person

	mu  sync.Mutex
	now answerer

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

func (r *rejoining) Start(ctx context.Context, q session.Request) (session.Turn, error) {
	used := r.current()
	turn, err := used.Start(ctx, q)
	if !errors.Is(err, join.ErrGone) && !errors.Is(err, sched.ErrClosed) || ctx.Err() != nil {
		return turn, err
	}
	next, failed := r.replace(ctx, used)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return next.Start(ctx, q)
}

// replace finds another model, unless somebody has since used was asked.
func (r *rejoining) replace(ctx context.Context, used answerer) (answerer, error) {
	r.finding.Lock()
	defer r.finding.Unlock()
	if now := r.current(); now != used {
		return now, nil
	}
	next, err := r.again(ctx)
	if err != nil {
		return nil, err
	}
	r.tell("goes on with " + next.ID() + " on " + next.Device())
	r.mu.Lock()
	r.now = next
	r.mu.Unlock()
	return next, used.Close()
}

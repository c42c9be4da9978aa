// A model whose tokens are made elsewhere: by vLLM that this program starts, or by servers that run
// already. The port, the tools and the store in front are this program's as ever.

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/replica"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Elsewhere says where.
type Elsewhere struct {
	Name    string // of the model, as the catalogue knows it
	Servers replica.Options
	// Start starts the servers and returns when they answer. stop ends them; ended is told when
	// they end before that. nil: they run already.
	Start func(ctx context.Context, ended func(error)) (stop func() error, err error)
}

// Over is New and Choose for one model elsewhere. Nothing is opened here.
func Over(ctx context.Context, o Options, e Elsewhere) *Models {
	o.Keep.SwapSpace, o.Keep.SwapDisk = 0, 0 // the pages are elsewhere
	m := newModels(ctx, o)
	m.elsewhere, m.settled = &e, Settled{Options: o}
	m.settled.Settings.MaxWaiting = cmp.Or(o.Settings.MaxWaiting, defaultMaxWaiting)
	found := checkpoint.Found{Name: e.Name, Path: "elsewhere"}
	if entry, ok := models.Lookup(e.Name); ok {
		found.Name = entry.ID
	}
	m.Choose(found)
	return m
}

func (m *Models) loadElsewhere(found checkpoint.Found) (_ *Model, err error) {
	var e servers
	if m.elsewhere.Start != nil {
		ended := func(err error) { m.tellDamaged(&ModelError{err}) }
		if e.stop, err = m.elsewhere.Start(m.ctx, ended); err != nil {
			return nil, err
		}
	}
	o := m.elsewhere.Servers
	o.Notify, o.Context = m.options.Notify, m.options.Settings.MaxModelLen
	if e.Pool, err = replica.Open(m.ctx, o); err != nil {
		return nil, errors.Join(err, e.end())
	}
	return &Model{Model: session.Over(e, session.Options{ID: found.Name,
		Device: fmt.Sprintf("servers (%d)", len(o.URLs)), Store: m.kept.store,
		Scheduler: sched.Options{Settings: engine.Settings{MaxModelLen: e.Context()}}})}, nil
}

// servers are a session.Generator that ends what was started for it.
type servers struct {
	*replica.Pool
	stop func() error
}

func (s servers) Close() error { return errors.Join(s.Pool.Close(), s.end()) }

func (s servers) end() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// tellDamaged tells that what a loaded model stands on is gone.
func (m *Models) tellDamaged(err error) {
	select {
	case m.damaged <- err:
	default: // told already
	}
}

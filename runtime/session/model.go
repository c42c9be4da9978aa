// A model that can start turns: a scheduler on an engine, and a store of what was sampled.
//
// Package runtime/serve finds the checkpoint, plans the memory and opens the engine. A Model only
// uses the engine: its caller closes the engine after the Model.

package session

import (
	"context"
	"errors"

	"github.com/ossrun/ossrun/runtime/sched"
)

// Options of a Model.
type Options struct {
	ID        string // the catalogue's name, or the folder's
	Device    string // what it runs on, to be shown
	Store     Store  // keeps sampled turns; nil: a store of its own, in memory
	Scheduler sched.Options
}

// Model is a loaded model. It is safe for concurrent use.
type Model struct {
	id      string
	device  string
	context int
	sched   *sched.Scheduler
	store   Store
	gate    Gate

	submit func(context.Context, sched.Request) (tokenStream, error) // tests replace it
}

// New starts a scheduler on an engine.
func New(eng sched.Engine, o Options) *Model {
	m := &Model{id: o.ID, device: o.Device, context: o.Scheduler.MaxModelLen, store: o.Store,
		gate: NewGate()}
	if m.store == nil {
		m.store = NewStore()
	}
	m.sched = sched.New(eng, o.Scheduler)
	m.submit = func(ctx context.Context, r sched.Request) (tokenStream, error) {
		r.Cuts = cuts(r.Prompt)
		st, err := m.sched.Submit(ctx, r)
		if errors.Is(err, sched.ErrQueueFull) {
			err = &BusyError{m.sched.RetryAfter()}
		}
		return st, err
	}
	return m
}

// Close ends the running turns. The engine stays open.
func (m *Model) Close() error { return m.sched.Close() }

// ID is the catalogue's name, or the folder's.
func (m *Model) ID() string { return m.id }

// Device says what the model runs on, to be shown.
func (m *Model) Device() string { return m.device }

// ContextLength is the maximum number of tokens, prompt and answer together.
func (m *Model) ContextLength() int { return m.context }

// Stats are the scheduler's counters.
func (m *Model) Stats() sched.Stats { return m.sched.Stats() }

// A model that can start turns: what generates its tokens, and a store of what was sampled.
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
	tokens  Generator
	store   Store
	gate    Gate

	submit func(context.Context, sched.Request) (TokenStream, error) // tests replace it
}

// Generator makes tokens: a scheduler on an engine here, or servers elsewhere (package replica). It
// is safe for concurrent use.
type Generator interface {
	// Submit begins a sequence. The error may be *sched.ContextLengthError, *BusyError,
	// sched.ErrClosed or wrap ErrUnavailable.
	Submit(ctx context.Context, r sched.Request) (TokenStream, error)
	Stats() sched.Stats
	// Close ends the running sequences.
	Close() error
}

// New starts a scheduler on an engine.
func New(eng sched.Engine, o Options) *Model {
	return Over(scheduler{sched.New(eng, o.Scheduler)}, o)
}

// Over makes a model of what generates its tokens. Of Options.Scheduler it uses MaxModelLen.
func Over(tokens Generator, o Options) *Model {
	m := &Model{id: o.ID, device: o.Device, context: o.Scheduler.MaxModelLen, store: o.Store,
		tokens: tokens, submit: tokens.Submit, gate: NewGate()}
	if m.store == nil {
		m.store = NewStore()
	}
	return m
}

// scheduler is a Generator.
type scheduler struct{ *sched.Scheduler }

func (s scheduler) Submit(ctx context.Context, r sched.Request) (TokenStream, error) {
	r.Cuts = cuts(r.Prompt)
	st, err := s.Scheduler.Submit(ctx, r)
	if errors.Is(err, sched.ErrQueueFull) {
		err = &BusyError{s.RetryAfter()}
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Close ends the running turns. The engine stays open.
func (m *Model) Close() error { return m.tokens.Close() }

// ID is the catalogue's name, or the folder's.
func (m *Model) ID() string { return m.id }

// Device says what the model runs on, to be shown.
func (m *Model) Device() string { return m.device }

// ContextLength is the maximum number of tokens, prompt and answer together.
func (m *Model) ContextLength() int { return m.context }

// Stats are the scheduler's counters.
func (m *Model) Stats() sched.Stats { return m.tokens.Stats() }

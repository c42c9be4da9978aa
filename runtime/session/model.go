// A model that can start turns, and the interfaces between a turn and its callers: the chat, the
// port, another process, the benchmark.
//
// Callers hold a Runner and read the Turn that it starts. A loaded Model is a Runner. So is a model
// that is loaded for its first turn, and a model of another process. Package runtime/serve finds
// the checkpoint, plans the memory and opens the engine. A Model only uses the engine: its caller
// closes the engine after the Model.

package session

import (
	"context"
	"errors"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/sched"
)

// Runner is a model that can start turns. It is safe for concurrent use.
type Runner interface {
	ID() string
	Device() string     // for display; "" while the model is not loaded
	ContextLength() int // tokens, prompt and answer together
	// Start returns a running turn, or *sched.ContextLengthError, *BusyError or *RequestError. A
	// model that is not loaded is loaded first; if that fails the error wraps ErrUnavailable.
	// Cancelling ctx ends the turn.
	Start(ctx context.Context, r Request) (Turn, error)
}

// SourceOf is what opens a runner's model again if its ID does not, such as a folder.
func SourceOf(r Runner) string {
	if s, ok := r.(interface{ Source() string }); ok {
		return s.Source()
	}
	return ""
}

// Turn is one answer while it is generated. It is not safe for concurrent use.
type Turn interface {
	// Next blocks for the next event. The last event is Done; after it Next returns false.
	Next() (Event, bool)
	// Result is the result so far. It is complete once Next has returned Done.
	Result() Result
	// Sampled returns the tokens so far, from which another process can resume: Request.Sampled. It
	// is safe for concurrent use. nil: the turn cannot be resumed.
	Sampled() []int32
}

// Models are the models that a process can serve.
type Models interface {
	// List returns all models, the default one first.
	List() []ModelInfo
	// Get finds a model by any of its names; "" is the default one. The error wraps ErrUnknownModel
	// if no model has that name. Any other error means that the model cannot be used now.
	Get(ctx context.Context, name string) (Runner, error)
	// Stats returns the scheduler's counters of each loaded model, by its ID.
	Stats() map[string]sched.Stats
}

// ModelInfo describes one model of the list. All its names are listed, since clients look for their
// configured one.
type ModelInfo struct {
	ID            string
	Aliases       []string
	ContextLength int   // tokens, prompt and answer together
	Created       int64 // seconds since 1970
}

// ErrUnknownModel is returned, wrapped, by Models.Get.
var ErrUnknownModel = errors.New("unknown model")

// ErrUnavailable is returned, wrapped, by Runner.Start for a known model that cannot be loaded.
var ErrUnavailable = errors.New("the model cannot be loaded")

// ErrGone is wrapped by the error of a turn whose process no longer answers.
var ErrGone = errors.New("the server is gone")

type Options struct {
	ID        string        // the catalogue's name, or the folder's
	Device    string        // for display
	Store     records.Store // for sampled turns; nil: a new one, in memory
	Scheduler sched.Options
}

// Model is a loaded model. It is safe for concurrent use.
type Model struct {
	id      string
	device  string
	context int
	tokens  Generator
	store   records.Store
	gate    Gate
	ends    []int32 // special tokens that end an answer, in addition to Harmony's

	submit func(context.Context, sched.TokenRequest) (TokenStream, error) // tests replace it
}

// Generator makes tokens: a scheduler on an engine here, or servers elsewhere
// (runtime/remote/pool). It is safe for concurrent use.
type Generator interface {
	// Submit begins a sequence. The error may be *sched.ContextLengthError, *BusyError,
	// sched.ErrClosed or wrap ErrUnavailable.
	Submit(ctx context.Context, r sched.TokenRequest) (TokenStream, error)
	Stats() sched.Stats
	// Close ends the running sequences.
	Close() error
}

// New starts a scheduler on an engine.
func New(eng sched.StepEngine, o Options) *Model {
	m := NewModel(scheduler{Scheduler: sched.New(eng, o.Scheduler)}, o)
	m.ends = endsOf(eng.Spec().EOS)
	return m
}

// endsOf returns the end tokens of a model that end an answer, without Harmony's own. <|end|> only
// ends a message; text tokens and unknown ids are ignored.
func endsOf(eos []int32) (ends []int32) {
	for _, id := range eos {
		isHarmony := id == token.Return || id == token.Call || id == token.End
		if id >= token.StartOfText && id < token.VocabSize && !isHarmony {
			ends = append(ends, id)
		}
	}
	return ends
}

// NewModel makes a model on a Generator. Of Options.Scheduler it uses only MaxModelLen.
func NewModel(tokens Generator, o Options) *Model {
	m := &Model{id: o.ID, device: o.Device, context: o.Scheduler.MaxModelLen, store: o.Store,
		tokens: tokens, submit: tokens.Submit, gate: NewGate()}
	if m.store == nil {
		m.store = records.NewStore()
	}
	return m
}

// Adapter is a model on the same scheduler that answers with one of the engine's adapters, counted
// from 1. It ends with the model.
func (m *Model) Adapter(number int, id string) *Model {
	adapter, s := *m, m.tokens.(scheduler)
	s.adapter = number
	adapter.id, adapter.tokens, adapter.submit = id, s, s.Submit
	return &adapter
}

type scheduler struct {
	*sched.Scheduler
	adapter int
}

func (s scheduler) Submit(ctx context.Context, r sched.TokenRequest) (TokenStream, error) {
	r.Cuts, r.Adapter = cuts(r.Prompt), s.adapter
	st, err := s.Scheduler.Submit(ctx, r)
	if errors.Is(err, sched.ErrQueueFull) {
		err = &BusyError{s.RetryAfter()}
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (s scheduler) Stats() sched.Stats { return s.StatsOf(s.adapter) }

// Close ends the running turns. The engine stays open.
func (m *Model) Close() error { return m.tokens.Close() }

func (m *Model) ID() string { return m.id }

func (m *Model) Device() string { return m.device }

// ContextLength is the maximum number of tokens, prompt and answer together.
func (m *Model) ContextLength() int { return m.context }

func (m *Model) Stats() sched.Stats { return m.tokens.Stats() }

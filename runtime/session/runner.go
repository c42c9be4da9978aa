// The interfaces between a turn and its callers: the chat, the port, a process that has joined, the
// benchmark.
//
// Callers hold a Runner, a model that can start turns, and read the Turn that it starts. A loaded
// Model is a Runner. So is a model that is loaded for its first turn, and a model of another
// process. Tests implement both interfaces, so callers are tested without an engine.

package session

import (
	"context"
	"errors"

	"github.com/ossrun/ossrun/runtime/sched"
)

// Runner is a model that can start turns. It is safe for concurrent use.
type Runner interface {
	ID() string
	Device() string     // what the model runs on, to be shown; "" while it is not loaded
	ContextLength() int // tokens, prompt and answer together
	// Start returns a running turn, or *sched.ContextLengthError, *BusyError or *RequestError. A
	// model that is not loaded is loaded first; if that fails the error wraps ErrUnavailable.
	// Cancelling ctx ends the turn.
	Start(ctx context.Context, r Request) (Turn, error)
}

// Turn is one answer while it is generated. It is not safe for concurrent use.
type Turn interface {
	// Next blocks for the next event. The last event is Done; after it Next returns false.
	Next() (Event, bool)
	// Result is what has been generated so far. It is complete once Next has returned Done.
	Result() Result
}

// Models are the models that a process can serve.
type Models interface {
	// List returns all models, the default one first.
	List() []ModelInfo
	// Get finds a model by any of its names; "" is the default one. The error wraps ErrUnknownModel
	// if no model has that name. Any other error means that the model cannot be used now.
	Get(ctx context.Context, name string) (Runner, error)
	// Stats are the scheduler's counters of each loaded model, by its ID.
	Stats() map[string]sched.Stats
}

// ModelInfo describes one model of the list. All its names are listed, since clients look for the
// one that they are configured with.
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

// ErrGone is wrapped by the error of a turn that another process computed, which does not answer
// any more.
var ErrGone = errors.New("the server is gone")

// The seam between a turn and those who want one: the chat, the port, a process that has joined,
// the benchmark.
//
// They hold a Runner, which is a model that can start turns, and read the Turn that it starts. A
// loaded Model is a Runner; so are a model that is loaded when the first turn asks for it and a
// model of another process. Tests script both interfaces, so no engine has to run to find out
// whether a caller does the right thing.

package session

import (
	"context"
	"errors"

	"github.com/ossrun/ossrun/runtime/sched"
)

// Runner is a model that can start turns. It is safe for concurrent use.
type Runner interface {
	ID() string
	Device() string     // what the model runs on, for people; "" while it is not loaded
	ContextLength() int // tokens, prompt and answer together
	// Start returns a running turn, or *sched.ContextLengthError, *BusyError or *RequestError. A
	// model that is not loaded is loaded first; the error wraps ErrUnavailable where that fails.
	// Cancelling ctx ends the turn.
	Start(ctx context.Context, r Request) (Turn, error)
}

// Turn is one answer while it is being written. It is not safe for concurrent use.
type Turn interface {
	// Next blocks for the next event. The last event is Done; after it Next returns false.
	Next() (Event, bool)
	// Result is what the turn has said so far. It is whole once Next has returned Done.
	Result() Result
}

// Models are the models that a process answers with.
type Models interface {
	// List has the model that is served by default first.
	List() []ModelInfo
	// Get finds a model by any of its names; "" is the one that is served by default. The error
	// wraps ErrUnknownModel where there is no model of that name; any other error means that it
	// cannot be used now.
	Get(ctx context.Context, name string) (Runner, error)
	// Stats are the scheduler's counters of each loaded model, by its ID.
	Stats() map[string]sched.Stats
}

// ModelInfo describes one model of the list. Clients look for the name they were told, so all of
// them are listed.
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

// What the port needs of the models behind it. The interfaces are the port's own, so that its tests script a model and
// the engine never has to run to find out whether a client's request is answered in the right words.

package openai

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Turn is one running turn: *session.Turn. Next blocks and returns false after Done; Result is whole from then on.
type Turn interface {
	Next() (session.Event, bool)
	Result() session.Result
}

// Runner is one loaded model.
type Runner interface {
	ID() string
	ContextLength() int
	Stats() sched.Stats
	// Start returns at once with a running turn, or with *sched.ContextLengthError, *session.BusyError or
	// *session.RequestError. Cancelling ctx ends the turn. A model that has to be loaded first takes its time; the error
	// wraps ErrUnavailable where that fails.
	Start(ctx context.Context, r session.Request) (Turn, error)
}

// ModelInfo is one model of the list. Every name is listed, because clients look for the one they were told.
type ModelInfo struct {
	ID            string
	Aliases       []string
	ContextLength int   // tokens, prompt and answer together
	Created       int64 // seconds since 1970
}

// ModelSource is where the port finds models.
type ModelSource interface {
	List() []ModelInfo
	// Get finds a model by any of its names; "" is the one that is served by default. An error that wraps
	// ErrUnknownModel means that there is none of that name, any other that it cannot be used now.
	Get(ctx context.Context, name string) (Runner, error)
	// Loaded lists the models whose state the metrics show.
	Loaded() []Runner
}

// ErrUnknownModel is returned, wrapped, by ModelSource.Get.
var ErrUnknownModel = errors.New("unknown model")

// ErrUnavailable is returned, wrapped, by Runner.Start for a model that is known and cannot be loaded.
var ErrUnavailable = errors.New("the model cannot be loaded")

// Single is the source of a server with one model, known under its own name and some others.
func Single(r Runner, created int64, aliases ...string) ModelSource {
	aliases = slices.Compact(slices.Sorted(slices.Values(aliases)))
	aliases = slices.DeleteFunc(aliases, func(a string) bool { return a == r.ID() })
	return single{r, ModelInfo{ID: r.ID(), Aliases: aliases, ContextLength: r.ContextLength(), Created: created}}
}

type single struct {
	runner Runner
	info   ModelInfo
}

func (s single) List() []ModelInfo { return []ModelInfo{s.info} }

func (s single) Loaded() []Runner { return []Runner{s.runner} }

func (s single) Get(_ context.Context, name string) (Runner, error) {
	if name == "" || strings.EqualFold(name, s.info.ID) {
		return s.runner, nil
	}
	for _, a := range s.info.Aliases {
		if strings.EqualFold(name, a) {
			return s.runner, nil
		}
	}
	return nil, fmt.Errorf("%w %q", ErrUnknownModel, name)
}

// Session makes a Runner of a loaded model.
func Session(m *session.Model) Runner { return sessionRunner{m} }

type sessionRunner struct{ *session.Model }

func (r sessionRunner) Start(ctx context.Context, req session.Request) (Turn, error) {
	t, err := r.Model.Start(ctx, req)
	if err != nil {
		return nil, err // never a nil *session.Turn inside a non-nil interface
	}
	return t, nil
}

// The one way to wrap a turn or a runner: whatever the wrapper does not change passes through, so
// that no wrapper can forget a part of a turn.
//
// What must stay true: Sampled passes through too, or no process could resume a background
// response; it may be called while Next runs.

package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// Wrapper defines the changes to a turn. The zero value changes nothing.
type Wrapper struct {
	// Read returns the next event of t, the wrapped turn, by calling t.Next. It may return another
	// turn, which replaces t. nil: the events of t unchanged.
	Read func(t Turn) (e Event, ok bool, then Turn)
	// Result changes the result. nil: it is unchanged.
	Result func(Result) Result
	// OtherPrompt says that the turn continues a different prompt than the request's, so that
	// request cannot resume it.
	OtherPrompt bool
}

// Wrap wraps a turn; nil is a turn without events.
func Wrap(t Turn, w Wrapper) Turn {
	made := &wrapped{Wrapper: w}
	made.now.Store(&t)
	return made
}

type wrapped struct {
	Wrapper
	now atomic.Pointer[Turn]
}

func (w *wrapped) Next() (Event, bool) {
	now := *w.now.Load()
	if w.Read == nil {
		return now.Next()
	}
	e, ok, then := w.Read(now)
	if then != nil {
		w.now.Store(&then)
	}
	return e, ok
}

func (w *wrapped) Result() (r Result) {
	if now := *w.now.Load(); now != nil {
		r = now.Result()
	}
	if w.Wrapper.Result != nil {
		r = w.Wrapper.Result(r)
	}
	return r
}

func (w *wrapped) Sampled() []int32 {
	if now := *w.now.Load(); now != nil && !w.OtherPrompt {
		return now.Sampled()
	}
	return nil
}

// Each passes each event of a turn through change; false hides the event.
func Each(t Turn, change func(Event) (Event, bool)) Turn {
	return Wrap(t, Wrapper{Read: func(t Turn) (Event, bool, Turn) {
		for {
			e, ok := t.Next()
			if !ok {
				return nil, false, nil
			}
			if e, shown := change(e); shown {
				return e, true, nil
			}
		}
	}})
}

// AtEnd calls ended once at the turn's end. A turn without Done ended in an error.
func AtEnd(t Turn, ended func(Done)) Turn {
	var once sync.Once
	return Wrap(t, Wrapper{Read: func(t Turn) (Event, bool, Turn) {
		e, ok := t.Next()
		d, last := e.(Done)
		if !ok {
			d.Finish = FinishError
		}
		if last || !ok {
			once.Do(func() { ended(d) })
		}
		return e, ok, nil
	}})
}

// Known is a complete turn with these events and this result.
func Known(r Result, events ...Event) Turn {
	return Wrap(nil, Wrapper{
		Read: func(Turn) (Event, bool, Turn) {
			if len(events) == 0 {
				return nil, false, nil
			}
			e := events[0]
			events = events[1:]
			return e, true, nil
		},
		Result: func(Result) Result { return r },
	})
}

// Ended is a turn that only ends.
func Ended(d Done) Turn { return Known(Result{Done: d}, d) }

// Starts is a runner whose turns are started by start, which may call r.Start.
func Starts(r Runner, start func(context.Context, Request) (Turn, error)) Runner {
	return starting{r, start}
}

type starting struct {
	Runner
	start func(context.Context, Request) (Turn, error)
}

func (s starting) Start(ctx context.Context, r Request) (Turn, error) { return s.start(ctx, r) }

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
	wrapper := &wrapped{Wrapper: w}
	wrapper.current.Store(&t)
	return wrapper
}

type wrapped struct {
	Wrapper
	current atomic.Pointer[Turn]
}

func (w *wrapped) Next() (Event, bool) {
	now := *w.current.Load()
	if w.Read == nil {
		return now.Next()
	}
	e, ok, then := w.Read(now)
	if then != nil {
		w.current.Store(&then)
	}
	return e, ok
}

func (w *wrapped) Result() (r Result) {
	if now := *w.current.Load(); now != nil {
		r = now.Result()
	}
	if w.Wrapper.Result != nil {
		r = w.Wrapper.Result(r)
	}
	return r
}

func (w *wrapped) Sampled() []int32 {
	if now := *w.current.Load(); now != nil && !w.OtherPrompt {
		return now.Sampled()
	}
	return nil
}

// MapEvents passes each event of a turn through change; false hides the event.
func MapEvents(t Turn, change func(Event) (Event, bool)) Turn {
	return Wrap(t, Wrapper{Read: func(t Turn) (Event, bool, Turn) {
		for {
			e, ok := t.Next()
			if !ok {
				return nil, false, nil
			}
			if e, ok := change(e); ok {
				return e, true, nil
			}
		}
	}})
}

// OnDone calls ended once at the turn's end. A turn without Done ended in an error.
func OnDone(t Turn, onDone func(Done)) Turn {
	var once sync.Once
	return Wrap(t, Wrapper{Read: func(t Turn) (Event, bool, Turn) {
		e, ok := t.Next()
		d, last := e.(Done)
		if !ok {
			d.Finish = FinishError
		}
		if last || !ok {
			once.Do(func() { onDone(d) })
		}
		return e, ok, nil
	}})
}

func Finished(r Result, events ...Event) Turn {
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

// FinishedWith is a turn that only ends.
func FinishedWith(d Done) Turn { return Finished(Result{Done: d}, d) }

// WithStart is a runner whose turns are started by start, which may call r.Start.
func WithStart(r Runner, start func(context.Context, Request) (Turn, error)) Runner {
	return startWrapper{r, start}
}

type startWrapper struct {
	Runner
	start func(context.Context, Request) (Turn, error)
}

func (s startWrapper) Start(ctx context.Context, r Request) (Turn, error) { return s.start(ctx, r) }

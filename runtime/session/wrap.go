// The one way in which a turn or a runner is wrapped: what the wrapper does not change passes
// through it, so that none can forget a part of a turn.
//
// What must stay true: Sampled passes through too, or a background response could not be taken up
// by another process; it may be called while Next runs.

package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// Wrapper is what a wrapper changes of a turn. The zero value changes nothing.
type Wrapper struct {
	// Read has the next event of t, the turn that is wrapped, by t.Next. It may return a turn too,
	// which is read in t's place from then on. nil: the events of t as they are.
	Read func(t Turn) (e Event, ok bool, then Turn)
	// Result changes what has been generated so far. nil: it stays.
	Result func(Result) Result
	// OtherPrompt says that the turn continues another prompt than that of the request that asked
	// for it: it cannot be taken up with that request.
	OtherPrompt bool
}

// Wrap wraps a turn; nil is one that has nothing.
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

// Each is a turn with what change makes of each event; false: the reader does not see it.
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

// AtEnd calls ended once when the turn has ended. A turn that has no Done ended in an error.
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

// Known is a turn of which everything is known: these events, and this result.
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

// Ended is a turn of which only its end is left.
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

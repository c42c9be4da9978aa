// The turn that is being written: a goroutine reads its events into a mailbox, a command takes them
// out frame by frame. No event is lost or reordered, and what the Model does not want any more is
// read to its end all the same.

package chat

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
)

// framesPerSecond is how often new tokens reach the screen at most. The model may be computed by
// the same cores that draw the screen, so it is no more than the eye asks for.
const framesPerSecond = 30

// A live is the turn that is being written, as the Model sees it.
type live struct {
	number   int // of the turn, so that frames of one that was given up are known
	cancel   context.CancelFunc
	box      *mailbox
	answer   *answer
	question *remark
	exchange *exchange
	before   *exchange // the end of the branch that was on the screen
	replaced *exchange // what leaves the screen when begun; nil: nothing
	begun    bool      // something has come
	finish   session.Finish
	lost     bool                          // the process that wrote it is gone
	usage    atomic.Pointer[session.Usage] // of the latest turn of the model

	started  time.Time
	first    time.Time // when the first and the latest token came
	latest   time.Time
	tokens   int
	stopping bool
}

// failure is why a turn ended of which nothing came, if it can be taken back: one that failed, or
// one that was stopped and would replace an answer.
func (l *live) failure(d session.Done) error {
	switch {
	case l.begun:
	case d.Finish == session.FinishError && d.Err != nil:
		return d.Err
	case d.Finish == session.FinishCancelled && l.replaced != nil:
		return context.Canceled
	}
	return nil
}

// rate is the tokens a second since the first.
func (l *live) rate() float64 {
	if d := l.latest.Sub(l.first).Seconds(); l.tokens > 1 && d > 0 {
		return float64(l.tokens-1) / d
	}
	return 0
}

// A stamped event knows when it came.
type stamped struct {
	event session.Event
	at    time.Time
}

// A frame is everything that came since the last one.
type frame struct {
	number int
	at     time.Time
	events []stamped
	over   bool           // nothing follows
	result session.Result // set with over, unless err is
	err    error          // the turn could not be started
}

// A metered model notes what the latest of its turns used: a turn with tools is several of the
// model, and counts their tokens together, but the context holds those of the last.
type metered struct {
	session.Runner
	last *atomic.Pointer[session.Usage]
}

func (m metered) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	turn, err := m.Runner.Start(ctx, r)
	if err != nil {
		return nil, err
	}
	return meteredTurn{turn, m.last}, nil
}

type meteredTurn struct {
	session.Turn
	last *atomic.Pointer[session.Usage]
}

func (t meteredTurn) Next() (session.Event, bool) {
	e, ok := t.Turn.Next()
	if d, is := e.(session.Done); is {
		t.last.Store(&d.Usage)
	}
	return e, ok
}

// A mailbox gathers the events of one turn between frames. One goroutine puts, one command takes.
type mailbox struct {
	mu     sync.Mutex
	events []stamped
	over   bool
	result session.Result
	err    error
	ready  chan struct{} // holds one token while there is something to take
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (b *mailbox) put(e session.Event, at time.Time) {
	b.mu.Lock()
	b.events = append(b.events, stamped{e, at})
	b.mu.Unlock()
	b.wake()
}

func (b *mailbox) end(r session.Result, err error) {
	b.mu.Lock()
	b.over, b.result, b.err = true, r, err
	b.mu.Unlock()
	b.wake()
}

func (b *mailbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// run reads a turn from its start to its end.
// What tools have drawn is copied into the folder pictures; "": nowhere.
func (b *mailbox) run(start func() (session.Turn, error), clock func() time.Time, pictures string) {
	turn, err := start()
	if err != nil {
		b.end(session.Result{}, err)
		return
	}
	for {
		e, ok := turn.Next()
		if !ok {
			break
		}
		if end, is := e.(session.ToolEnd); is {
			e = keepPictures(pictures, end)
		}
		b.put(e, clock())
	}
	b.end(turn.Result(), nil)
}

// next waits for something to show, but not less than a frame's time since the last frame. The
// first token after a pause is shown at once.
func (b *mailbox) next(ctx context.Context, number int, last time.Time,
	clock func() time.Time) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-b.ready:
		case <-ctx.Done():
			return nil
		}
		if wait := time.Second/framesPerSecond - clock().Sub(last); wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return nil
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		f := frame{number: number, at: clock(), events: b.events, over: b.over, result: b.result,
			err: b.err}
		b.events = nil
		return f
	}
}

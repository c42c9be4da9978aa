// The turn that is being written: a goroutine reads its events into a queue, a command takes them
// out frame by frame. No event is lost or reordered, and what the Model does not want any more is
// read to its end all the same. Every ending tells the person what to do next.

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// framesPerSecond is how often new tokens reach the screen at most. The model may be computed by
// the same cores that draw the screen, so it is no more than the eye asks for.
const framesPerSecond = 30

// A live is the turn that is being written, as the Model sees it.
type live struct {
	number   int // of the turn, so that frames of one that was given up are known
	cancel   context.CancelFunc
	box      *eventQueue
	answer   *answer
	question *markedText
	exchange *exchange
	before   *exchange // the end of the branch that was on the screen
	replaced *exchange // what leaves the screen when begun; nil: nothing
	begun    bool      // something has come
	finish   session.Finish
	lost     bool // the process that wrote it is gone

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
	batch
}

type batch struct {
	events []stamped
	over   bool           // nothing follows
	result session.Result // set with over, unless err is
	err    error          // the turn could not be started
}

// An eventQueue gathers the events of one turn between frames. One goroutine puts, one command
// takes.
type eventQueue struct {
	mu sync.Mutex
	batch
	ready chan struct{} // holds one token while there is something to take
}

func newMailbox() *eventQueue { return &eventQueue{ready: make(chan struct{}, 1)} }

func (b *eventQueue) put(e session.Event, at time.Time) {
	b.mu.Lock()
	b.events = append(b.events, stamped{e, at})
	b.mu.Unlock()
	b.wake()
}

func (b *eventQueue) end(r session.Result, err error) {
	b.mu.Lock()
	b.over, b.result, b.err = true, r, err
	b.mu.Unlock()
	b.wake()
}

func (b *eventQueue) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// run reads a turn from its start to its end.
// What tools have drawn is copied into the folder pictures; "": nowhere.
func (b *eventQueue) run(start func() (session.Turn, error), clock func() time.Time,
	pictures string) {
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
func (b *eventQueue) next(ctx context.Context, number int, last time.Time,
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
		f := frame{number, clock(), b.batch}
		b.events = nil
		return f
	}
}

// ended takes the last event of a turn.
func (m *Model) ended(d session.Done) {
	l := m.live
	l.finish = d.Finish
	last := cmp.Or(d.Last, d.Usage) // with tools it is several turns of the model
	m.cached = last.Cached
	if last.Prompt > 0 { // a turn that broke off does not know it
		m.context = last.Prompt + last.Completion
	}
	l.exchange.context = m.context
	m.rate = l.rate()
	if s := d.Timing.Decode.Seconds(); s > 0 && d.Usage.Completion > 1 {
		m.rate = float64(d.Usage.Completion-1) / s
	}
	ending, tone := "", term.Dim
	switch d.Finish {
	case session.FinishCancelled:
		ending = "stopped"
	case session.FinishLength:
		tone = term.Yellow
		if n := m.options.Model.ContextLength(); n > 0 && m.context >= n {
			ending = "the context is full: /compact goes on from a summary, /new begins anew"
		} else {
			by := "limit set by the server"
			if m.options.Request.MaxTokens > 0 {
				by = "--max-tokens"
			}
			ending = fmt.Sprintf("answer cut off after %s (%s)",
				counted(d.Usage.Completion, "token"), by)
		}
	case session.FinishToolCalls:
		tone = term.Yellow
		ending = "the model asked for a tool, and this chat offers none: /regenerate asks again"
		if len(m.tools.now()) > 0 {
			ending = "the model may not make this call: /regenerate asks again"
		}
	case session.FinishLoop:
		tone = term.Yellow
		ending = session.ErrLoop.Error() + ": /regenerate asks again"
	case session.FinishError:
		tone = term.Red
		l.lost = errors.Is(d.Err, session.ErrGone)
		why := reason(d.Err)
		ending = strings.ToUpper(why[:1]) + why[1:] + ". Type /regenerate to retry."
	}
	l.answer.finish(m.now, term.Clean(ending), tone)
}

// goesOn asks a question again whose answer was lost with the process that wrote it, where no tool
// has done anything for it yet.
func (l *live) goesOn() bool {
	for _, p := range l.answer.parts {
		if _, ok := p.(*call); ok {
			return false
		}
	}
	return l.lost && !l.stopping
}

// refused takes back a question of which nothing came and puts it into the editor again; what it
// would have replaced is still there.
func (m *Model) refused(err error) {
	l := m.live
	m.live = nil
	m.conversation.drop(l.before)
	m.transcript.entries = slices.DeleteFunc(m.transcript.entries, func(e entry) bool {
		return e == l.answer || l.replaced != nil && e == l.question
	})
	if again := l.replaced != nil && l.replaced.question == l.exchange.question; !again &&
		m.editor.text == "" {
		m.editor.set(l.exchange.question)
		m.returned = l.exchange.question
	}
	m.nextQueued(false)
	m.keep()
	if errors.Is(err, context.Canceled) {
		m.showNotice("stopped before it began")
		return
	}
	m.showError(reason(err))
}

// reason says what happened and what to do.
func reason(err error) string {
	var full *sched.ContextLengthError
	switch {
	case err == nil:
		return "the engine stopped unexpectedly"
	case errors.As(err, &full) && full.Asked == 0: // another's port, which counts by itself
		return err.Error() + ": shorten the message, /compact what was said, or begin a /new " +
			"conversation"
	case errors.As(err, &full):
		return fmt.Sprintf(
			"%s do not fit the context of %s: shorten the message, /compact what was "+
				"said, or begin a /new conversation",
			counted(full.Asked, "token"), thousands(full.Max))
	case errors.Is(err, sched.ErrQueueFull):
		return "the engine is busy with other requests: try again in a moment"
	}
	return err.Error()
}

// How a turn ends, and what the person is told of it: every ending says what to do next.

package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// ended takes the last event of a turn.
func (m *Model) ended(d session.Done) {
	l := m.live
	l.finish = d.Finish
	last := d.Usage
	if u := l.usage.Load(); u != nil {
		last = *u
	}
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
			ending = fmt.Sprintf("stopped after %s tokens, as --max-tokens asks",
				thousands(d.Usage.Completion))
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
		ending = "the engine failed: " + reason(d.Err) + "; /regenerate asks again"
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
		m.inform("stopped before it began")
		return
	}
	m.complain(reason(err))
}

// reason says what happened and what to do.
func reason(err error) string {
	var full *sched.ContextLengthError
	switch {
	case err == nil:
		return "it gave no reason"
	case errors.As(err, &full) && full.Asked == 0: // another's port, which counts by itself
		return err.Error() + ": shorten the message, /compact what was said, or begin a /new " +
			"conversation"
	case errors.As(err, &full):
		return fmt.Sprintf(
			"%s tokens do not fit the context of %s: shorten the message, /compact what was "+
				"said, or begin a /new conversation",
			thousands(full.Asked), thousands(full.Max))
	case errors.Is(err, sched.ErrQueueFull):
		return "the engine is busy with other requests: try again in a moment"
	}
	return err.Error()
}

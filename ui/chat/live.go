// The talk and its running turn: a goroutine reads the turn's events into a queue, and a command
// takes them out frame by frame. Events are neither lost nor reordered, and an abandoned turn is
// still read to its end. Every ending tells the person what to do next.

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

// framesPerSecond limits how often new tokens are drawn. The same cores may compute the model, so
// it is no more than eyes need.
const framesPerSecond = 30

// A talk is the conversation and the turn that continues it.
type talk struct {
	conversation   conversation
	effort, system string
	live           *live              // nil: no turn is running
	turns          int                // started so far
	preparing      string             // a sent message that is saved before it is asked
	queued         []string           // messages to send when the answer ends
	shellAllowed   bool               // the person has confirmed a !command
	stopPreparing  context.CancelFunc // ends what reads the attachments of preparing
	unsaved        int                // how many of the last of them are not in the store yet
	editing        *exchange          // replaced by the next message
	compacting     context.CancelFunc // cancels the running summary; nil: none
	context        int                // tokens in use after the last turn
	cached         int                // tokens of the last prompt that came from the cache
	rate           float64            // tokens a second of the last turn
}

// A live is the running turn, as the Model sees it.
type live struct {
	number    int // of the turn; frames of an abandoned one are ignored
	cancel    context.CancelFunc
	queue     *eventQueue
	answer    *answer
	question  *markedText
	exchange  *exchange
	prev      *exchange // the previous end of the branch
	replaced  *exchange // leaves the screen on the first output; nil: none
	hasOutput bool      // something has arrived
	finish    session.Finish
	ownerGone bool // the process that generated it is gone

	started  time.Time
	first    time.Time // when the first and the latest token arrived
	latest   time.Time
	tokens   int
	stopping bool
}

// failure is why a turn without output ended, if it can be undone: it failed, or it was stopped and
// would have replaced an answer.
func (l *live) failure(d session.Done) error {
	switch {
	case l.hasOutput:
	case d.Finish == session.FinishError && d.Err != nil:
		return d.Err
	case d.Finish == session.FinishCancelled && l.replaced != nil:
		return context.Canceled
	}
	return nil
}

func (l *live) rate() float64 {
	if d := l.latest.Sub(l.first).Seconds(); l.tokens > 1 && d > 0 {
		return float64(l.tokens-1) / d
	}
	return 0
}

// A timedEvent is an event with its time of arrival.
type timedEvent struct {
	event session.Event
	time  time.Time
}

// A frame is all events since the last one.
type frame struct {
	number int
	time   time.Time
	batch
}

type batch struct {
	events []timedEvent
	done   bool           // no more events
	result session.Result // set with done, unless err is
	err    error          // the turn could not be started
}

// An eventQueue collects the events of one turn between frames. One goroutine puts, one command
// takes.
type eventQueue struct {
	mu sync.Mutex
	batch
	ready chan struct{} // holds a token while events are queued
}

func newEventQueue() *eventQueue { return &eventQueue{ready: make(chan struct{}, 1)} }

func (b *eventQueue) put(e session.Event, now time.Time) {
	b.change(func() { b.events = append(b.events, timedEvent{e, now}) })
}

func (b *eventQueue) end(r session.Result, err error) {
	b.change(func() { b.done, b.result, b.err = true, r, err })
}

func (b *eventQueue) change(work func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	work()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// run reads a turn from start to end. Pictures drawn by tools are copied into the folder pictures,
// unless it is "".
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

// next waits for events, and for the end of the last frame's time. The first token after a pause is
// shown at once.
func (b *eventQueue) next(ctx context.Context, number int, last time.Time,
	clock func() time.Time) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-b.ready:
		case <-ctx.Done():
			return nil
		}
		if wait := time.Second/framesPerSecond - clock().Sub(last); wait > 0 {
			select {
			case <-time.After(wait):
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

// ask begins a turn after the last exchange, or a branch next to the exchange that it replaces. The
// replaced part stays on the screen until the new answer begins. sent is text with its attachments.
func (m *Model) ask(text, sent string, replaced *exchange) tea.Cmd {
	m.now = m.clock()
	m.record.changed = m.now
	t := &m.talk
	prev := t.conversation.current
	if replaced != nil {
		prev = replaced.prev
	}
	a := newAnswer(m.palette, m.now, len(prev.code()))
	ctx, cancel := context.WithCancel(m.ctx)
	t.turns++
	l := &live{number: t.turns, cancel: cancel, queue: newEventQueue(), answer: a,
		started: m.now, prev: t.conversation.current, replaced: replaced}
	t.live = l
	t.conversation.current = prev
	l.exchange = t.conversation.ask(text, len(m.transcript.entries), a)
	l.exchange.messages[0] = session.User(sent)
	l.question = m.newQuestion(l.exchange)
	if replaced == nil || replaced.question != text {
		m.transcript.add(l.question)
	}
	m.appendEntry(a)

	req := m.request()
	m.record.model = "" // the chat's model answers now
	m.save()
	a.tools = len(m.tools.current()) > 0
	clock, runner, pictures := m.clock, m.tools.recordOffers(m.options.Model), m.options.Pictures
	approval := m.options.Approval
	o := session.ToolOptions{Approve: func(ctx context.Context, c session.Call) error {
		l.queue.put(toolResolved{id: c.ID, server: c.Server, tool: c.Tool}, clock())
		return approval.Ask(ctx, c)
	}}
	start := func() (session.Turn, error) {
		active, err := m.tools.ready()
		if err != nil {
			return nil, err
		}
		return session.StartWithTools(ctx, runner, req, active, o)
	}
	m.background.Go(func() {
		defer cancel()
		l.queue.run(start, clock, pictures)
	})
	return tea.Batch(l.queue.next(m.ctx, l.number, time.Time{}, clock), m.scheduleTick())
}

func (m *Model) request() session.Request {
	req := m.options.Request
	req.Progress = true
	t := &m.talk
	req.Messages, req.Effort, req.Instructions = t.conversation.messages(), t.effort, t.system
	if m.options.Format != "" {
		req.Instructions = strings.TrimPrefix(t.system+"\n\n"+m.options.Format, "\n\n")
	}
	return req
}

// show shows the answer, and removes the replaced part.
func (l *live) show(t *transcript) {
	l.hasOutput = true
	if l.replaced == nil {
		return
	}
	l.exchange.entry = l.replaced.entry
	t.entries = append(t.entries[:l.replaced.entry:l.replaced.entry], l.question, l.answer)
}

// frame handles the events since the last frame.
func (m *Model) frame(f frame) tea.Cmd {
	l := m.talk.live
	if l == nil || f.number != l.number {
		return nil // of an abandoned turn
	}
	m.now, m.record.changed = f.time, f.time
	var done *session.Done
	for _, e := range f.events {
		if d, ok := e.event.(session.Done); ok {
			done = &d
			continue
		}
		if _, reads := e.event.(session.Prefill); !reads && !l.hasOutput {
			l.show(&m.transcript)
		}
		if l.answer.take(e.event, e.time) {
			if l.tokens++; l.tokens == 1 {
				l.first = e.time
			}
			l.latest = e.time
		}
	}
	if done != nil {
		if err := l.failure(*done); err != nil {
			m.undoQuestion(err)
			return nil
		}
		if !l.hasOutput {
			l.show(&m.transcript)
		}
		m.finishTurn(*done)
	}
	if f.err != nil {
		m.undoQuestion(f.err)
		return nil
	}
	if f.done {
		l.exchange.messages = append(l.exchange.messages, f.result.Messages...)
		l.answer.cite(f.result.Answer, f.result.Citations, m.plain)
		if l.answer.live { // the runner ended without Done
			l.answer.finish(m.now, "The engine stopped unexpectedly. Type /regenerate to retry.",
				term.Red)
		}
		m.endTurn()
		m.save()
		if l.shouldRetry() {
			m.showNotice("Lost the server while it was answering. Retrying…")
			return m.regenerate()
		}
		return tea.Batch(l.announce(m), m.nextQueued(l.finish == session.FinishStop))
	}
	if m.now.Sub(m.record.savedAt) >= saveInterval {
		m.save()
	}
	return l.queue.next(m.ctx, l.number, f.time, m.clock)
}

// nextQueued sends the next queued message, or returns all to the editor unless the answer ended
// well.
func (m *Model) nextQueued(well bool) tea.Cmd {
	t := &m.talk
	if len(t.queued) == 0 {
		return nil
	}
	if well {
		next := t.queued[0]
		t.queued = t.queued[1:]
		t.unsaved = min(t.unsaved, len(t.queued))
		return m.prepare(next, nil)
	}
	m.returnQueued()
	return nil
}

func (m *Model) returnQueued() {
	in, text := &m.input, append(m.talk.queued, m.input.editor.text)
	m.talk.queued, m.talk.unsaved = nil, 0
	all := strings.TrimRight(strings.Join(text, "\n"), "\n")
	if strings.HasPrefix(all, "!") && all != text[0] {
		all = " " + all // messages after a command are no part of it
	}
	in.editor.set(all)
	in.returned = in.editor.text
}

// stop cancels the running answer or summary.
func (t *talk) stop() {
	if t.stopPreparing != nil {
		t.stopPreparing()
	}
	if t.compacting != nil {
		t.compacting()
	}
	if t.live != nil {
		t.live.stopping = true
		t.live.cancel()
	}
}

// isAnswering reports whether a message is being answered or about to be.
func (t *talk) isAnswering() bool { return t.live != nil || t.preparing != "" }

func (m *Model) endTurn() {
	m.talk.live = nil
	m.modes.close(approvalRank)
}

// abandon cancels a turn and ignores its end.
func (m *Model) abandon() {
	m.talk.stop()
	m.endTurn()
}

func (m *Model) finishTurn(d session.Done) {
	l := m.talk.live
	l.finish = d.Finish
	last := cmp.Or(d.Last, d.Usage) // with tools it is several turns of the model
	m.talk.cached = last.Cached
	if last.Prompt > 0 { // an interrupted turn does not know it
		m.talk.context = last.Prompt + last.Completion
	}
	l.exchange.context = m.talk.context
	m.talk.rate = l.rate()
	if s := d.Timing.Decode.Seconds(); s > 0 && d.Usage.Completion > 1 {
		m.talk.rate = float64(d.Usage.Completion-1) / s
	}
	ending, tone := "", term.Dim
	switch d.Finish {
	case session.FinishCancelled:
		ending = "stopped"
	case session.FinishLength:
		tone = term.Yellow
		if n := m.options.Model.ContextLength(); n > 0 && m.talk.context >= n {
			ending = "The context is full. Type /compact to continue from a summary, or /new."
		} else {
			limit := "limit set by the server"
			if m.options.Request.MaxTokens > 0 {
				limit = "--max-tokens"
			}
			ending = fmt.Sprintf("Answer cut off after %s (%s).",
				term.Count(d.Usage.Completion, "token"), limit)
		}
	case session.FinishToolCalls:
		tone = term.Yellow
		ending = "The model called a tool, and none is enabled. Type /regenerate to retry."
		if len(m.tools.current()) > 0 {
			ending = "The model called a tool that is not enabled. Type /regenerate to retry."
		}
	case session.FinishLoop:
		tone = term.Yellow
		ending = sentence(session.ErrLoop.Error()) + " Type /regenerate to retry."
	case session.FinishError:
		tone = term.Red
		l.ownerGone = errors.Is(d.Err, session.ErrGone)
		ending = sentence(reason(d.Err)) + " Type /regenerate to retry."
	}
	l.answer.finish(m.now, term.Clean(ending), tone)
}

// shouldRetry reports whether to ask again: the process that generated the answer is gone, and no
// tool has run for it yet.
func (l *live) shouldRetry() bool {
	for _, p := range l.answer.parts {
		if _, ok := p.(*call); ok {
			return false
		}
	}
	return l.ownerGone && !l.stopping
}

// undoQuestion returns a question without output to the editor; the answer it would have replaced
// stays.
func (m *Model) undoQuestion(err error) {
	l := m.talk.live
	m.talk.live = nil
	m.talk.conversation.drop(l.prev)
	m.transcript.entries = slices.DeleteFunc(m.transcript.entries, func(e entry) bool {
		return e == l.answer || e == l.question
	})
	regenerating := l.replaced != nil && l.replaced.question == l.exchange.question
	if !regenerating {
		m.talk.queued = append([]string{l.exchange.question}, m.talk.queued...)
	}
	m.nextQueued(false)
	m.save()
	show, what, next := m.showError, sentence(reason(err)), " Enter tries again."
	var full *sched.ContextLengthError
	switch {
	case errors.Is(err, context.Canceled):
		show, what = m.showNotice, "Stopped before it began."
	case errors.As(err, &full):
		next = ""
	}
	if regenerating {
		show(what + " Type /regenerate to retry.")
		return
	}
	show(what + "\nYour message is back in the editor." + next)
}

// sentence formats an error for people. An address or a name at its start is unchanged.
func sentence(text string) string {
	word, rest, _ := strings.Cut(text, " ")
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" && word != "" {
		text = strings.ToUpper(word[:1]) + word[1:] + " " + rest
	}
	return strings.TrimSuffix(strings.TrimSpace(text), ".") + "."
}

func reason(err error) string {
	var full *sched.ContextLengthError
	switch {
	case err == nil:
		return "the engine stopped unexpectedly"
	case errors.As(err, &full):
		what := err.Error() // of a server that counts itself
		if full.Needed > 0 {
			what = fmt.Sprintf("%s do not fit the context of %s", term.Count(full.Needed, "token"),
				term.Number(full.Max))
		}
		return what + ". Shorten the message, /compact the conversation, or begin a /new one"
	case errors.Is(err, sched.ErrQueueFull):
		return "the engine is busy with other requests"
	}
	return term.PlainWords(err.Error())
}

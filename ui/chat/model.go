// The state of the chat and its changes. Every message is handled here; slow work runs in a
// goroutine that answers with another message.

package chat

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A Model is the complete state of the chat.
type Model struct {
	options    Options
	palette    term.Palette
	ctx        context.Context
	clock      func() time.Time
	background sync.WaitGroup // all work outside Update
	clipboard  io.Writer
	caret      *atomic.Pointer[position] // where input methods write; nil: unused
	saved      map[string]bool           // files written by /export

	now           time.Time // as of the last message that set it
	width, height int
	// width of the transcript's layout; differs from width while a long transcript is resized
	laidOut int

	transcript   transcript
	page         *transcript // such as /help, shown instead of the transcript; nil: none
	loading      bool        // the model is being loaded
	ticking      bool        // a tick is scheduled
	conversation conversation
	editor       editor
	history      *history
	asking       *approvalAsk // a tool's open question
	confirming   *confirmation
	textPrompt   *textPrompt // a text to be entered
	live         *live       // nil: no turn is running
	turns        int         // started so far

	tools     toolbox
	saver     saver
	id, name  string // of the conversation; name is "" until it is set
	unlock    func() // unlocks the conversation; only the work of claiming accesses it
	claiming  <-chan struct{}
	startTime time.Time
	changed   time.Time // when the conversation last got a message or token
	savedAt   time.Time // when the conversation was last saved

	effort, system string
	unfolded       bool
	cached         int                // tokens of the last prompt that came from the cache
	queued         []string           // messages to send when the answer ends
	unsaved        int                // how many of the last of them are not in the store yet
	preparing      string             // a sent message that is saved before it is asked
	returned       string             // text given back to the editor, as it was then
	editing        *exchange          // replaced by the next message
	compacting     context.CancelFunc // cancels the running summary; nil: none
	searching      *search
	menu           menu
	recent         []choice // conversations offered at the start; nil: not read
	pastes         []string // long pastes of this conversation, shown as chips
	plain          bool     // line mode: printed lines never change
	context        int      // tokens in use after the last turn
	rate           float64  // tokens a second of the last turn
	message        string   // a short note above the editor, until the next key
	typed          int      // keys so far; noticed: as of the last notice
	noticed        int
	notices        int            // notices with this number are visible
	noticeExpiry   chan time.Time // expiry of the latest notice
	interrupted    time.Time
	quitting       bool
}

// Messages.
type (
	tick          time.Time
	notice        string
	stableWidth   int // the terminal's width a moment ago
	noticeExpired struct{}

	// outcome is the result of work outside Update: a change for Update to make
	outcome func(m *Model) tea.Cmd
)

func errorOutcome(err error) outcome {
	return func(m *Model) tea.Cmd { return m.showError(err.Error()) }
}

func noteOutcome(text string) outcome { return func(m *Model) tea.Cmd { return m.note(text) } }

// A transcript of many rows is not laid out again for every step of a resize, but once the size has
// been stable for a moment; until then its rows are cut.
const (
	manyRows    = 1000
	resizeDelay = 120 * time.Millisecond
)

func newModel(ctx context.Context, o Options) *Model {
	m := &Model{
		options: o, ctx: ctx, clock: time.Now,
		palette: term.Palette{NoColor: o.NoColor, Theme: o.Theme}, loading: o.Loading.Busy(),
		effort: o.Request.Effort, system: o.Request.Instructions,
		history: newHistory(o.HistoryPath),
		saver:   saver{store: o.Store}, startTime: time.Now(),
		tools:        toolbox{replace: o.ReplaceTools},
		noticeExpiry: make(chan time.Time, 1),
		saved:        map[string]bool{}, transcript: transcript{follow: true},
	}
	m.tools.tools.Store(&o.Tools)
	if !slices.Contains(efforts, m.effort) {
		m.effort = "medium"
	}
	m.transcript.add(&greeting{m})
	m.setID(newID())
	if o.Store != nil && o.Resume != "" {
		if k, err := find(o.Store, o.Resume); err != nil {
			m.showError(err.Error())
		} else {
			m.restore(m.claim(k, m.id))
		}
	}
	if err := m.history.file.versionErr; err != nil {
		m.showError(err.Error())
	}
	return m
}

// Init waits for notices and questions of tools, and inspects the tools; the terminal sends its
// size unasked.
func (m *Model) Init() tea.Cmd {
	look := m.runAsync(func() outcome {
		m.tools.inspect()
		return func(*Model) tea.Cmd { return nil }
	})
	return tea.Batch(m.nextNotice(), m.nextAsk(), m.scheduleTick(), m.nextExpiry(), look,
		m.readRecent())
}

// receive waits for the next message of a channel, which may be nil.
func receive[T any](ctx context.Context, messages <-chan T, message func(T) tea.Msg) tea.Cmd {
	if messages == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case next := <-messages:
			return message(next)
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if k, ok := msg.(tea.KeyMsg); ok && k.Type == tea.KeyF20 { // see escape
		msg = tea.KeyMsg{Type: tea.KeyEsc}
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		if m.laidOut != 0 && m.laidOut != m.width && m.transcript.total > manyRows {
			return m, tea.Tick(resizeDelay, func(time.Time) tea.Msg {
				return stableWidth(msg.Width)
			})
		}
		m.laidOut = m.width
	case stableWidth:
		if int(msg) == m.width {
			m.laidOut = m.width
		}
	case tea.KeyMsg:
		m.now = m.clock()
		m.message = ""
		m.typed++
		cmd := m.key(msg)
		return m, tea.Batch(cmd, m.loadMenu())
	case tea.MouseMsg:
		switch msg.Button {
		case tea.MouseButtonWheelUp:
			m.visibleTranscript().scroll(-3)
		case tea.MouseButtonWheelDown:
			m.visibleTranscript().scroll(3)
		}
	case frame:
		return m, m.frame(msg)
	case tick:
		return m, m.tick(time.Time(msg))
	case outcome:
		return m, msg(m)
	case notice:
		m.noticed = m.typed // it replaces no other notice
		m.addNotice(newNotice(m.palette, "·", term.Dim, string(msg)), time.Time{})
		return m, m.nextNotice()
	case noticeExpired:
		m.now = m.clock()
		return m, m.nextExpiry()
	case approvalAsk:
		if m.live != nil { // otherwise its turn was abandoned
			m.openAsk(msg)
		}
		return m, m.nextAsk()
	}
	return m, nil
}

// runAsync runs work outside Update, which applies the outcome. Run waits for it.
func (m *Model) runAsync(work func() outcome) tea.Cmd {
	done := make(chan outcome, 1)
	m.background.Go(func() { done <- work() })
	return func() tea.Msg { return <-done }
}

// send handles Enter: the editor's text is a command or a message.
func (m *Model) send() tea.Cmd {
	text := m.editor.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	m.searching = nil
	if name, argument, ok := parseCommand(strings.TrimRight(text, " \n")); ok {
		m.remember(text)
		return m.runCommand(name, argument)
	}
	m.remember(text)
	m.editor.set("")
	m.changed = m.now
	m.notices++
	m.noticed = m.typed
	if m.live != nil || m.compacting != nil || m.preparing != "" {
		m.queued = append(m.queued, text)
		if m.saver.store == nil {
			return nil
		}
		m.unsaved++
		wait := m.saveAndWait()
		return m.runAsync(func() outcome {
			wait()
			return func(m *Model) tea.Cmd {
				m.unsaved = max(m.unsaved-1, 0)
				return nil
			}
		})
	}
	replaced := m.editing
	m.editing = nil
	return m.prepare(strings.TrimSpace(text), replaced)
}

// remember adds a line to the history.
func (m *Model) remember(text string) {
	if m.history.add(text) {
		m.history.file.queue(text)
		m.background.Go(func() {
			// an unwritable history is no reason to interrupt a conversation
			_ = m.history.file.flush()
		})
	}
}

// ask begins a turn after the last exchange, or a branch next to the exchange that it replaces. The
// replaced part stays on the screen until the new answer begins. sent is text with its attachments.
func (m *Model) ask(text, sent string, replaced *exchange) tea.Cmd {
	m.now = m.clock()
	m.changed = m.now
	prev := m.conversation.current
	if replaced != nil {
		prev = replaced.prev
	}
	a, question := newAnswer(m.palette, m.now, len(prev.code())), newQuestion(m.palette, text)
	ctx, cancel := context.WithCancel(m.ctx)
	m.turns++
	l := &live{number: m.turns, cancel: cancel, queue: newEventQueue(), answer: a,
		question: question, started: m.now, prev: m.conversation.current, replaced: replaced}
	m.live = l
	m.conversation.current = prev
	l.exchange = m.conversation.ask(text, len(m.transcript.entries), a)
	l.exchange.messages[0] = session.User(sent)
	if replaced == nil || replaced.question != text {
		m.transcript.add(question)
	}
	m.appendEntry(a)

	req := m.request()
	m.save()
	a.tools = len(m.tools.current()) > 0
	clock, runner, pictures := m.clock, m.tools.recordOffers(m.options.Model), m.options.Pictures
	start := func() (session.Turn, error) {
		active, err := m.tools.ready()
		if err != nil {
			return nil, err
		}
		return session.StartWithTools(ctx, runner, req, active, session.ToolLimits{})
	}
	m.background.Go(func() {
		defer cancel()
		l.queue.run(start, clock, pictures)
	})
	return tea.Batch(l.queue.next(m.ctx, l.number, time.Time{}, clock), m.scheduleTick())
}

// request is the request for the answer to the last question.
func (m *Model) request() session.Request {
	req := m.options.Request
	req.Messages, req.Effort, req.Instructions = m.conversation.messages(), m.effort, m.system
	if m.options.Format != "" {
		req.Instructions = strings.TrimPrefix(m.system+"\n\n"+m.options.Format, "\n\n")
	}
	return req
}

// showAnswer removes the replaced part from the screen.
func (m *Model) showAnswer() {
	l := m.live
	l.hasOutput = true
	if l.replaced == nil {
		return
	}
	l.exchange.entry = l.replaced.entry
	m.transcript.entries = append(m.transcript.entries[:l.replaced.entry:l.replaced.entry],
		l.question, l.answer)
}

// frame handles the events since the last frame.
func (m *Model) frame(f frame) tea.Cmd {
	l := m.live
	if l == nil || f.number != l.number {
		return nil // of an abandoned turn
	}
	m.now, m.changed = f.time, f.time
	var done *session.Done
	for _, e := range f.events {
		if d, ok := e.event.(session.Done); ok {
			done = &d
			continue
		}
		if !l.hasOutput {
			m.showAnswer()
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
			m.showAnswer()
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
		m.live, m.asking = nil, nil
		m.save()
		if l.shouldRetry() {
			m.showNotice("Lost the server while it was answering. Retrying…")
			return m.regenerate()
		}
		return m.nextQueued(l.finish == session.FinishStop)
	}
	if m.now.Sub(m.savedAt) >= saveInterval {
		m.save()
	}
	return l.queue.next(m.ctx, l.number, f.time, m.clock)
}

// nextQueued sends the next queued message, or returns all to the editor unless the answer ended
// well.
func (m *Model) nextQueued(well bool) tea.Cmd {
	if len(m.queued) == 0 {
		return nil
	}
	if well {
		next := m.queued[0]
		m.queued = m.queued[1:]
		m.unsaved = min(m.unsaved, len(m.queued))
		return m.prepare(strings.TrimSpace(next), nil)
	}
	m.returnQueued()
	return nil
}

// returnQueued returns the queued messages to the editor.
func (m *Model) returnQueued() {
	text := append(m.queued, m.editor.text)
	m.queued, m.unsaved = nil, 0
	m.editor.set(strings.TrimRight(strings.Join(text, "\n"), "\n"))
	m.returned = m.editor.text
}

// returnMessage returns a message that was not asked yet to the editor.
func (m *Model) returnMessage() {
	if m.preparing != "" {
		m.queued = append([]string{m.preparing}, m.queued...)
		m.preparing = ""
		m.returnQueued()
	}
}

// stop cancels the running answer or summary.
func (m *Model) stop() {
	if m.compacting != nil {
		m.compacting()
	}
	if m.live != nil {
		m.live.stopping = true
		m.live.cancel()
	}
}

// abandon cancels a turn and ignores its end.
func (m *Model) abandon() {
	m.stop()
	m.live, m.asking = nil, nil
}

func (m *Model) quit() tea.Cmd {
	m.save()
	m.abandon()
	m.quitting = true
	return tea.Quit
}

// appendEntry adds an entry to the transcript and scrolls to it.
func (m *Model) appendEntry(e entry) tea.Cmd {
	m.transcript.add(e)
	m.transcript.follow = true
	return nil
}

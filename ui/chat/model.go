// The state of the chat and what changes it. Every message ends here; what takes time is handed to
// a goroutine that answers with another message.

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

// A Model is the whole state of the chat.
type Model struct {
	options    Options
	palette    term.Palette
	ctx        context.Context
	clock      func() time.Time
	background sync.WaitGroup // everything that works outside Update
	clipboard  io.Writer
	caret      *atomic.Pointer[place] // where input methods write; nil: it is shown nowhere
	saved      map[string]bool        // files that /save has written

	now           time.Time // as of the last message that told it
	width, height int
	// the width for which the transcript is laid out; behind width while a long one is resized
	laidOut int

	transcript   transcript
	page         *transcript // such as /help, in the place of the transcript; nil: none
	loading      bool        // the model is still being loaded
	ticking      bool        // a tick is on its way
	conversation conversation
	editor       editor
	history      *history
	asking       *approvalAsk // a tool's open question
	confirming   *confirmation
	prompted     *prompted // a text that is asked for
	live         *live     // nil: nothing is being written
	turns        int       // turns begun so far

	tools    toolbox
	keeper   saver
	id, name string // of the conversation; name is "" until it is given one
	held     func() // lets other chats have the conversation; only claiming's work touches it
	claiming <-chan struct{}
	began    time.Time
	changed  time.Time // when something was last said in the conversation
	keptAt   time.Time // when the conversation was last kept

	effort, system string
	unfolded       bool
	cached         int                // tokens of the last prompt that were not computed again
	queued         []string           // messages that are sent when the answer ends
	unkept         int                // the last of them that are not in the store yet
	preparing      string             // a message that was sent, and is kept before it is asked
	returned       string             // what the editor was given back, as it was then
	editing        *exchange          // what the next message takes the place of
	compacting     context.CancelFunc // ends the summary that is being written; nil: none is
	searching      *search
	menu           menu
	recent         []choice // conversations to open at the start; nil: they were not read
	pastes         []string // long ones of this conversation, which stand as chips
	plain          bool     // lines are printed, and stay as they are
	context        int      // tokens of the context in use, as of the last turn
	rate           float64  // tokens a second of the last turn
	message        string   // a few words over the editor, until the next key
	typed          int      // keys so far, and as of the last notice
	noticed        int
	notices        int            // of which those are on the screen that have this number
	passing        chan time.Time // when the next one goes
	interrupted    time.Time
	leaving        bool
}

// Messages.
type (
	tick    time.Time
	notice  string
	settled int // the width that the terminal had a moment ago
	passed  struct{}

	// outcome is what work outside Update has come to, to be carried out by it
	outcome func(m *Model) tea.Cmd
)

func failed(err error) outcome { return func(m *Model) tea.Cmd { return m.showError(err.Error()) } }

func noted(text string) outcome { return func(m *Model) tea.Cmd { return m.note(text) } }

// A transcript of many rows is not laid out anew for every step of a resize, but once the terminal
// has kept its size for a moment; until then its rows are cut.
const (
	manyRows = 1000
	moment   = 120 * time.Millisecond
)

func newModel(ctx context.Context, o Options) *Model {
	m := &Model{
		options: o, ctx: ctx, clock: time.Now,
		palette: term.Palette{NoColor: o.NoColor, Theme: o.Theme}, loading: o.Loading.Busy(),
		effort: o.Request.Effort, system: o.Request.Instructions,
		history: newHistory(o.HistoryPath),
		keeper:  saver{store: o.Store}, began: time.Now(),
		tools:   toolbox{renew: o.Renew},
		passing: make(chan time.Time, 1),
		saved:   map[string]bool{}, transcript: transcript{follow: true},
	}
	m.tools.tools.Store(&o.Tools)
	if !slices.Contains(efforts, m.effort) {
		m.effort = "medium"
	}
	m.transcript.add(&greeting{m})
	m.isNow(newID())
	if o.Store != nil && o.Resume != "" {
		if k, err := find(o.Store, o.Resume); err != nil {
			m.showError(err.Error())
		} else {
			m.restore(m.claim(k, m.id))
		}
	}
	if err := m.history.file.newer; err != nil {
		m.showError(err.Error())
	}
	return m
}

// Init waits for notices and for questions of tools, and looks at the tools; the terminal sends its
// size by itself.
func (m *Model) Init() tea.Cmd {
	look := m.do(func() outcome {
		m.tools.look()
		return func(*Model) tea.Cmd { return nil }
	})
	return tea.Batch(m.nextNotice(), m.nextAsk(), m.ticks(), m.nextPassed(), look, m.readRecent())
}

// await waits for the next message of a channel; nil: there is none.
func await[T any](ctx context.Context, from <-chan T, message func(T) tea.Msg) tea.Cmd {
	if from == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case next := <-from:
			return message(next)
		case <-ctx.Done():
			return nil
		}
	}
}

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if k, ok := msg.(tea.KeyMsg); ok && k.Type == tea.KeyF20 { // see escape
		msg = tea.KeyMsg{Type: tea.KeyEsc}
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		if m.laidOut != 0 && m.laidOut != m.width && m.transcript.total > manyRows {
			return m, tea.Tick(moment, func(time.Time) tea.Msg { return settled(msg.Width) })
		}
		m.laidOut = m.width
	case settled:
		if int(msg) == m.width {
			m.laidOut = m.width
		}
	case tea.KeyMsg:
		m.now = m.clock()
		m.message = ""
		m.typed++
		cmd := m.key(msg)
		return m, tea.Batch(cmd, m.offer())
	case tea.MouseMsg:
		switch msg.Button {
		case tea.MouseButtonWheelUp:
			m.front().scroll(-3)
		case tea.MouseButtonWheelDown:
			m.front().scroll(3)
		}
	case frame:
		return m, m.frame(msg)
	case tick:
		return m, m.tick(time.Time(msg))
	case outcome:
		return m, msg(m)
	case notice:
		m.noticed = m.typed // nothing goes for it
		m.passingEntry(newNotice(m.palette, "·", term.Dim, string(msg)), time.Time{})
		return m, m.nextNotice()
	case passed:
		m.now = m.clock()
		return m, m.nextPassed()
	case approvalAsk:
		if m.live != nil { // else it is of a turn that was given up
			m.openAsk(msg)
		}
		return m, m.nextAsk()
	}
	return m, nil
}

// do runs work outside Update, which carries out what it returns. Run waits for it.
func (m *Model) do(work func() outcome) tea.Cmd {
	done := make(chan outcome, 1)
	m.background.Go(func() { done <- work() })
	return func() tea.Msg { return <-done }
}

// send takes what the editor holds.
func (m *Model) send() tea.Cmd {
	text := m.editor.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	m.searching = nil
	if name, argument, ok := parseCommand(strings.TrimRight(text, " \n")); ok {
		m.remember(text)
		return m.obey(name, argument)
	}
	m.remember(text)
	m.editor.set("")
	m.changed = m.now
	m.notices++
	m.noticed = m.typed
	if m.live != nil || m.compacting != nil || m.preparing != "" {
		m.queued = append(m.queued, text)
		if m.keeper.store == nil {
			return nil
		}
		m.unkept++
		kept := m.kept()
		return m.do(func() outcome {
			kept()
			return func(m *Model) tea.Cmd {
				m.unkept = max(m.unkept-1, 0)
				return nil
			}
		})
	}
	replaced := m.editing
	m.editing = nil
	return m.prepare(strings.TrimSpace(text), replaced)
}

// remember puts a line into the history.
func (m *Model) remember(text string) {
	if m.history.add(text) {
		m.history.file.queue(text)
		m.background.Go(func() {
			// a history that cannot be kept is no reason to disturb a conversation
			_ = m.history.file.flush()
		})
	}
}

// ask begins a turn behind the last exchange, or a branch beside the exchange that it replaces.
// What stands on the screen from that one on stays until something of the new answer has come. sent
// is text with what it names.
func (m *Model) ask(text, sent string, replaced *exchange) tea.Cmd {
	m.now = m.clock()
	m.changed = m.now
	before := m.conversation.at
	if replaced != nil {
		before = replaced.before
	}
	a, question := newAnswer(m.palette, m.now, len(before.code())), newQuestion(m.palette, text)
	ctx, cancel := context.WithCancel(m.ctx)
	m.turns++
	l := &live{number: m.turns, cancel: cancel, box: newMailbox(), answer: a, question: question,
		started: m.now, before: m.conversation.at, replaced: replaced}
	m.live = l
	m.conversation.at = before
	l.exchange = m.conversation.ask(text, len(m.transcript.entries), a)
	l.exchange.messages[0] = session.User(sent)
	if replaced == nil || replaced.question != text {
		m.transcript.add(question)
	}
	m.appendEntry(a)

	req := m.request()
	m.keep()
	a.tools = len(m.tools.now()) > 0
	clock, runner, pictures := m.clock, m.tools.watched(m.options.Model), m.options.Pictures
	start := func() (session.Turn, error) {
		given, err := m.tools.ready()
		if err != nil {
			return nil, err
		}
		return session.StartWithTools(ctx, runner, req, given, session.ToolLimits{})
	}
	m.background.Go(func() {
		defer cancel()
		l.box.run(start, clock, pictures)
	})
	return tea.Batch(l.box.next(m.ctx, l.number, time.Time{}, clock), m.ticks())
}

// request asks for the answer to the last question.
func (m *Model) request() session.Request {
	req := m.options.Request
	req.Messages, req.Effort, req.Instructions = m.conversation.messages(), m.effort, m.system
	if m.options.Format != "" {
		req.Instructions = strings.TrimPrefix(m.system+"\n\n"+m.options.Format, "\n\n")
	}
	return req
}

// begun takes what the answer replaces from the screen.
func (m *Model) begun() {
	l := m.live
	l.begun = true
	if l.replaced == nil {
		return
	}
	l.exchange.entry = l.replaced.entry
	m.transcript.entries = append(m.transcript.entries[:l.replaced.entry:l.replaced.entry],
		l.question, l.answer)
}

// frame takes what came since the last one.
func (m *Model) frame(f frame) tea.Cmd {
	l := m.live
	if l == nil || f.number != l.number {
		return nil // of a turn that was given up
	}
	m.now, m.changed = f.at, f.at
	var done *session.Done
	for _, e := range f.events {
		if d, ok := e.event.(session.Done); ok {
			done = &d
			continue
		}
		if !l.begun {
			m.begun()
		}
		if l.answer.take(e.event, e.at) {
			if l.tokens++; l.tokens == 1 {
				l.first = e.at
			}
			l.latest = e.at
		}
	}
	if done != nil {
		if err := l.failure(*done); err != nil {
			m.refused(err)
			return nil
		}
		if !l.begun {
			m.begun()
		}
		m.ended(*done)
	}
	if f.err != nil {
		m.refused(f.err)
		return nil
	}
	if f.over {
		l.exchange.messages = append(l.exchange.messages, f.result.Messages...)
		l.answer.cite(f.result.Answer, f.result.Citations, m.plain)
		if l.answer.live { // a runner that ended without Done
			l.answer.finish(m.now, "The engine stopped unexpectedly. Type /regenerate to retry.",
				term.Red)
		}
		m.live, m.asking = nil, nil
		m.keep()
		if l.goesOn() {
			m.showNotice("Lost the server while it was answering. Retrying…")
			return m.regenerate()
		}
		return m.nextQueued(l.finish == session.FinishStop)
	}
	if m.now.Sub(m.keptAt) >= keepEvery {
		m.keep()
	}
	return l.box.next(m.ctx, l.number, f.at, m.clock)
}

// nextQueued sends what was typed while the answer was written, or gives it back to the editor
// where the answer did not end by itself.
func (m *Model) nextQueued(well bool) tea.Cmd {
	if len(m.queued) == 0 {
		return nil
	}
	if well {
		next := m.queued[0]
		m.queued = m.queued[1:]
		m.unkept = min(m.unkept, len(m.queued))
		return m.prepare(strings.TrimSpace(next), nil)
	}
	m.unqueue()
	return nil
}

// unqueue puts what waits back into the editor.
func (m *Model) unqueue() {
	text := append(m.queued, m.editor.text)
	m.queued, m.unkept = nil, 0
	m.editor.set(strings.TrimRight(strings.Join(text, "\n"), "\n"))
	m.returned = m.editor.text
}

// giveBack puts a message that was not asked yet into the editor again.
func (m *Model) giveBack() {
	if m.preparing != "" {
		m.queued = append([]string{m.preparing}, m.queued...)
		m.preparing = ""
		m.unqueue()
	}
}

// stop ends the answer or the summary that is being written.
func (m *Model) stop() {
	if m.compacting != nil {
		m.compacting()
	}
	if m.live != nil {
		m.live.stopping = true
		m.live.cancel()
	}
}

// abandon stops a turn whose end nobody waits for.
func (m *Model) abandon() {
	m.stop()
	m.live, m.asking = nil, nil
}

func (m *Model) quit() tea.Cmd {
	m.keep()
	m.abandon()
	m.leaving = true
	return tea.Quit
}

// appendEntry puts an entry at the transcript's end, which comes into sight.
func (m *Model) appendEntry(e entry) tea.Cmd {
	m.transcript.add(e)
	m.transcript.follow = true
	return nil
}

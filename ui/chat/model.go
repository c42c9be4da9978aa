// The state of the chat and its changes. Every message is handled here; slow work runs in a
// goroutine that answers with another message.

package chat

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// A Model is the complete state of the chat.
type Model struct {
	options    Options
	ctx        context.Context
	background jobs
	clipboard  io.Writer

	screen // the transcript and its messages
	modes  modes
	input  input
	talk   talk
	tools  toolbox
	record record

	blurred     bool      // the terminal says that its window is not in front
	loading     bool      // the model is being loaded
	ticking     bool      // a tick is scheduled
	interrupted time.Time // by Ctrl+C
	quitting    bool
}

// Messages. An outcome is the result of work outside Update, which applies it.
type (
	outcome interface{ apply(m *Model) tea.Cmd }

	tick           time.Time
	notice         string
	stableWidth    int // the terminal's width a moment ago
	noticeExpired  struct{}
	toolsInspected struct{}
	queueSaved     struct{} // the last queued message is in the store
	shortNote      string
	failure        struct{ err error }
	pageRows       []line
)

func (queueSaved) apply(m *Model) tea.Cmd {
	m.talk.unsaved = max(m.talk.unsaved-1, 0)
	return nil
}

func (n shortNote) apply(m *Model) tea.Cmd { return m.note(string(n)) }
func (f failure) apply(m *Model) tea.Cmd   { return m.showError(f.err.Error()) }
func (l pageRows) apply(m *Model) tea.Cmd  { return m.showPage(l) }

// jobs is all work outside Update. Run waits for it.
type jobs struct{ sync.WaitGroup }

// run runs work whose result is Update's next message.
func (j *jobs) run(work func() tea.Msg) tea.Cmd {
	done := make(chan tea.Msg, 1)
	j.Go(func() { done <- work() })
	return func() tea.Msg { return <-done }
}

func newModel(ctx context.Context, o Options) *Model {
	m := &Model{
		options: o, ctx: ctx, loading: o.Loading.Busy(),
		screen: screen{palette: term.Palette{NoColor: o.NoColor, Theme: o.Theme},
			clock: time.Now, transcript: transcript{follow: true},
			notices: notices{expiry: make(chan time.Time, 1)}},
		input: input{history: newHistory(o.HistoryPath)},
		talk:  talk{effort: o.Request.Effort, system: o.Request.Instructions},
		tools: toolbox{replace: o.ReplaceTools},
		record: record{saver: saver{store: o.Store}, startTime: time.Now(), lock: o.Claim,
			exported: map[string]bool{}},
	}
	m.tools.tools.Store(&o.Tools)
	if !slices.Contains(efforts, m.talk.effort) {
		m.talk.effort = "medium"
	}
	m.transcript.add(&greeting{m})
	m.record.setID(newID(), &m.background)
	if o.Store != nil && o.Resume != "" {
		if k, err := find(o.Store, o.Resume); err != nil {
			m.showError(err.Error())
		} else {
			m.restore(m.record.claim(k, m.record.id))
		}
	}
	if err := m.input.history.file.versionErr; err != nil {
		m.showError(err.Error())
	}
	return m
}

// Init waits for notices and questions of tools, and inspects the tools; the terminal sends its
// size unasked.
func (m *Model) Init() tea.Cmd {
	look := m.background.run(func() tea.Msg {
		m.tools.inspect()
		return toolsInspected{}
	})
	return tea.Batch(m.nextNotice(), m.options.Approval.next(m.ctx), m.scheduleTick(),
		m.nextExpiry(), look, m.readRecent())
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
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		return m, m.resize(msg)
	case stableWidth:
		if int(msg) == m.width {
			m.laidOut = m.width
		}
	case tea.KeyMsg:
		m.now = m.clock()
		m.notices.keyTyped()
		cmd := m.key(msg)
		return m, tea.Batch(cmd, m.loadMenu(), m.loadFiles())
	case tea.MouseMsg:
		switch msg.Button {
		case tea.MouseButtonWheelUp:
			m.visibleTranscript().scroll(-3)
		case tea.MouseButtonWheelDown:
			m.visibleTranscript().scroll(3)
		}
	case tea.FocusMsg:
		m.blurred = false
	case tea.BlurMsg:
		m.blurred = true
	case frame:
		return m, m.frame(msg)
	case tick:
		return m, m.tick(time.Time(msg))
	case outcome:
		return m, msg.apply(m)
	case notice:
		m.notices.last = m.notices.typed // it replaces no other notice
		m.addNotice(newNotice(m.palette, "·", term.Dim, string(msg)), time.Time{})
		return m, m.nextNotice()
	case noticeExpired:
		m.now = m.clock()
		return m, m.nextExpiry()
	case approvalAsk:
		if m.talk.live != nil { // otherwise its turn was abandoned
			msg.open(m)
		}
		return m, m.options.Approval.next(m.ctx)
	}
	return m, nil
}

// send handles Enter: the editor's text is a command or a message.
func (m *Model) send() tea.Cmd {
	text := m.input.editor.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	m.modes.close(searchRank)
	if strings.HasPrefix(text, "!") && !m.talk.shellAllowed {
		return m.confirmCommand()
	}
	m.remember(text)
	m.notices.hideEarlier()
	if name, argument, ok := parseCommand(strings.TrimRight(text, " \n")); ok {
		return m.runCommand(name, argument)
	}
	m.input.editor.set("")
	m.record.changed = m.now
	if t := &m.talk; t.live != nil || t.compacting != nil || t.preparing != "" {
		t.queued = append(t.queued, text)
		if m.record.saver.store == nil {
			return nil
		}
		t.unsaved++
		wait := m.saveAndWait()
		return m.background.run(func() tea.Msg {
			wait()
			return queueSaved{}
		})
	}
	replaced := m.talk.editing
	m.talk.editing = nil
	return m.prepare(text, replaced)
}

func (m *Model) remember(text string) {
	if m.input.history.add(text) {
		m.input.history.file.queue(text)
		m.background.Go(func() {
			// an unwritable history is no reason to interrupt a conversation
			_ = m.input.history.file.flush()
		})
	}
}

// reset starts another conversation; the effort and the instructions stay.
func (m *Model) reset() tea.Cmd {
	m.abandon()
	m.save()
	m.begin()
	return nil
}

func (m *Model) begin() {
	m.abandon()
	m.tools.markStale()
	t := &m.talk
	t.conversation, t.context, t.rate = conversation{}, 0, 0
	t.queued, t.unsaved, t.preparing, t.shellAllowed = nil, 0, "", false
	m.input.pastes, m.input.recent = nil, nil
	m.record.name, m.record.model, m.record.startTime = "", "", m.now
	m.record.setID(newID(), &m.background)
	m.show(nil)
}

func (m *Model) quit() tea.Cmd {
	m.save()
	m.abandon()
	m.quitting = true
	return tea.Quit
}

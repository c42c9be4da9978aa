// The start of a chat: model, device, and the latest conversations, one of which can be opened,
// while the model is loaded. The loader writes its progress from its own goroutine; the chat reads
// it at each tick of its clock.
//
// What must stay true: conversations are read outside Update; they are listed only before the first
// message, and a key opens only a visible one.

package chat

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// maxRecent is how many conversations the start lists; a small screen lists fewer.
const maxRecent = 8

// A greeting is the first entry of a transcript.
type greeting struct{ model *Model }

func (g *greeting) runs(l layout) []run {
	m := g.model
	name := term.Row{{Text: "ossrun · ", Style: term.Bold},
		{Text: term.Clean(m.options.Model.ID()), Style: term.Bold | term.Cyan}}
	length := "context length unknown"
	if n := m.options.Model.ContextLength(); n > 0 {
		length = term.Number(n) + " tokens of context"
	}
	for _, text := range []string{deviceName(m.options.Model), length} {
		if text != "" && !m.loading {
			name = append(name, term.Span{Text: " · " + text, Style: term.Dim})
		}
	}
	rows := term.Wrap(name, l.width)
	say := func(text string) {
		rows = append(rows, term.Wrap([]term.Span{{Text: term.Clean(text), Style: term.Dim}},
			l.width)...)
	}
	if m.loading {
		say("You can type already. Messages are answered when the model is loaded.")
	}
	if m.options.Notice != "" {
		say(m.options.Notice)
	}
	switch recent := m.recentChoices(); {
	case m.plain:
		say("Type a message, or /help for the commands.")
	case len(recent) > 0:
		rows = append(rows, nil, term.Row{{Text: "Recent", Style: term.Bold}})
		rows = append(rows, choiceRows(recent, m.input.chosen(m.choices()), l.width)...)
		say("Up and Down choose · Enter opens · type to begin a new one")
	case len(m.talk.conversation.first) == 0 && len(m.input.recent) == 0:
		rows = append(rows, nil)
		example := "Plan a weekend in Lisbon."
		if m.options.Model.ID() == models.Demo { // it knows a little about this program
			example = "How do I serve an OpenAI API?"
		}
		say("Type a message, for example: " + example)
	}
	return []run{{rows: l.palette.PaintAll(rows)}}
}

func deviceName(model session.Runner) string {
	name := term.Clean(model.Device())
	if rest, ok := strings.CutPrefix(name, "cpu"); ok {
		return "CPU" + rest
	}
	return name
}

func (m *Model) readRecent() tea.Cmd {
	if m.record.saver.store == nil || m.plain || len(m.talk.conversation.first) > 0 {
		return nil
	}
	read := sessionsFor("/resume ")(m)
	return m.background.run(func() tea.Msg {
		all := read()
		all = slices.Clone(all[:min(len(all), maxRecent)]) // the texts of the others can be freed
		for i := range all {
			all[i].columns = all[i].columns[:2]
		}
		return recentRead(all)
	})
}

type recentRead []choice

func (r recentRead) apply(m *Model) tea.Cmd {
	m.input.recent = r
	return nil
}

func (m *Model) recentChoices() []choice {
	t, in := &m.talk, &m.input
	if m.plain || in.editor.text != "" || len(t.conversation.first) > 0 || t.isAnswering() {
		return nil
	}
	return in.recent[:min(len(in.recent), max(m.height/4, 1))]
}

// ago formats a time: 5 minutes ago, yesterday, 3 Nov.
func ago(then, now time.Time) string {
	then, now = then.Local(), now.Local()
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	switch d := now.Sub(then); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return term.Count(int(d.Minutes()), "minute") + " ago"
	case day(then) == day(now):
		return term.Count(int(d.Hours()), "hour") + " ago"
	case day(then) == day(now.AddDate(0, 0, -1)):
		return "yesterday"
	case then.Year() == now.Year():
		return then.Format("2 Jan")
	}
	return then.Format("2 Jan 2006")
}

// A Loading is shared by the chat and the loader of its model. The zero value is ready.
type Loading struct {
	mu    sync.Mutex
	state loadState
}

type loadState struct {
	what        string
	busy        bool
	start       time.Time
	done, total int64 // bytes
	err         error // of a finished load
}

func (l *Loading) set(change func(s *loadState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
}

func (l *Loading) snapshot() (state loadState) {
	l.set(func(s *loadState) { state = *s })
	return state
}

func (l *Loading) Begin(what string) {
	l.set(func(s *loadState) { *s = loadState{what: what, busy: true} })
}

// Progress returns functions that show and end one stage of the load; End ends the load.
func (l *Loading) Progress(what string) (show func(done, total int64), done func()) {
	l.set(func(s *loadState) { s.what, s.start = what, time.Now() })
	show = func(done, total int64) {
		l.set(func(s *loadState) { s.done, s.total = done, total })
	}
	return show, func() { show(0, 0) }
}

// End marks the end of the load, with its error.
func (l *Loading) End(err error) { l.set(func(s *loadState) { *s = loadState{err: err} }) }

func (l *Loading) Busy() bool { return l != nil && l.snapshot().busy }

// text describes the progress, "" without a load.
func (l *Loading) text(now time.Time) string {
	if !l.Busy() {
		return ""
	}
	s := l.snapshot()
	text := s.what
	if s.total > 0 {
		text += fmt.Sprintf(", %.1f of %.1f GB", float64(s.done)/1e9, float64(s.total)/1e9)
	}
	if took := now.Sub(s.start); s.done > 0 && took > time.Second {
		remaining := time.Duration(float64(took) * float64(s.total-s.done) / float64(s.done))
		text += ", " + formatDuration(remaining) + " left"
	}
	return text
}

// scheduleTick keeps the clock ticking while something on the screen changes with it.
func (m *Model) scheduleTick() tea.Cmd {
	if m.ticking || m.talk.live == nil && !m.loading {
		return nil
	}
	m.ticking = true
	return tea.Tick(100*time.Millisecond, func(t time.Time) tea.Msg { return tick(t) })
}

// tick advances the clock and checks for the end of a load.
func (m *Model) tick(now time.Time) tea.Cmd {
	m.ticking = false
	if m.talk.live == nil && !m.loading {
		return nil
	}
	m.now = now
	if load := m.options.Loading; m.loading && !load.Busy() {
		m.loading = false
		if err := load.snapshot().err; err != nil {
			m.showError("the model is not loaded: " + reason(err))
		}
	}
	return m.scheduleTick()
}

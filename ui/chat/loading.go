// Progress of loading a model while the chat is open. The loader writes it from its own goroutine;
// the chat reads it at each tick of its clock.

package chat

import (
	"fmt"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

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

// Begin marks the start of a load.
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

// Busy reports whether a model is being loaded.
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

// isAnimated reports whether something on the screen changes with the clock.
func (m *Model) isAnimated() bool { return m.live != nil || m.loading }

// scheduleTick keeps the clock ticking while it does.
func (m *Model) scheduleTick() tea.Cmd {
	if m.ticking || !m.isAnimated() {
		return nil
	}
	m.ticking = true
	return tea.Tick(100*time.Millisecond, func(t time.Time) tea.Msg { return tick(t) })
}

// tick advances the clock and checks for the end of a load.
func (m *Model) tick(now time.Time) tea.Cmd {
	m.ticking = false
	if !m.isAnimated() {
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

// A model that is loaded while the chat is open: how far it is, and what became of it. Whoever
// loads it writes here from its own goroutine; the chat looks whenever its clock ticks.

package chat

import (
	"fmt"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// A Loading is shared between the chat and what loads its model. The zero value is ready.
type Loading struct {
	mu    sync.Mutex
	state loadState
}

type loadState struct {
	what        string
	busy        bool
	began       time.Time
	done, total int64 // bytes
	err         error // of a load that is over
}

func (l *Loading) set(change func(s *loadState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
}

func (l *Loading) now() (now loadState) {
	l.set(func(s *loadState) { now = *s })
	return now
}

// Begin says that a model is being loaded.
func (l *Loading) Begin(what string) {
	l.set(func(s *loadState) { *s = loadState{what: what, busy: true} })
}

// Progress shows how much of the work is done; the work itself ends with End.
func (l *Loading) Progress(what string) (show func(done, total int64), done func()) {
	l.set(func(s *loadState) { s.what, s.began = what, time.Now() })
	show = func(done, total int64) {
		l.set(func(s *loadState) { s.done, s.total = done, total })
	}
	return show, func() { show(0, 0) }
}

// End says that it is loaded, or why it cannot be.
func (l *Loading) End(err error) { l.set(func(s *loadState) { *s = loadState{err: err} }) }

// Busy tells whether a model is being loaded.
func (l *Loading) Busy() bool { return l != nil && l.now().busy }

// text is how far it is, "" where nothing is loaded.
func (l *Loading) text(now time.Time) string {
	if !l.Busy() {
		return ""
	}
	s := l.now()
	text := s.what
	if s.total > 0 {
		text += fmt.Sprintf(", %.1f of %.1f GB", float64(s.done)/1e9, float64(s.total)/1e9)
	}
	if took := now.Sub(s.began); s.done > 0 && took > time.Second {
		left := time.Duration(float64(took) * float64(s.total-s.done) / float64(s.done))
		text += ", " + seconds(left) + " left"
	}
	return text
}

// waits tells whether something on the screen changes with the clock.
func (m *Model) waits() bool { return m.live != nil || m.loading }

// ticks keeps the clock going while something waits.
func (m *Model) ticks() tea.Cmd {
	if m.ticking || !m.waits() {
		return nil
	}
	m.ticking = true
	return tea.Tick(100*time.Millisecond, func(t time.Time) tea.Msg { return tick(t) })
}

// tick moves the clock, and sees whether the model has been loaded.
func (m *Model) tick(now time.Time) tea.Cmd {
	m.ticking = false
	if !m.waits() {
		return nil
	}
	m.now = now
	if load := m.options.Loading; m.loading && !load.Busy() {
		m.loading = false
		if err := load.now().err; err != nil {
			m.showError("the model is not loaded: " + reason(err))
		}
	}
	return m.ticks()
}

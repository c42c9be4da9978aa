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
	mu          sync.Mutex
	what        string
	busy        bool
	began       time.Time
	done, total int64 // bytes
	err         error
}

// Begin says that a model is being loaded.
func (l *Loading) Begin(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what, l.busy, l.done, l.total, l.err = what, true, 0, 0, nil
}

// Progress shows how much of the work is done; the work itself ends with End.
func (l *Loading) Progress(what string) (show func(done, total int64), done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what, l.began = what, time.Now()
	show = func(done, total int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.done, l.total = done, total
	}
	return show, func() { show(0, 0) }
}

// End says that it is loaded, or why it cannot be.
func (l *Loading) End(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.done, l.total, l.err = false, 0, 0, err
}

// text is how far it is, "" where nothing is loaded.
func (l *Loading) text(now time.Time) string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		return ""
	}
	text := l.what
	if l.total > 0 {
		text += fmt.Sprintf(", %.1f of %.1f GB", float64(l.done)/1e9, float64(l.total)/1e9)
	}
	if took := now.Sub(l.began); l.done > 0 && took > time.Second {
		left := time.Duration(float64(took) * float64(l.total-l.done) / float64(l.done))
		text += ", " + seconds(left) + " left"
	}
	return text
}

// Busy tells whether a model is being loaded.
func (l *Loading) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}

// ended takes the error of a load that is over; over tells whether it is.
func (l *Loading) ended() (err error, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err, !l.busy
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
	if m.loading {
		if err, over := m.options.Loading.ended(); over {
			m.loading = false
			m.greeting.lines, m.greeting.width = m.greetingLines(), 0
			if err != nil {
				m.complain("the model is not loaded: " + reason(err))
			}
		}
	}
	return m.ticks()
}

// What the chat itself says: notices, errors, and a few words over the editor.
//
// What must stay true: none of it stays for ever. It goes with the next thing that the chat says,
// with the next message, and a notice after a time too.

package chat

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// noticeStays is how long a notice is shown where nothing takes its place; an error stays until
// something does.
const noticeStays = 15 * time.Second

// A passingNotice is on the screen until others take its place, or for a time.
type passingNotice struct {
	*markedText
	number int
	until  time.Time // zero: for any time
}

func (n *passingNotice) runs(l layout) []run {
	if n.number != l.notices || !n.until.IsZero() && !l.now.Before(n.until) {
		return nil
	}
	return n.markedText.runs(l)
}

func newNotice(p term.Palette, mark string, tone term.Style, text string) *markedText {
	return &markedText{term.Span{Text: mark + " ", Style: tone | term.Bold},
		newProse(p, tone, term.Clean(text)), false}
}

// nextNotice waits for the next line that the program has for the person.
func (m *Model) nextNotice() tea.Cmd {
	return await(m.ctx, m.options.Notices, func(line string) tea.Msg { return notice(line) })
}

// showNotice, showError and note tell the person something: in the transcript, there as an error,
// or over the editor. A command may end with any of them: nothing follows.
func (m *Model) showNotice(text string) tea.Cmd {
	until := m.clock().Add(noticeStays)
	select {
	case <-m.passing: // with it goes the one before
	default:
	}
	m.passing <- until
	return m.passingEntry(newNotice(m.palette, "·", term.Dim, text), until)
}

func (m *Model) showError(text string) tea.Cmd {
	return m.passingEntry(newNotice(m.palette, "✗", term.Red, text), time.Time{})
}

// passingEntry shows a notice in the place of those that came before the last key.
func (m *Model) passingEntry(text *markedText, until time.Time) tea.Cmd {
	if m.noticed != m.typed {
		m.noticed = m.typed
		m.notices++
	}
	return m.appendEntry(&passingNotice{text, m.notices, until})
}

// nextPassed waits until a notice is to go.
func (m *Model) nextPassed() tea.Cmd {
	return func() tea.Msg {
		select {
		case until := <-m.passing:
			timer := time.NewTimer(time.Until(until))
			defer timer.Stop()
			select {
			case <-timer.C:
				return passed{}
			case <-m.ctx.Done():
			}
		case <-m.ctx.Done():
		}
		return nil
	}
}

func (m *Model) note(text string) tea.Cmd {
	m.message = term.Clean(text)
	return nil
}

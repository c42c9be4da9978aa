// Messages of the chat itself: notices, errors, and notes above the editor.
//
// What must stay true: none of them stays for ever. The chat's next message or the person's
// replaces them, and a notice also expires.

package chat

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// noticeStays is how long a notice is visible unless it is replaced; an error does not expire.
const noticeStays = 15 * time.Second

// A passingNotice is visible until others replace it or it expires.
type passingNotice struct {
	*markedText
	number int
	until  time.Time // zero: does not expire
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

// nextNotice waits for the program's next notice.
func (m *Model) nextNotice() tea.Cmd {
	return await(m.ctx, m.options.Notices, func(line string) tea.Msg { return notice(line) })
}

// showNotice, showError and note show the person something: in the transcript, there as an error,
// or above the editor. They return nil, so that a command may end with a call.
func (m *Model) showNotice(text string) tea.Cmd {
	until := m.clock().Add(noticeStays)
	select {
	case <-m.passing: // the earlier one expires with it
	default:
	}
	m.passing <- until
	return m.passingEntry(newNotice(m.palette, "·", term.Dim, text), until)
}

func (m *Model) showError(text string) tea.Cmd {
	return m.passingEntry(newNotice(m.palette, "✗", term.Red, text), time.Time{})
}

// passingEntry shows a notice and hides those from before the last key.
func (m *Model) passingEntry(text *markedText, until time.Time) tea.Cmd {
	if m.noticed != m.typed {
		m.noticed = m.typed
		m.notices++
	}
	return m.appendEntry(&passingNotice{text, m.notices, until})
}

// nextPassed waits until a notice expires.
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

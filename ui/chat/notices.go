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

// noticeDuration is how long a notice is visible unless it is replaced; an error does not expire.
const noticeDuration = 15 * time.Second

// A tempNotice is visible until others replace it or it expires.
type tempNotice struct {
	*markedText
	number int
	until  time.Time // zero: does not expire
}

func (n *tempNotice) runs(l layout) []run {
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
	return receive(m.ctx, m.options.Notices, func(line string) tea.Msg { return notice(line) })
}

// showNotice, showError and note show the person something: in the transcript, there as an error,
// or above the editor. They return nil, so that a command may end with a call.
func (m *Model) showNotice(text string) tea.Cmd {
	until := m.clock().Add(noticeDuration)
	select {
	case <-m.noticeExpiry: // the earlier one expires with it
	default:
	}
	m.noticeExpiry <- until
	return m.addNotice(newNotice(m.palette, "·", term.Dim, text), until)
}

func (m *Model) showError(text string) tea.Cmd {
	return m.addNotice(newNotice(m.palette, "✗", term.Red, text), time.Time{})
}

// addNotice shows a notice and hides those from before the last key.
func (m *Model) addNotice(text *markedText, until time.Time) tea.Cmd {
	if m.noticed != m.typed {
		m.noticed = m.typed
		m.notices++
	}
	return m.appendEntry(&tempNotice{text, m.notices, until})
}

// nextExpiry waits until a notice expires.
func (m *Model) nextExpiry() tea.Cmd {
	return func() tea.Msg {
		select {
		case until := <-m.noticeExpiry:
			timer := time.NewTimer(time.Until(until))
			defer timer.Stop()
			select {
			case <-timer.C:
				return noticeExpired{}
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

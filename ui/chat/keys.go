// Key bindings. The names are Bubble Tea's.

package chat

import (
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// doublePress is how soon a second Ctrl+C quits in any state.
const doublePress = time.Second

// lineEnds converts a paste's line ends: most terminals send CR.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// key handles one key, or a paste. Several letters at once are text, even if they spell the name of
// a key, such as "delete".
func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	name := k.String()
	if len(k.Runes) > 1 {
		name = ""
	}
	if m.confirming != nil {
		return m.answerConfirmation(name)
	}
	if k.Paste {
		m.paste(lineEnds.Replace(string(k.Runes)))
		return nil
	}
	if m.textPrompt != nil && (name == "enter" || name == "esc" || name == "ctrl+c") {
		return m.answerPrompt(name == "enter")
	}
	if m.searching != nil && m.searchKey(k, name) {
		return nil
	}
	if m.answerable() && m.approve(name) {
		return nil
	}
	if m.asking != nil {
		m.asking.since = m.now
	}
	e, width, front := &m.editor, m.editorWidth(), m.visibleTranscript()
	if m.page != nil && m.pageKey(name) {
		return nil
	}
	if cmd, ok := m.listKey(name); ok {
		return cmd
	}
	switch name {
	case "enter":
		if c := m.chosen(); c != nil {
			return m.takeChoice(*c)
		}
		return m.send()
	case "alt+enter", "ctrl+j":
		e.insert("\n")
	case "esc":
		if c, _ := valueCommand(e.text); c != nil || len(m.choices()) > 0 {
			e.set("")
			return nil
		}
		if m.live == nil && m.compacting == nil && m.editing != nil {
			m.editing = nil
			e.set("")
		}
		m.returnMessage()
		m.stop()
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		if e.text == "" {
			return m.quit()
		}
		e.delete()
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "ctrl+r":
		m.startSearch()
	case "ctrl+g":
		return m.compose()
	case "ctrl+s":
		if c, _ := valueCommand(e.text); c == nil && e.text != "" {
			m.remember(e.text) // Up restores it
		}
		return m.sessions("")
	case "?":
		if e.text == "" {
			return m.help()
		}
		e.insert(name)
	case "shift+tab":
		return m.setEffort(efforts[(slices.Index(efforts, m.effort)+1)%len(efforts)])
	case "ctrl+t":
		m.unfolded = !m.unfolded
	case "tab":
		if start := pathStart(e.text); start >= 0 {
			return m.completePath(start)
		}
		m.complete()
	case "up":
		if !m.moveChoice(-1) && !e.up(width) {
			if text, ok := m.history.older(e.text); ok {
				e.set(text)
			}
		}
	case "down":
		if !m.moveChoice(1) && !e.down(width) {
			if text, ok := m.history.newer(); ok {
				e.set(text)
			}
		}
	case "pgup":
		front.scroll(-max(front.height-2, 1))
	case "pgdown":
		front.scroll(max(front.height-2, 1))
	case "shift+up":
		front.scroll(-1)
	case "shift+down":
		front.scroll(1)
	case "ctrl+home":
		front.scroll(-front.total)
	case "ctrl+end":
		front.scroll(front.total)
	default:
		if edit := editing[name]; edit != nil {
			edit(e)
		} else if (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt {
			e.insert(string(k.Runes))
		}
	}
	return nil
}

// editing maps the keys that move the cursor or delete text.
var editing = map[string]func(*editor){
	"left": (*editor).moveLeft, "ctrl+b": (*editor).moveLeft,
	"right": (*editor).moveRight, "ctrl+f": (*editor).moveRight,
	"alt+left": (*editor).wordLeft, "ctrl+left": (*editor).wordLeft, "alt+b": (*editor).wordLeft,
	"alt+right": (*editor).wordRight, "ctrl+right": (*editor).wordRight,
	"alt+f": (*editor).wordRight,
	"home":  (*editor).home, "ctrl+a": (*editor).home,
	"end": (*editor).end, "ctrl+e": (*editor).end,
	"backspace": (*editor).backspace, "ctrl+h": (*editor).backspace,
	"delete": (*editor).delete,
	"ctrl+w": (*editor).deleteWordLeft, "alt+backspace": (*editor).deleteWordLeft,
	"alt+d":  (*editor).deleteWordRight,
	"ctrl+u": (*editor).deleteToLineHome,
	"ctrl+k": (*editor).deleteToLineEnd,
}

// interrupt is Ctrl+C: it stops an answer or clears the text. It quits without either, or if
// pressed twice.
func (m *Model) interrupt() tea.Cmd {
	double := !m.interrupted.IsZero() && m.now.Sub(m.interrupted) < doublePress
	m.interrupted = m.now
	switch {
	case double || m.live == nil && m.editor.text == "":
		return m.quit()
	case m.live != nil:
		m.stop()
		m.note("Ctrl+C again leaves")
	default:
		m.remember(m.editor.text)
		m.editor.set("")
		m.note("Up brings it back, Ctrl+C again leaves")
	}
	return nil
}

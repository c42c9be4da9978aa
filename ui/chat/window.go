// A sign when a long answer has ended: a bell, and the notice of terminals that have one.
//
// What must stay true: it is only given while the terminal reports that its window is not in front,
// and has no text of the model.

package chat

import (
	"io"
	"os"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// longTurn is how long an answer takes whose end is worth a sign.
const longTurn = 10 * time.Second

// announce gives a sign that an answer has ended, if the person may have turned to another window.
func (l *live) announce(m *Model) tea.Cmd {
	if !m.blurred || m.options.NoNotify || m.plain || m.clipboard == nil || l.stopping ||
		len(m.talk.queued) > 0 || m.now.Sub(l.started) < longTurn {
		return nil
	}
	sign, out := notification(os.Getenv("TERM")+os.Getenv("TERM_PROGRAM")), m.clipboard
	return m.background.run(func() tea.Msg {
		_, _ = io.WriteString(out, sign) // a sign that is not seen is no fault
		return nil
	})
}

// notification is a bell, and the sequence of the terminals that are known to show a notice.
func notification(terminal string) string {
	const iterm, rxvt = "\x1b]9;The answer is done.\x1b\\",
		"\x1b]777;notify;ossrun;The answer is done.\x1b\\"
	for name, sequence := range map[string]string{"iterm": iterm, "wezterm": iterm,
		"ghostty": iterm, "kitty": iterm, "foot": rxvt, "rxvt": rxvt} {
		if strings.Contains(strings.ToLower(terminal), name) {
			return sequence + "\a"
		}
	}
	return "\a"
}

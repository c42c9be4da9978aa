// From the Model to the screen. Nothing here changes what is shown next, but for caches and the
// size that scrolling needs.

package chat

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// The screen, from top to bottom: the transcript, a line that carries notes, hints while a command
// is typed, the editor, the status. Every row is at most as wide as the screen and there are
// exactly as many as it has, so the terminal never scrolls by itself.

// prompt stands before the first row of the editor.
const prompt = "❯ "

// margin is the blank column on either side; narrow screens have none.
func (m *Model) margin() int {
	if m.width < 50 {
		return 0
	}
	return 1
}

func (m *Model) editorWidth() int { return max(m.width-2*m.margin()-term.Width(prompt), 2) }

// View draws the screen.
func (m *Model) View() string {
	if m.width == 0 || m.height == 0 || m.leaving {
		return ""
	}
	hints := append(append(m.askRows(), m.queuedRows()...), m.hintRows(max(m.height/3, 1))...)
	editor := m.editorRows(max(min(m.height/3, 10), 1))
	bottom := append(append(append([]term.Row{m.ruleRow()}, hints...), editor...), m.statusRow())
	// a screen of a few rows: the editor is what matters
	if spare := len(bottom) + 1 - m.height; spare > 0 {
		bottom = bottom[min(spare, len(bottom)-1):]
		if m.height == 1 {
			bottom = editor[:1]
		}
	}
	margin := m.margin()
	body := m.transcript.view(layout{
		palette: m.palette, width: max(min(m.laidOut-2*margin, widest), 1),
		wide:     max(m.laidOut-2*margin, 1),
		height:   m.height - len(bottom),
		unfolded: m.unfolded, now: m.now, loading: m.options.Loading.text(m.now),
	})
	var b strings.Builder
	for _, row := range body {
		b.WriteString(strings.Repeat(" ", margin))
		b.WriteString(m.clip(row))
		b.WriteByte('\n')
	}
	for i, row := range bottom {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(m.clip(m.palette.Paint(row)))
	}
	return b.String()
}

// clip cuts what has no room: on a screen of a few columns, where marks and indents alone may be
// too wide, and while a resize goes on.
func (m *Model) clip(row string) string {
	if m.width >= 16 && m.laidOut <= m.width {
		return row
	}
	return ansi.Truncate(row, m.width, "")
}

// ruleRow is the line over the editor. It carries notes, and while the end of the transcript is out
// of sight how far.
func (m *Model) ruleRow() term.Row {
	note := m.message
	if below := m.transcript.below(); note == "" && below > 0 {
		note = fmt.Sprintf("↓ %s more rows, PgDn", thousands(below))
	}
	if note == "" && m.live == nil {
		note = m.options.Loading.text(m.now)
	}
	if note == "" {
		return term.Row{{Text: strings.Repeat("─", m.width), Style: term.Dim}}
	}
	note = term.Cut(note, max(m.width-6, 0))
	left := 2
	right := max(m.width-left-2-term.Width(note), 0)
	return term.Row{
		{Text: strings.Repeat("─", left), Style: term.Dim},
		{Text: " " + note + " ", Style: term.Bold},
		{Text: strings.Repeat("─", right), Style: term.Dim},
	}
}

// queuedRows are the messages that are sent when the answer ends.
func (m *Model) queuedRows() []term.Row {
	var rows []term.Row
	for _, q := range m.queued {
		text := strings.Join(strings.Fields(q), " ")
		rows = append(rows, term.Row{{Text: strings.Repeat(" ", m.margin())}, {Style: term.Dim,
			Text: term.Cut("next: "+text, max(m.width-2*m.margin(), 0))}})
	}
	return rows
}

func (m *Model) editorRows(most int) []term.Row {
	blank := strings.Repeat(" ", m.margin())
	first := term.Span{Text: blank + prompt, Style: term.Bold | term.Green}
	if m.editor.text == "" {
		return []term.Row{{first, {Text: "A", Style: term.Reverse | term.Dim},
			{Text: term.Cut("sk something", m.editorWidth()-1), Style: term.Dim}}}
	}
	return term.Prefix(m.editor.view(m.editorWidth(), most), first, term.Span{Text: blank + "  "})
}

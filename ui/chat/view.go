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

// A field is one piece of the status; where they do not all fit, those of the highest rank go
// first.
type field struct {
	text  string
	style term.Style
	rank  int
	right bool
}

// statusRow shows the model, the device and the effort on the left, speed and context on the right.
func (m *Model) statusRow() term.Row {
	used, rate := m.context, m.rate
	fields := []field{
		{term.Clean(m.options.Model.ID()), term.Bold, 4, false},
		{term.Clean(m.options.Model.Device()), term.Dim, 6, false},
		{"effort " + m.effort, term.Plain, 3, false},
	}
	if l := m.live; l != nil {
		used, rate = used+l.tokens, l.rate()
		state := "Esc stops"
		if l.stopping {
			state = "stopping"
		}
		fields = append(fields, field{state, term.Yellow, 2, false})
	}
	if len(m.tools.now()) > 0 {
		var names []string
		for _, o := range offered(m.tools.now()) {
			names = append(names, term.Clean(o.name))
		}
		text := strings.Join(names, ", ")
		if len(names) > 3 {
			text = fmt.Sprintf("%d tools", len(names))
		}
		fields = append(fields, field{text, term.Dim, 7, false})
	}
	if m.cached > 0 {
		fields = append(fields, field{thousands(m.cached) + " cached", term.Dim, 8, true})
	}
	if rate > 0 {
		fields = append(fields, field{fmt.Sprintf("%.1f tok/s", rate), term.Plain, 5, true})
	}
	length := m.options.Model.ContextLength()
	style := term.Dim
	switch {
	case length == 0: // a port that does not say
	case 100*used >= 90*length:
		style = term.Red | term.Bold
	case 100*used >= 75*length:
		style = term.Yellow
	}
	fields = append(fields, field{contextUse(used, length), style, 1, true})

	margin := m.margin()
	for {
		left, right := joinFields(fields, false), joinFields(fields, true)
		gap := m.width - 2*margin - left.Width() - right.Width()
		if gap >= 2 || len(fields) == 1 {
			if gap < 0 {
				return term.Row{{Text: term.Cut(fields[0].text, m.width)}}
			}
			row := append(term.Row{{Text: strings.Repeat(" ", margin)}}, left...)
			row = append(row, term.Span{Text: strings.Repeat(" ", max(gap, 0))})
			return append(row, right...)
		}
		drop := 0
		for i, f := range fields {
			if f.rank > fields[drop].rank {
				drop = i
			}
		}
		fields = append(fields[:drop:drop], fields[drop+1:]...)
	}
}

func joinFields(fields []field, right bool) term.Row {
	var row term.Row
	for _, f := range fields {
		if f.right != right || f.text == "" {
			continue
		}
		if len(row) > 0 {
			row = append(row, term.Span{Text: " · ", Style: term.Dim})
		}
		row = append(row, term.Span{Text: f.text, Style: f.style})
	}
	return row
}

// contextUse writes "1,234 / 131,072, 1 %".
func contextUse(used, length int) string {
	if length == 0 {
		return thousands(used) + " tokens"
	}
	return fmt.Sprintf("%s / %s, %d %%", thousands(used), thousands(length),
		(100*used+length/2)/length)
}

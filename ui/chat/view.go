// View: the Model drawn on the screen. It changes only caches and the sizes needed for scrolling.
//
// The screen, from top to bottom: the transcript, a rule with notes, hints during a command, the
// editor, the status. There are exactly as many rows as the screen has, and none is wider, so the
// terminal never scrolls by itself.
//
// The status has labelled values: model, device, effort and tools on the left, cached tokens, speed
// and context on the right. A narrow screen drops some, never the context.

package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// prompt precedes the first row of the editor.
const prompt = "❯ "

// keyHints are shown in an empty editor if there is room.
const keyHints = "      / commands   @ file   Shift+Tab effort   ? help"

// margin is the blank columns on either side; narrow screens have none.
func (m *Model) margin() int {
	if m.width < 50 {
		return 0
	}
	return 1
}

func (m *Model) editorWidth() int { return max(m.width-2*m.margin()-term.Width(prompt), 2) }

func (m *Model) View() string {
	if m.width == 0 || m.height == 0 || m.quitting {
		return ""
	}
	hints := slices.Concat(m.confirmRows(), m.askRows(), m.queuedRows(),
		m.hintRows(max(m.height/3, 1)))
	editor, caret := m.editorRows(max(min(m.height/3, 10), 1))
	bottom := append(append(append([]term.Row{nil}, hints...), editor...), m.statusRow())
	// on a screen of a few rows the editor matters most
	spare := len(bottom) + 1 - m.height
	if spare > 0 {
		bottom = bottom[min(spare, len(bottom)-1):]
		if m.height == 1 {
			bottom = editor[:1]
		}
	}
	if m.caret != nil {
		caret.row += m.height - 1 - len(editor) // above the status
		m.caret.Store(&caret)
	}
	margin := m.margin()
	body := m.visibleTranscript().view(layout{
		palette: m.palette, width: max(min(m.laidOut-2*margin, maxTextWidth), 1),
		wide:     max(m.laidOut-2*margin, 1),
		height:   m.height - len(bottom),
		unfolded: m.unfolded, now: m.now, notices: m.notices, asking: m.asking != nil,
		loading: m.options.Loading.text(m.now),
	})
	if spare <= 0 {
		bottom[0] = m.ruleRow() // it shows how much of the body is below the screen
	}
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

// clip cuts a row that is too wide: during a resize, or on a screen of a few columns, where marks
// and indents alone do not fit.
func (m *Model) clip(row string) string {
	if m.width >= 16 && m.laidOut <= m.width {
		return row
	}
	return ansi.Truncate(row, m.width, "")
}

// ruleRow is the line above the editor. It has notes, or how many rows are below the screen.
func (m *Model) ruleRow() term.Row {
	note := m.message
	if m.textPrompt != nil {
		note = m.textPrompt.label
	}
	if below := m.visibleTranscript().rowsBelow(); note == "" && below > 0 {
		note = "↓ " + formatCount(below, "more row") + ", PgDn"
	}
	if m.page != nil {
		note = strings.TrimSuffix("Esc closes · "+note, " · ")
	}
	if note == "" && m.live == nil {
		note = m.options.Loading.text(m.now)
	}
	if note == "" {
		return term.Row{{Text: strings.Repeat("─", m.width), Style: term.Dim}}
	}
	note = term.Cut(note, max(m.width-6, 0))
	leftWidth := 2
	rightWidth := max(m.width-leftWidth-2-term.Width(note), 0)
	return term.Row{
		{Text: strings.Repeat("─", leftWidth), Style: term.Dim},
		{Text: " " + note + " ", Style: term.Bold},
		{Text: strings.Repeat("─", rightWidth), Style: term.Dim},
	}
}

// queuedRows are the messages that are sent when the answer ends.
func (m *Model) queuedRows() []term.Row {
	var rows []term.Row
	for _, q := range m.queued[:len(m.queued)-m.unsaved] {
		text := strings.Join(strings.Fields(q), " ")
		rows = append(rows, term.Row{{Text: strings.Repeat(" ", m.margin())}, {Style: term.Dim,
			Text: term.Cut("next: "+text, max(m.width-2*m.margin(), 0))}})
	}
	return rows
}

// unsavedText is the last sent message, on one line, until it is stored: it stays in the editor, so
// that a kill before then loses no message that looked sent.
func (m *Model) unsavedText() string {
	text := m.preparing
	if m.unsaved > 0 {
		text = m.queued[len(m.queued)-1]
	}
	return strings.Join(strings.Fields(term.Clean(text)), " ")
}

// editorRows returns the editor's rows and the caret's position in them.
func (m *Model) editorRows(most int) ([]term.Row, position) {
	blank := strings.Repeat(" ", m.margin())
	first := term.Span{Text: blank + prompt, Style: term.Bold | term.Green}
	if sent := m.unsavedText(); m.editor.text == "" && sent != "" {
		return []term.Row{{first, {Text: term.Cut(sent, m.editorWidth()), Style: term.Dim}}},
			position{1, 1 + term.Width(first.Text)}
	}
	if m.editor.text == "" {
		rest := "sk something"
		if long := rest + keyHints; term.Width(long) < m.editorWidth() {
			rest = long
		}
		return []term.Row{{first, {Text: "A", Style: term.Reverse | term.Dim},
				{Text: term.Cut(rest, m.editorWidth()-1), Style: term.Dim}}},
			position{1, 1 + term.Width(first.Text)}
	}
	rows, row, column := m.editor.view(m.editorWidth(), most)
	return term.Prefix(rows, first, term.Span{Text: blank + "  "}),
		position{1 + row, 1 + term.Width(first.Text) + column}
}

// A field is one piece of the status. If they do not all fit, the highest rank is dropped first.
type field struct {
	text  string
	style term.Style
	rank  int
	right bool
}

func (m *Model) statusRow() term.Row {
	fields := m.statusFields()
	margin := m.margin()
	for {
		leftRow, rightRow := joinFields(fields, false), joinFields(fields, true)
		gap := m.width - 2*margin - leftRow.Width() - rightRow.Width()
		if gap >= 2 || len(fields) == 1 {
			if gap < 0 {
				return term.Row{{Text: term.Cut(fields[0].text, m.width)}}
			}
			row := append(term.Row{{Text: strings.Repeat(" ", margin)}}, leftRow...)
			row = append(row, term.Span{Text: strings.Repeat(" ", max(gap, 0))})
			return append(row, rightRow...)
		}
		last := slices.MaxFunc(fields, func(a, b field) int { return a.rank - b.rank })
		fields = slices.DeleteFunc(fields, func(f field) bool { return f == last })
	}
}

func (m *Model) statusFields() []field {
	used, rate := m.context, m.rate
	device, _, _ := strings.Cut(m.device(), ",")
	fields := []field{
		{text: term.Clean(m.options.Model.ID()), style: term.Bold, rank: 4},
		{text: device, style: term.Dim, rank: 6},
		{text: m.effort + " effort", rank: 3},
	}
	state := ""
	if m.preparing != "" {
		state = "Esc stops"
	}
	if l := m.live; l != nil {
		used, rate = used+l.tokens, l.rate()
		state = "Esc stops"
		if l.stopping {
			state = "stopping"
		}
	}
	if state != "" {
		fields = append(fields, field{text: state, style: term.Yellow, rank: 2})
	}
	if tools := m.tools.offers(); len(tools) > 0 {
		text := formatCount(len(tools), "tool")
		if len(tools) == 1 {
			text = term.Clean(tools[0].name)
		}
		fields = append(fields, field{text: text, style: term.Dim, rank: 7})
	}
	if m.cached > 0 && m.width >= 120 {
		fields = append(fields, field{text: formatNumber(m.cached) + " tokens from cache",
			style: term.Dim, rank: 8, right: true})
	}
	if rate > 0 {
		fields = append(fields, field{text: fmt.Sprintf("%.1f tok/s", rate), rank: 5,
			right: true})
	}
	length := m.options.Model.ContextLength()
	if length == 0 { // the server does not report it
		return append(fields, field{text: "context " + formatCount(used, "token"), style: term.Dim,
			rank: 1, right: true})
	}
	style, percent := term.Dim, fmt.Sprint((100*used+length/2)/length)
	switch {
	case 100*used >= 90*length:
		style = term.Red | term.Bold
	case 100*used >= 75*length:
		style = term.Yellow
	case used > 0 && percent == "0":
		percent = "<1"
	}
	text := "context " + percent + " %"
	if m.width >= 100 {
		text = fmt.Sprintf("context %s of %s, %s %%", formatNumber(used), formatNumber(length),
			percent)
	}
	return append(fields, field{text: text, style: style, rank: 1, right: true})
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

// The screen: its state, and View, which changes only caches and the sizes needed for scrolling.
//
// From top to bottom: the transcript with messages of the chat itself, a rule with notes, hints
// during a command, the editor, the status. There are exactly as many rows as the screen has, and
// none is wider, so the terminal never scrolls by itself.
//
// The status has labelled values: model, device, effort and tools on the left, cached tokens, speed
// and context on the right. A narrow screen drops some, never the context.
//
// What must stay true: no message stays for ever. The chat's next message or the person's replaces
// it, and a notice also expires.

package chat

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// A screen is what the person sees above the editor, and how everything is drawn.
type screen struct {
	palette       term.Palette
	caret         *atomic.Pointer[position] // where input methods write; nil: unused
	clock         func() time.Time
	now           time.Time // as of the last message that set it
	width, height int
	// width of the transcript's layout; differs from width while a long transcript is resized
	laidOut    int
	plain      bool // line mode: printed lines never change
	unfolded   bool
	transcript transcript
	notices    notices
}

// A transcript of many rows is not laid out again for every step of a resize, but once the size has
// been stable for a moment; until then its rows are cut.
const (
	manyRows    = 1000
	resizeDelay = 120 * time.Millisecond
)

func (s *screen) resize(size tea.WindowSizeMsg) tea.Cmd {
	s.width, s.height = size.Width, size.Height
	if s.laidOut != 0 && s.laidOut != s.width && s.transcript.total > manyRows {
		return tea.Tick(resizeDelay, func(time.Time) tea.Msg { return stableWidth(size.Width) })
	}
	s.laidOut = s.width
	return nil
}

// margin is the blank columns on either side; narrow screens have none.
func (s *screen) margin() int {
	if s.width < 50 {
		return 0
	}
	return 1
}

func (s *screen) indent() string { return strings.Repeat(" ", s.margin()) }

func (s *screen) textWidth() int   { return max(s.width-2*s.margin(), 0) }
func (s *screen) editorWidth() int { return max(s.textWidth()-term.Width(prompt), 2) }
func (s *screen) askWidth() int    { return max(s.textWidth()-2, 1) }

// clip cuts a row that is too wide: during a resize, or on a screen of a few columns, where marks
// and indents alone do not fit.
func (s *screen) clip(row string) string {
	if s.width >= 16 && s.laidOut <= s.width {
		return row
	}
	return ansi.Truncate(row, s.width, "")
}

func (s *screen) appendEntry(e entry) tea.Cmd {
	s.transcript.add(e)
	s.transcript.follow = true
	return nil
}

type notices struct {
	message string         // a short note above the editor, until the next key
	typed   int            // keys so far
	last    int            // typed as of the last notice
	number  int            // notices with this number are visible
	expiry  chan time.Time // expiry of the latest notice
}

func (n *notices) keyTyped() {
	n.message = ""
	n.typed++
}

func (n *notices) hideEarlier() {
	n.last = n.typed
	n.number++
}

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
		newProse(p, tone, term.Clean(term.PlainWords(text))), false, nil}
}

// showNotice, showError and note show the person something: in the transcript, there as an error,
// or above the editor. They return nil, so that a command may end with a call.
func (s *screen) showNotice(text string) tea.Cmd {
	until := s.clock().Add(noticeDuration)
	select {
	case <-s.notices.expiry: // the earlier one expires with it
	default:
	}
	s.notices.expiry <- until
	return s.addNotice(newNotice(s.palette, "·", term.Dim, text), until)
}

func (s *screen) showError(text string) tea.Cmd {
	return s.addNotice(newNotice(s.palette, "✗", term.Red, text), time.Time{})
}

// addNotice shows a notice and hides those from before the last key.
func (s *screen) addNotice(text *markedText, until time.Time) tea.Cmd {
	if s.notices.last != s.notices.typed {
		s.notices.hideEarlier()
	}
	return s.appendEntry(&tempNotice{text, s.notices.number, until})
}

func (s *screen) note(text string) tea.Cmd {
	s.notices.message = term.Clean(text)
	return nil
}

func (m *Model) nextNotice() tea.Cmd {
	return receive(m.ctx, m.options.Notices, func(line string) tea.Msg { return notice(line) })
}

func (m *Model) nextExpiry() tea.Cmd {
	return func() tea.Msg {
		select {
		case until := <-m.notices.expiry:
			select {
			case <-time.After(time.Until(until)):
				return noticeExpired{}
			case <-m.ctx.Done():
			}
		case <-m.ctx.Done():
		}
		return nil
	}
}

// prompt precedes the first row of the editor.
const prompt = "❯ "

// keyHints are shown in an empty editor if there is room.
const keyHints = "      / commands   @ file   Shift+Tab effort   ? help"

func (m *Model) View() string {
	if m.width == 0 || m.height == 0 || m.quitting {
		return ""
	}
	hints := slices.Concat(m.modes.confirmation().rows(&m.screen), m.modes.ask().rows(m),
		m.talk.queuedRows(&m.screen),
		m.input.menuRows(&m.screen, m.choices(), max(m.height/3, 1)))
	editor, caret := m.input.rows(&m.screen, m.talk.unsavedText(), max(min(m.height/3, 10), 1))
	bottom := slices.Concat([]term.Row{nil}, hints, editor,
		[]term.Row{m.statusRow(m.statusFields())})
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
	margin, indent := m.margin(), m.indent()
	body := m.visibleTranscript().view(layout{
		palette: m.palette, width: max(min(m.laidOut-2*margin, maxTextWidth), 1),
		wide:     max(m.laidOut-2*margin, 1),
		height:   m.height - len(bottom),
		unfolded: m.unfolded, now: m.now, notices: m.notices.number, asking: m.modes.ask() != nil,
		loading: m.options.Loading.text(m.now),
	})
	if spare <= 0 {
		bottom[0] = m.ruleRow(m.ruleNote()) // it shows how much of the body is below the screen
	}
	var b strings.Builder
	for _, row := range body {
		b.WriteString(indent)
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

// ruleNote is the note in the line above the editor, or how many rows are below the screen.
func (m *Model) ruleNote() string {
	note := m.notices.message
	if p := m.modes.prompt(); p != nil {
		note = p.label
	}
	if below := m.visibleTranscript().rowsBelow(); note == "" && below > 0 {
		note = "↓ " + term.Count(below, "more row") + ", PgDn"
	}
	if m.modes.page() != nil {
		note = strings.TrimSuffix("Esc closes · "+note, " · ")
	}
	if note == "" && m.talk.live == nil {
		note = m.options.Loading.text(m.now)
	}
	return note
}

func (s *screen) ruleRow(note string) term.Row {
	if note == "" {
		return term.Row{{Text: strings.Repeat("─", s.width), Style: term.Dim}}
	}
	note = term.Cut(note, max(s.width-6, 0))
	leftWidth := 2
	rightWidth := max(s.width-leftWidth-2-term.Width(note), 0)
	return term.Row{
		{Text: strings.Repeat("─", leftWidth), Style: term.Dim},
		{Text: " " + note + " ", Style: term.Bold},
		{Text: strings.Repeat("─", rightWidth), Style: term.Dim},
	}
}

// queuedRows are the messages that are sent when the answer ends.
func (t *talk) queuedRows(s *screen) (rows []term.Row) {
	for _, q := range t.queued[:len(t.queued)-t.unsaved] {
		text := strings.Join(strings.Fields(q), " ")
		rows = append(rows, term.Row{{Text: s.indent()}, {Style: term.Dim,
			Text: term.Cut("next: "+text, s.textWidth())}})
	}
	return rows
}

// unsavedText is the last sent message, on one line, until it is stored: it stays in the editor, so
// that a kill before then loses no message that looked sent.
func (t *talk) unsavedText() string {
	text := t.preparing
	if t.unsaved > 0 {
		text = t.queued[len(t.queued)-1]
	}
	return strings.Join(strings.Fields(term.Clean(text)), " ")
}

// rows returns the editor's rows and the caret's position in them. An empty editor shows the
// message that is not saved yet.
func (i *input) rows(s *screen, unsaved string, most int) ([]term.Row, position) {
	blank, width := s.indent(), s.editorWidth()
	first := term.Span{Text: blank + prompt, Style: term.Bold | term.Green}
	start := position{1, 1 + term.Width(first.Text)}
	if i.editor.text == "" && unsaved != "" {
		return []term.Row{{first, {Text: term.Cut(unsaved, width), Style: term.Dim}}}, start
	}
	if i.editor.text == "" {
		rest := "sk something"
		if long := rest + keyHints; term.Width(long) < width {
			rest = long
		}
		return []term.Row{{first, {Text: "A", Style: term.Reverse | term.Dim},
			{Text: term.Cut(rest, width-1), Style: term.Dim}}}, start
	}
	rows, row, column := i.editor.view(width, most)
	return term.Prefix(rows, first, term.Span{Text: blank + "  "}),
		position{start.row + row, start.column + column}
}

// A field is one piece of the status. If they do not all fit, the highest rank is dropped first.
type field struct {
	text  string
	style term.Style
	rank  int
	right bool
}

func (s *screen) statusRow(fields []field) term.Row {
	for {
		leftRow, rightRow := joinFields(fields, false), joinFields(fields, true)
		gap := s.width - 2*s.margin() - leftRow.Width() - rightRow.Width()
		if gap >= 2 || len(fields) == 1 {
			if gap < 0 {
				return term.Row{{Text: term.Cut(fields[0].text, s.width)}}
			}
			row := append(term.Row{{Text: s.indent()}}, leftRow...)
			row = append(row, term.Span{Text: strings.Repeat(" ", max(gap, 0))})
			return append(row, rightRow...)
		}
		last := slices.MaxFunc(fields, func(a, b field) int { return a.rank - b.rank })
		fields = slices.DeleteFunc(fields, func(f field) bool { return f == last })
	}
}

func (m *Model) statusFields() []field {
	used, rate := m.talk.context, m.talk.rate
	device, _, _ := strings.Cut(deviceName(m.options.Model), ",")
	fields := []field{
		{text: term.Clean(m.options.Model.ID()), style: term.Bold, rank: 4},
		{text: device, style: term.Dim, rank: 6},
		{text: m.talk.effort + " effort", rank: 3},
	}
	state := ""
	if m.talk.preparing != "" {
		state = "Esc stops"
	}
	if l := m.talk.live; l != nil {
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
		text := term.Count(len(tools), "tool")
		if len(tools) == 1 {
			text = term.Clean(tools[0].name)
		}
		fields = append(fields, field{text: text, style: term.Dim, rank: 7})
	}
	if m.talk.cached > 0 && m.width >= 120 {
		fields = append(fields, field{text: term.Number(m.talk.cached) + " tokens from cache",
			style: term.Dim, rank: 8, right: true})
	}
	if rate > 0 {
		fields = append(fields, field{text: fmt.Sprintf("%.1f tok/s", rate), rank: 5,
			right: true})
	}
	length := m.options.Model.ContextLength()
	if length == 0 { // the server does not report it
		return append(fields, field{text: "context " + term.Count(used, "token"), style: term.Dim,
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
		text = fmt.Sprintf("context %s of %s, %s %%", term.Number(used), term.Number(length),
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

// Styles, rows of styled text, and how they are painted.

package term

import "strings"

// A Style is a colour in its low four bits and attributes above them. Only the sixteen colours of the terminal's own
// theme are used, so the screen is readable on light and on dark ones without asking the terminal what it is.
type Style uint16

// The colours and attributes.
const (
	Plain   Style = 0
	Red     Style = 1
	Green   Style = 2
	Yellow  Style = 3
	Blue    Style = 4
	Magenta Style = 5
	Cyan    Style = 6

	Bold      Style = 16
	Dim       Style = 32
	Italic    Style = 64
	Underline Style = 128
	Strike    Style = 256
	Reverse   Style = 512

	colour Style = 15
)

// attributes are the SGR parameters of the attribute bits, lowest first.
var attributes = [...]string{"1", "2", "3", "4", "9", "7"}

// A Span is text without line ends in one style.
type Span struct {
	Text  string
	Style Style
}

// A Row is one line of the screen.
type Row []Span

// Width is the columns the row takes.
func (r Row) Width() int {
	w := 0
	for _, s := range r {
		w += Width(s.Text)
	}
	return w
}

// A Palette turns rows into what the terminal understands. NoColor leaves the colours out and keeps the attributes.
type Palette struct{ NoColor bool }

// Paint writes one row with its escape sequences. Neighbours of one style share a sequence; the row ends in the
// terminal's own style.
func (p Palette) Paint(row Row) string {
	var b strings.Builder
	now := Plain
	for _, s := range row {
		if s.Text == "" {
			continue
		}
		style := s.Style
		if p.NoColor {
			style &^= colour
		}
		if style != now {
			if now != Plain {
				b.WriteString("\x1b[m")
			}
			sgr(&b, style)
			now = style
		}
		b.WriteString(safe(s.Text))
	}
	if now != Plain {
		b.WriteString("\x1b[m")
	}
	return b.String()
}

// PaintAll paints rows.
func (p Palette) PaintAll(rows []Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = p.Paint(r)
	}
	return out
}

func sgr(b *strings.Builder, s Style) {
	if s == Plain {
		return
	}
	sep := "\x1b["
	for i, code := range attributes {
		if s&(Bold<<i) != 0 {
			b.WriteString(sep)
			b.WriteString(code)
			sep = ";"
		}
	}
	if c := s & colour; c != 0 {
		b.WriteString(sep)
		b.WriteByte('3')
		b.WriteByte('0' + byte(c))
	}
	b.WriteByte('m')
}

// safe is the last gate before the terminal: cleaned text in which line ends and tabs are blanks, for a row is one line.
func safe(s string) string {
	if plain(s) && strings.IndexByte(s, '\n') < 0 && strings.IndexByte(s, '\t') < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, Clean(s))
}

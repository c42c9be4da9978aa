// Styles, styled rows and painting, and themes, which replace the chat's colours.

package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// A Style is a colour in the low four bits and attributes above. Only the sixteen colours of the
// terminal's theme are used, so the screen is readable on light and dark without querying the
// terminal.
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
	bright Style = 8 // the bright variant of a colour
)

// A Span is text without line ends in one style.
type Span struct {
	Text  string
	Style Style
}

// A Row is one line of the screen.
type Row []Span

func (r Row) Width() int {
	w := 0
	for _, s := range r {
		w += Width(s.Text)
	}
	return w
}

// A Palette paints rows for the terminal. NoColor drops colours and keeps attributes.
type Palette struct {
	NoColor bool
	Theme   Theme
}

// Paint returns one row with escape sequences. Adjacent spans of one style share a sequence; the
// row ends in the terminal's own style.
func (p Palette) Paint(row Row) string {
	var b, run strings.Builder
	now := Plain
	flush := func() {
		if now == Plain {
			b.WriteString(run.String())
		} else if run.Len() > 0 {
			b.WriteString(paint(now).Render(run.String()))
		}
		run.Reset()
	}
	for _, s := range row {
		if s.Text == "" {
			continue
		}
		style := s.Style
		if p.NoColor {
			style &^= colour
		} else {
			style = p.Theme.replace(style)
		}
		if style != now {
			flush()
			now = style
		}
		run.WriteString(safe(s.Text))
	}
	flush()
	return b.String()
}

func (p Palette) PaintAll(rows []Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = p.Paint(r)
	}
	return out
}

// paints caches the lipgloss style of every painted Style.
var paints sync.Map // Style -> lipgloss.Style

// ansi renders in the terminal's sixteen colours everywhere: the Palette decides about colours.
var ansi = sync.OnceValue(func() *lipgloss.Renderer {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.ANSI)
	return r
})

func paint(s Style) lipgloss.Style {
	if p, ok := paints.Load(s); ok {
		return p.(lipgloss.Style)
	}
	p := ansi().NewStyle().Inline(true).Bold(s&Bold != 0).Faint(s&Dim != 0).Italic(s&Italic != 0).
		Underline(s&Underline != 0).Strikethrough(s&Strike != 0).Reverse(s&Reverse != 0)
	if c := s & colour; c != 0 {
		p = p.Foreground(lipgloss.ANSIColor(c))
	}
	paints.Store(s, p)
	return p
}

// safe is the last check before the terminal: cleaned text with blanks for line ends and tabs,
// since a row is one line.
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

// A Theme has a replacement for each colour from Red to Cyan; 0 keeps it.
type Theme [Cyan + 1]Style

// noColour is the replacement by no colour.
const noColour = colour + 1

// Dark is for a dark background, Light for a light one; each has some hard to read colours.
var Dark = Theme{Red: Red | bright, Blue: Blue | bright, Magenta: Magenta | bright}

var Light = Theme{Cyan: Blue, Yellow: Magenta, Green: Blue}

// colours are the names of the terminal's sixteen, by number.
var colours = []string{"none", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray",
	"bright-red", "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
	"bright-white"}

// ParseTheme parses dark, light, or changes such as "light,red=magenta,green=none".
func ParseTheme(text string) (t Theme, err error) {
	t = Dark
	for i, part := range strings.Split(strings.ToLower(text), ",") {
		part = strings.TrimSpace(part)
		switch {
		case i == 0 && (part == "dark" || part == ""):
			continue
		case i == 0 && part == "light":
			t = Light
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		colourIndex, to := slices.Index(colours, name), slices.Index(colours, value)
		if value == "" {
			return t, fmt.Errorf("unknown theme %q. Use dark, light or none, or change colours: "+
				"light,green=bright-blue", part)
		}
		if colourIndex < int(Red) || colourIndex > int(Cyan) || to < 0 {
			return t, fmt.Errorf("no colours such as %q. Use for example green=bright-blue, "+
				"red=magenta or cyan=none", part)
		}
		if t[colourIndex] = Style(to); to == 0 {
			t[colourIndex] = noColour
		}
	}
	return t, nil
}

func (t Theme) replace(s Style) Style {
	c := s & colour
	if c == 0 || int(c) >= len(t) || t[c] == 0 {
		return s
	}
	return s&^colour | t[c]&colour
}

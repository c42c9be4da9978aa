// Rendering a terminal's screen as SVG.

package screentest

import (
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// The size of a cell and of the frame, in SVG units.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	fontSize   = 14
	padding    = 16.0
	bar        = 30.0
)

// Colours of the picture: foreground, background, then the terminal's eight and their bright
// variants.
const (
	foreground = "#d8dee9"
	background = "#11151c"
)

var theme = [16]string{
	"#3b4252", "#f07178", "#a6da95", "#e5c07b", "#82aaff", "#c792ea", "#7fdbca", "#d8dee9",
	"#4c566a", "#ff8b92", "#b8e6a8", "#f0d399", "#9ebeff", "#d7b0f5", "#98ece0", "#eceff4",
}

// SVG draws the screen as a window. Each run of cells in one style is a text of fixed length, so
// that columns align in any font.
func (s *Screen) SVG(title string) string {
	rows := s.rows
	width := 2*padding + cellWidth*float64(len(rows[0]))
	height := bar + 2*padding + cellHeight*float64(len(rows))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n",
		width, height, width, height, escape(title))
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="10" fill="%s"/>`+"\n", width, height,
		background)
	for i, colour := range []string{"#f07178", "#e5c07b", "#a6da95"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%.0f" r="6" fill="%s"/>`+"\n", 22+20*i, bar/2+4,
			colour)
	}
	font := fmt.Sprintf(
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d"`, fontSize)
	fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="middle" fill="%s" opacity=".6" font-family="system-ui,sans-serif" font-size="13">%s</text>`+"\n",
		width/2, bar/2+8, foreground, escape(title))
	fmt.Fprintf(&b, `<g %s xml:space="preserve">`+"\n", font)
	for y, row := range rows {
		for x := 0; x < len(row); {
			end := x + 1
			for end < len(row) && row[end].Style == row[x].Style {
				end++
			}
			cells(&b, row[x:end], x, y)
			x = end
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// cells draws a run of one style: its background, if any, and its words.
func cells(b *strings.Builder, run []Cell, x, y int) {
	style := run[0].Style
	ink, paper := colour(style.Foreground, foreground), colour(style.Background, "")
	if style.Reverse {
		ink, paper = background, colour(style.Foreground, foreground)
	}
	top := bar + padding + cellHeight*float64(y)
	if paper != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.0f" fill="%s"%s/>`+"\n",
			padding+cellWidth*float64(x), top, cellWidth*float64(len(run)), cellHeight, paper,
			dim(style))
	}
	for from := 0; from < len(run); {
		if blank(run, from) {
			from++
			continue
		}
		end := from // words separated by single blanks are one text
		var text strings.Builder
		for end < len(run) && !(blank(run, end) && (end+1 == len(run) || blank(run, end+1))) {
			if blank(run, end) {
				text.WriteByte(' ')
			} else {
				text.WriteString(run[end].Text)
			}
			end++
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
			padding+cellWidth*float64(x+from), top+13.5, cellWidth*float64(end-from), ink,
			attributes(style), escape(text.String()))
		from = end
	}
}

// blank reports a cell without ink. The second half of a wide character has ink, though no text.
func blank(run []Cell, at int) bool {
	if text := run[at].Text; text != "" {
		return text == " "
	}
	return at == 0 || term.Width(run[at-1].Text) < 2
}

func colour(index uint8, none string) string {
	if index == 0 {
		return none
	}
	return theme[index-1]
}

func attributes(s Style) string {
	var a string
	if s.Bold {
		a += ` font-weight="bold"`
	}
	if s.Italic {
		a += ` font-style="italic"`
	}
	switch {
	case s.Underline:
		a += ` text-decoration="underline"`
	case s.Strike:
		a += ` text-decoration="line-through"`
	}
	if !s.Reverse {
		a += dim(s)
	}
	return a
}

func dim(s Style) string {
	if s.Dim {
		return ` opacity=".6"`
	}
	return ""
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

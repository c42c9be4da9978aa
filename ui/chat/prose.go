// Plain text that grows, wrapped once.

package chat

import (
	"strings"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// longestLine is where a line that does not end is cut, so that a frame stays cheap.
const longestLine = 4 << 10

// A prose is plain text in one style that may still be growing: reasoning, a question, a notice.
// Lines that have ended are wrapped once per width; only the last is wrapped again.
type prose struct {
	style   term.Style
	palette term.Palette
	text    strings.Builder

	width  int
	done   int // bytes of text whose rows are in stable
	stable []string
	tail   []string
	tailAt int
}

func newProse(p term.Palette, s term.Style, text string) *prose {
	t := &prose{palette: p, style: s, tailAt: -1}
	t.push(text)
	return t
}

// push adds cleaned text.
func (p *prose) push(text string) { p.text.WriteString(text) }

// rows returns the rows of ended lines and those of the last.
func (p *prose) rows(width int) (stable, tail []string) {
	if width != p.width {
		p.width, p.done, p.stable, p.tailAt = width, 0, nil, -1
	}
	all := p.text.String()
	for {
		line, size := term.FirstLine(all[p.done:], longestLine)
		if size == 0 {
			break
		}
		p.stable = append(p.stable, p.paint(line)...)
		p.done += size
		p.tailAt = -1
	}
	if p.tailAt != len(all) {
		p.tailAt, p.tail = len(all), nil
		if p.done < len(all) {
			p.tail = p.paint(all[p.done:])
		}
	}
	return p.stable, p.tail
}

func (p *prose) paint(line string) []string {
	return p.palette.PaintAll(term.Wrap([]term.Span{{Text: line, Style: p.style}}, p.width))
}

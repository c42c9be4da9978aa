// Colours for code.

package markdown

import (
	"strings"

	"github.com/ossrun/ossrun/ui/chat/highlight"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// Code is coloured in pieces of a few dozen lines, and each whole piece is remembered with what was
// open where it began: while a long listing is being written only its last piece is read again.
const (
	pieceLines = 48
	remembered = 512 // pieces
)

// A highlighter colours code and remembers what it has coloured.
type highlighter struct {
	pieces map[piece]coloured
	tokens []highlight.Token // room for those of a line
}

type piece struct {
	lang   *highlight.Language
	within highlight.State
	text   string
}

type coloured struct {
	rows   []term.Row
	within highlight.State // at its end
}

func newHighlighter() *highlighter { return &highlighter{pieces: map[piece]coloured{}} }

// lines returns one row for each line of code that begins within a comment or string, or none, and
// what it ends within.
func (h *highlighter) lines(name string, within highlight.State, lines []string) ([]term.Row,
	highlight.State) {
	rows := make([]term.Row, 0, len(lines))
	lang := highlight.Find(name)
	if lang == nil {
		for _, l := range lines {
			rows = append(rows, term.Row{{Text: expand(l)}})
		}
		return rows, within
	}
	for len(lines) > 0 {
		n := min(len(lines), pieceLines)
		if n < pieceLines { // it will grow
			last := h.colour(lang, within, lines)
			return append(rows, last.rows...), last.within
		}
		key := piece{lang, within, strings.Join(lines[:n], "\n")}
		got, ok := h.pieces[key]
		if !ok {
			got = h.colour(lang, within, lines[:n])
			if len(h.pieces) >= remembered {
				clear(h.pieces)
			}
			h.pieces[key] = got
		}
		rows, within = append(rows, got.rows...), got.within
		lines = lines[n:]
	}
	return rows, within
}

// Code is lines of code in colours, for what is code and stands in no Markdown.
func Code(lang, text string) []term.Row {
	rows, _ := newHighlighter().lines(lang, highlight.State{}, strings.Split(text, "\n"))
	return rows
}

// colour reads lines.
func (h *highlighter) colour(lang *highlight.Language, within highlight.State,
	lines []string) coloured {
	rows := make([]term.Row, len(lines))
	for i, line := range lines {
		h.tokens, within = lang.Line(h.tokens[:0], within, expand(line))
		row := make(term.Row, len(h.tokens))
		for j, t := range h.tokens {
			row[j] = term.Span{Text: t.Text, Style: theme[t.Kind]}
		}
		rows[i] = row
	}
	return coloured{rows, within}
}

// theme has few colours, all of them readable on light and dark.
var theme = [...]term.Style{
	highlight.Text:     term.Plain,
	highlight.Comment:  term.Dim | term.Italic,
	highlight.Keyword:  term.Magenta,
	highlight.Type:     term.Cyan,
	highlight.String:   term.Green,
	highlight.Number:   term.Cyan,
	highlight.Function: term.Blue,
	highlight.Tag:      term.Blue,
	highlight.Key:      term.Cyan,
	highlight.Variable: term.Cyan,
	highlight.Inserted: term.Green,
	highlight.Deleted:  term.Red,
	highlight.Heading:  term.Bold,
}

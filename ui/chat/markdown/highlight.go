// Colours for code.

package markdown

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// Code is coloured in pieces of a few dozen lines, and each whole piece is remembered: while a long listing is being
// written only its last piece is read again. The price is a wrong colour where a comment or string goes over the seam.
const (
	pieceLines  = 48
	pieceLength = 16 << 10 // longer pieces stay plain
	remembered  = 512      // pieces
)

// A highlighter colours code and remembers what it has coloured.
type highlighter struct {
	lexers map[string]chroma.Lexer
	pieces map[piece][]term.Row
}

type piece struct{ lang, text string }

func newHighlighter() *highlighter {
	return &highlighter{lexers: map[string]chroma.Lexer{}, pieces: map[piece][]term.Row{}}
}

// lines returns one row for each line.
func (h *highlighter) lines(lang string, lines []string) []term.Row {
	rows := make([]term.Row, 0, len(lines))
	for len(lines) > 0 {
		n := min(len(lines), pieceLines)
		key := piece{lang, strings.Join(lines[:n], "\n")}
		got, ok := h.pieces[key]
		if !ok {
			got = h.colour(lang, key.text, n)
			if n == pieceLines {
				if len(h.pieces) >= remembered {
					clear(h.pieces)
				}
				h.pieces[key] = got
			}
		}
		rows = append(rows, got...)
		lines = lines[n:]
	}
	return rows
}

// colour returns the n rows of one piece.
func (h *highlighter) colour(lang, text string, n int) []term.Row {
	text = expandAll(text)
	lexer := h.lexer(lang)
	if lexer == nil || len(text) > pieceLength {
		return plainRows(text)
	}
	tokens, err := lexer.Tokenise(nil, text)
	if err != nil {
		return plainRows(text)
	}
	rows := make([]term.Row, 1, n)
	for t := tokens(); t != chroma.EOF; t = tokens() {
		style := styleOf(t.Type)
		for i, part := range strings.Split(t.Value, "\n") {
			if i > 0 {
				rows = append(rows, nil)
			}
			if part != "" {
				rows[len(rows)-1] = append(rows[len(rows)-1], term.Span{Text: part, Style: style})
			}
		}
	}
	for len(rows) < n {
		rows = append(rows, nil)
	}
	return rows[:n] // a lexer may add a line end
}

func (h *highlighter) lexer(lang string) chroma.Lexer {
	if lang == "" {
		return nil
	}
	l, ok := h.lexers[lang]
	if !ok {
		if l = lexers.Get(lang); l != nil {
			l = chroma.Coalesce(l)
		}
		h.lexers[lang] = l
	}
	return l
}

func expandAll(text string) string {
	if strings.IndexByte(text, '\t') < 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = expand(l)
	}
	return strings.Join(lines, "\n")
}

func plainRows(text string) []term.Row {
	var rows []term.Row
	for _, l := range strings.Split(text, "\n") {
		rows = append(rows, term.Row{{Text: l}})
	}
	return rows
}

// styleOf is the theme: few colours, all of them readable on light and dark.
func styleOf(t chroma.TokenType) term.Style {
	switch {
	case t.InCategory(chroma.Comment):
		return term.Dim | term.Italic
	case t.InCategory(chroma.Keyword):
		return term.Magenta
	case t.InSubCategory(chroma.LiteralString):
		return term.Green
	case t.InSubCategory(chroma.LiteralNumber):
		return term.Cyan
	case t.InSubCategory(chroma.NameFunction), t == chroma.NameClass, t == chroma.NameDecorator, t == chroma.NameTag:
		return term.Blue
	case t == chroma.NameBuiltin, t == chroma.NameBuiltinPseudo, t == chroma.NameAttribute:
		return term.Cyan
	case t == chroma.GenericInserted:
		return term.Green
	case t == chroma.GenericDeleted:
		return term.Red
	case t == chroma.GenericHeading, t == chroma.GenericSubheading:
		return term.Bold
	}
	return term.Plain
}

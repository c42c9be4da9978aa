// Layout of parsed blocks: headings, lists, quotes, code and its colours.

package markdown

import (
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/ossrun/ossrun/ui/chat/highlight"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// grammar is GitHub's markdown with three exceptions, which models do not mean: dashes under a
// paragraph are a rule, not a heading; "[1]: address" is text, not a hidden definition; HTML is
// text.
var grammar = sync.OnceValue(func() parser.Parser {
	p := parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(formulaParser{}, 50))...),
	)
	md := goldmark.New(goldmark.WithParser(p))
	extension.Table.Extend(md)
	extension.Strikethrough.Extend(md)
	extension.TaskList.Extend(md)
	return md.Parser()
})

// A renderer lays out the syntax tree of one block.
type renderer struct {
	palette term.Palette
	code    *highlighter
	source  []byte
	// highlighting state at the start of the next code block, then at its end
	state  highlight.State
	extra  int      // columns that code may exceed the text by
	number int      // of the last code block so far
	codes  []string // the code blocks
	cut    bool     // the first of them continues the previous block
}

func (r *renderer) document(width int) []term.Row {
	return r.children(grammar().Parse(text.NewReader(r.source)), width, true)
}

// children lays out the blocks inside n, separated by blank rows if loose.
func (r *renderer) children(n ast.Node, width int, loose bool) []term.Row {
	var rows []term.Row
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		next := r.block(c, width)
		if loose && len(rows) > 0 && len(next) > 0 && c.Kind() != ast.KindListItem {
			rows = append(rows, term.Row{})
		}
		rows = append(rows, next...)
	}
	return rows
}

func (r *renderer) block(n ast.Node, width int) []term.Row {
	switch n := n.(type) {
	case *ast.Heading:
		style := term.Bold
		if n.Level <= 2 {
			style |= term.Cyan
		}
		spans := r.inline(nil, n, style)
		if r.palette.NoColor {
			spans = append([]term.Span{{Text: strings.Repeat("#", n.Level) + " ", Style: style}},
				spans...)
		}
		return term.Wrap(spans, width)
	case *ast.Paragraph, *ast.TextBlock:
		spans := r.inline(nil, n, term.Plain)
		if len(spans) == 0 {
			return nil
		}
		return term.Wrap(spans, width)
	case *ast.List:
		return r.list(n, width)
	case *ast.FencedCodeBlock:
		return r.codeBlock(string(n.Language(r.source)), n, width)
	case *ast.CodeBlock:
		return r.codeBlock("", n, width)
	case *ast.Blockquote:
		bar := term.Span{Text: "│ ", Style: term.Dim}
		return term.Prefix(r.children(n, max(width-2, 1), true), bar, bar)
	case *ast.ThematicBreak:
		return []term.Row{{{Text: strings.Repeat("─", width), Style: term.Dim}}}
	case *east.Table:
		return r.table(n, width)
	}
	return r.children(n, width, true)
}

// list lays out items after their marks, indented to the first word.
func (r *renderer) list(n *ast.List, width int) []term.Row {
	var rows []term.Row
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		indent := strings.Repeat(" ", len([]rune(mark)))
		item := r.children(c, max(width-len(indent), 1), !n.IsTight)
		if len(item) == 0 {
			item = []term.Row{{}}
		}
		if !n.IsTight && len(rows) > 0 {
			rows = append(rows, term.Row{})
		}
		rows = append(rows, term.Prefix(item, term.Span{Text: mark, Style: term.Cyan},
			term.Span{Text: indent})...)
	}
	return rows
}

// codeBlock indents code by two columns, so that it can be told from text without colours and
// copied without marks. Its label has the language and its number for /copy.
func (r *renderer) codeBlock(lang string, n ast.Node, width int) []term.Row {
	width += r.extra
	var lines []string
	for i := 0; i < n.Lines().Len(); i++ {
		seg := n.Lines().At(i)
		lines = append(lines, strings.TrimRight(string(seg.Value(r.source)), "\n"))
	}
	var rows []term.Row
	if first := len(r.codes) == 0; !r.cut || !first {
		r.number++
		label := strconv.Itoa(r.number)
		if lang != "" {
			label = term.Clean(lang) + " · " + label
		}
		rows = []term.Row{{{Text: term.Cut("┄ "+label, max(width-2, 1)), Style: term.Dim}}}
	}
	r.codes = append(r.codes, strings.Join(lines, "\n")+"\n")
	colours, within := r.code.lines(lang, r.state, lines)
	r.state = within
	for _, line := range colours {
		rows = append(rows, term.Chop(line, max(width-2, 1),
			term.Span{Text: "↪ ", Style: term.Dim})...)
	}
	indent := term.Span{Text: "  "}
	return term.Prefix(rows, indent, indent)
}

// formula shows LaTeX without delimiters, as text if possible.
func (r *renderer) formula(source string, width int) []term.Row {
	source = strings.TrimSpace(source)
	for _, d := range [][2]string{{`\[`, `\]`}, {"$$", "$$"}} {
		if rest, ok := strings.CutPrefix(source, d[0]); ok {
			source = strings.TrimSuffix(rest, d[1])
		}
	}
	source = strings.Trim(source, "\n")
	if strings.TrimSpace(source) == "" {
		return nil
	}
	source = Math(source)
	var rows []term.Row
	for line := range strings.SplitSeq(source, "\n") {
		rows = append(rows, term.Chop(term.Row{{Text: expand(line), Style: term.Magenta}},
			max(width-2, 1), term.Span{Text: "  "})...)
	}
	indent := term.Span{Text: "  "}
	return term.Prefix(rows, indent, indent)
}

func expand(line string) string {
	if strings.IndexByte(line, '\t') < 0 {
		return line
	}
	var b strings.Builder
	column := 0
	for line != "" {
		if line[0] == '\t' {
			n := 4 - column%4
			b.WriteString("    "[:n])
			column += n
			line = line[1:]
			continue
		}
		n, w := term.Cluster(line)
		b.WriteString(line[:n])
		column += w
		line = line[n:]
	}
	return b.String()
}

// Code is coloured in pieces of a few dozen lines, cached with the State before them: while a long
// listing is written, only its last piece is scanned again.
const (
	pieceLines = 48
	maxPieces  = 512 // pieces
)

// A highlighter colours code, with a cache.
type highlighter struct {
	pieces map[piece]colouredPiece
	tokens []highlight.Token // buffer for one line
}

type piece struct {
	lang   *highlight.Language
	within highlight.State
	text   string
}

type colouredPiece struct {
	rows   []term.Row
	within highlight.State // at its end
}

func newHighlighter() *highlighter { return &highlighter{pieces: map[piece]colouredPiece{}} }

// lines returns one row for each line of code that begins in a State, and the State after it.
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
		if n < pieceLines { // incomplete, so not cached
			last := h.colour(lang, within, lines)
			return append(rows, last.rows...), last.within
		}
		key := piece{lang, within, strings.Join(lines[:n], "\n")}
		entry, ok := h.pieces[key]
		if !ok {
			entry = h.colour(lang, within, lines[:n])
			if len(h.pieces) >= maxPieces {
				clear(h.pieces)
			}
			h.pieces[key] = entry
		}
		rows, within = append(rows, entry.rows...), entry.within
		lines = lines[n:]
	}
	return rows, within
}

// Code colours code outside Markdown.
func Code(lang, text string) []term.Row {
	rows, _ := newHighlighter().lines(lang, highlight.State{}, strings.Split(text, "\n"))
	return rows
}

func (h *highlighter) colour(lang *highlight.Language, within highlight.State,
	lines []string) colouredPiece {
	rows := make([]term.Row, len(lines))
	for i, line := range lines {
		h.tokens, within = lang.Line(h.tokens[:0], within, expand(line))
		row := make(term.Row, len(h.tokens))
		for j, t := range h.tokens {
			row[j] = term.Span{Text: t.Text, Style: theme[t.Kind]}
		}
		rows[i] = row
	}
	return colouredPiece{rows, within}
}

// theme has few colours, all readable on light and dark backgrounds.
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

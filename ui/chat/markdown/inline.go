// Layout of inline elements: emphasis, code, links, formulas.

package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// inline appends the text inside n as spans. Line ends of the source are kept: a model does not
// wrap its lines, so each one is intended.
func (r *renderer) inline(dst []term.Span, n ast.Node, style term.Style) []term.Span {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			dst = r.text(dst, c.Segment.Value(r.source), style)
			if c.SoftLineBreak() || c.HardLineBreak() {
				dst = append(dst, term.Span{Text: "\n", Style: style})
			}
		case *ast.String:
			dst = r.text(dst, c.Value, style)
		case *ast.CodeSpan:
			dst = r.codeSpan(dst, c, style)
		case *ast.Emphasis:
			inner := style | term.Italic
			if c.Level == 2 {
				inner = style | term.Bold
			}
			dst = r.inline(dst, c, inner)
		case *east.Strikethrough:
			dst = r.inline(dst, c, style|term.Strike)
		case *ast.Link:
			dst = r.link(dst, c, string(c.Destination), style)
		case *ast.Image:
			dst = append(dst, term.Span{Text: "image: ", Style: style | term.Dim})
			dst = r.link(dst, c, string(c.Destination), style)
		case *ast.AutoLink:
			dst = append(dst, span(string(c.URL(r.source)), style|term.Underline))
		case *ast.RawHTML:
			dst = r.html(dst, c, style)
		case *east.TaskCheckBox:
			box := "☐ "
			if c.IsChecked {
				box = "☑ "
			}
			dst = append(dst, term.Span{Text: box, Style: style})
		case *formulaNode:
			dst = append(dst, span(Math(c.text), style|term.Magenta))
		default:
			dst = r.inline(dst, c, style)
		}
	}
	return dst
}

// span cleans parsed text: an entity such as &#27; may have added a control character.
func span(s string, style term.Style) term.Span {
	return term.Span{Text: strings.ReplaceAll(term.Clean(s), "\n", " "), Style: style}
}

// text resolves backslashes and entities.
func (r *renderer) text(dst []term.Span, b []byte, style term.Style) []term.Span {
	b = util.UnescapePunctuations(b)
	if bytes.IndexByte(b, '&') >= 0 { // these two are slow for every byte
		b = util.ResolveEntityNames(util.ResolveNumericReferences(b))
	}
	return append(dst, span(string(b), style))
}

// codeSpan keeps the backticks if there are no colours.
func (r *renderer) codeSpan(dst []term.Span, n ast.Node, style term.Style) []term.Span {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.source))
		}
	}
	code := b.String()
	if r.palette.NoColor {
		code = "`" + code + "`"
	}
	return append(dst, span(code, style|term.Cyan))
}

// link appends the address to a different text: an address that cannot be clicked must be readable.
func (r *renderer) link(dst []term.Span, n ast.Node, address string, style term.Style) []term.Span {
	from := len(dst)
	dst = r.inline(dst, n, style|term.Underline)
	var label strings.Builder
	for _, s := range dst[from:] {
		label.WriteString(s.Text)
	}
	if address == "" || address == label.String() {
		return dst
	}
	return append(dst, span(" ("+address+")", style|term.Dim))
}

// html shows tags as text, except the line break.
func (r *renderer) html(dst []term.Span, n *ast.RawHTML, style term.Style) []term.Span {
	var b strings.Builder
	for i := 0; i < n.Segments.Len(); i++ {
		seg := n.Segments.At(i)
		b.Write(seg.Value(r.source))
	}
	switch strings.ToLower(strings.ReplaceAll(b.String(), " ", "")) {
	case "<br>", "<br/>":
		return append(dst, term.Span{Text: "\n", Style: style})
	}
	return append(dst, span(b.String(), style))
}

// A formulaNode is inline LaTeX between \( and \) or \[ and \]. Its backslashes and underscores are
// not markdown.
type formulaNode struct {
	ast.BaseInline
	text string
}

var kindFormula = ast.NewNodeKind("Formula")

func (n *formulaNode) Kind() ast.NodeKind            { return kindFormula }
func (n *formulaNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

type formulaParser struct{}

func (formulaParser) Trigger() []byte { return []byte{'\\', '$'} }

func (formulaParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	peeked, _ := block.PeekLine()
	line := string(peeked)
	inner, size := "", 0
	if mark := formulaEnd(line); mark != "" {
		if end := strings.Index(line[2:], mark); end >= 0 {
			inner, size = strings.TrimSpace(line[2:2+end]), 2+end+2
		}
	} else if line[0] == '$' {
		inner, size = dollars(line, block.PrecendingCharacter())
	}
	if size == 0 {
		return nil
	}
	block.Advance(size)
	return &formulaNode{text: inner}
}

// formulaEnd is the closing mark of the formula at the start of text, "" if no \( or \[ opens one.
func formulaEnd(text string) string {
	switch {
	case strings.HasPrefix(text, `\(`):
		return `\)`
	case strings.HasPrefix(text, `\[`):
		return `\]`
	}
	return ""
}

// dollars is the formula between $ or $$ at the start of a line, and its size with the marks, or 0.
// It rejects prices and variables: no blanks inside the marks, no letters or digits around them,
// and several words need a mathematical sign.
func dollars(line string, prev rune) (inner string, size int) {
	mark := line[:min(runLength(line), 2)]
	rest := line[len(mark):]
	end := strings.Index(rest, mark)
	if end <= 0 || prev == '$' || prev < 0x80 && isWord(byte(prev)) {
		return "", 0
	}
	inner, size = rest[:end], end+2*len(mark)
	if strings.ContainsAny(inner[:1]+inner[end-1:], " \t\n") ||
		size < len(line) && (isWord(line[size]) || line[size] == '$') ||
		strings.Contains(inner, " ") && !strings.ContainsAny(inner, `\^_=+-*/<>{}|`) {
		return "", 0
	}
	return inner, size
}

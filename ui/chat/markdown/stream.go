// Package markdown turns a language model's markdown into terminal rows while it is being written.
//
// The text is cut into top-level blocks: a paragraph, a heading, one list item, a code block, a
// table. A block is finished once a later line begins outside it; then it is rendered once per
// width. Only the last block, the tail, is rendered for every frame, so frames cost the same
// throughout a long answer.
//
// What must stay true: rows of finished blocks never change while text is added; the rows do not
// depend on how the text was split; no row is wider than asked; no text reaches the terminal as a
// control sequence.
package markdown

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/ui/chat/highlight"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// maxLine and maxBlock are the lengths in bytes at which a line or block is cut: an endless
// paragraph must not make each frame slower than the last.
const (
	maxLine  = 8 << 10
	maxBlock = 16 << 10
)

// A Stream holds one growing text and its rows.
type Stream struct {
	palette term.Palette
	code    *highlighter
	state   highlight.State // state after the last finished code block

	text     strings.Builder // everything so far
	blocks   []block         // finished ones
	open     block           // the tail's kind and gap
	start    int             // start of the tail
	line     int             // start of the line being read
	blank    bool            // the line before was empty
	complete bool

	width     int
	codeWidth int      // columns for code
	stable    []string // rows of blocks[:done], painted
	done      int
	tail      []string
	tailAt    int // length of the text that tail renders, -1: none

	codeOffset int      // code blocks of the conversation before this text
	codes      []string // of blocks[:done]
	tailCodes  []string
}

// A block is a piece of text that is parsed on its own.
type block struct {
	kind   kind
	gap    bool   // a blank row precedes it
	fence  string // the end of a code block or formula
	nested bool   // of an item: inside a code block
	// repeated where the block is cut: a table's first two lines, a fence
	header string
	cut    bool   // the header is not in the source
	source string // set when it is finished
}

type kind uint8

const (
	none kind = iota
	paragraph
	heading
	item
	quote
	table
	fenced
	formula
	rule
)

// New returns an empty Stream. codeOffset is how many code blocks the conversation had, for
// numbering.
func New(p term.Palette, codeOffset int) *Stream {
	return &Stream{palette: p, code: newHighlighter(), tailAt: -1, codeOffset: codeOffset}
}

// Push adds cleaned text.
func (s *Stream) Push(text string) {
	if text == "" || s.complete {
		return
	}
	s.text.WriteString(text)
	all := s.text.String()
	for {
		line, size := term.FirstLine(all[s.line:], maxLine)
		if size == 0 {
			return
		}
		s.take(all, line, size)
		s.line += size
		if s.line-s.start > maxBlock {
			s.cut(all)
		}
	}
}

// End marks the end of the text: withheld unfinished marks are shown.
func (s *Stream) End() {
	s.complete = true
	s.tailAt = -1
}

func (s *Stream) Text() string { return s.text.String() }

// take reads one complete line of size bytes including its end, and decides whether it continues
// the open block or begins the next.
func (s *Stream) take(all, line string, size int) {
	trimmed := strings.TrimSpace(line)
	if s.open.fence != "" && (s.open.kind == fenced || trimmed != "") {
		if closes(s.open, trimmed) {
			s.finish(all, s.line+size)
		}
		return
	}
	if trimmed == "" {
		s.blank = true
		switch s.open.kind {
		case formula: // formulas have no empty lines, so it was none
			s.finish(all, s.line)
		case none:
			s.start = s.line + size
		}
		return
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if strings.HasPrefix(line, "\t") {
		indent = 4
	}
	next := kindOf(trimmed)
	if s.continues(next, indent) || s.open.nested && fenceOnly(trimmed) {
		s.blank = false
		if strings.HasPrefix(trimmed, "```") && s.open.kind == item {
			if s.open.nested = !s.open.nested; !s.open.nested && indent < 2 {
				s.finish(all, s.line+size)
			}
		}
		if s.open.kind == table && s.open.header == "" {
			s.open.header = all[s.start : s.line+size]
		}
		return
	}
	blank := s.blank
	if s.open.kind != none {
		s.finish(all, s.line)
	}
	s.blank = false
	s.open = block{kind: next, gap: s.gap(s.last(), next, blank)}
	switch next {
	case item:
		s.open.nested = strings.HasPrefix(strings.TrimSpace(trimmed[marker(trimmed):]), "```")
	case fenced:
		s.open.header = line + "\n"
		s.open.fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
	case formula:
		if s.open.fence = `\]`; trimmed[0] == '$' {
			s.open.fence = "$$"
		}
		if closes(s.open, trimmed[2:]) {
			s.finish(all, s.line+size)
		}
	case heading, rule:
		s.finish(all, s.line+size)
	}
}

// continues reports whether a line of this kind and indent belongs to the open block.
func (s *Stream) continues(next kind, indent int) bool {
	switch s.open.kind {
	case item:
		if indent >= 2 {
			return true
		}
		return !s.blank && next == paragraph
	case paragraph:
		return !s.blank && next == paragraph
	case quote:
		return !s.blank && (next == quote || next == paragraph)
	case table:
		return !s.blank && next == table
	}
	return false
}

func (s *Stream) last() kind {
	if len(s.blocks) == 0 {
		return none
	}
	return s.blocks[len(s.blocks)-1].kind
}

// gap decides on a blank row before the next block: if the text has one, and around some kinds.
func (s *Stream) gap(prev, next kind, blank bool) bool {
	return prev != none && (blank || needsGap(prev) || needsGap(next))
}

func needsGap(k kind) bool {
	return k == heading || k == table || k == fenced || k == formula || k == rule || k == quote
}

// finish closes the open block at byte end.
func (s *Stream) finish(all string, end int) {
	end = min(end, len(all))
	b := s.open
	b.source = strings.TrimRight(all[s.start:end], "\n")
	s.blocks = append(s.blocks, b)
	s.start, s.open = end, block{}
}

// cut closes a block that is too long and opens one of the same kind.
func (s *Stream) cut(all string) {
	b := s.open
	if b.kind == none {
		return
	}
	s.finish(all, s.line)
	s.open = block{kind: b.kind, fence: b.fence, header: b.header, cut: true}
	if b.kind == item || b.kind == quote {
		s.open.kind = paragraph
	}
}

// kindOf is the kind of block that a line begins. The line is trimmed and not empty.
func kindOf(line string) kind {
	switch c := line[0]; {
	case c == '#' && strings.HasPrefix(strings.TrimLeft(line, "#")+" ", " ") &&
		len(line)-len(strings.TrimLeft(line, "#")) <= 6:
		return heading
	case strings.HasPrefix(line, "```") && !strings.Contains(strings.TrimLeft(line, "`"), "`"),
		strings.HasPrefix(line, "~~~"):
		return fenced
	case strings.HasPrefix(line, `\[`) && !strings.Contains(strings.TrimSuffix(line, `\]`), `\]`),
		strings.HasPrefix(line, "$$"):
		return formula
	case c == '>':
		return quote
	case c == '|':
		return table
	case isRule(line):
		return rule
	case marker(line) > 0:
		return item
	}
	return paragraph
}

// isRule reports a thematic break: three or more of one of -*_ and otherwise only blanks.
func isRule(line string) bool {
	if c := line[0]; c != '-' && c != '*' && c != '_' {
		return false
	}
	n := strings.Count(line, line[:1])
	return n >= 3 && n+strings.Count(line, " ") == len(line)
}

// marker returns the length of the list marker at the start of line, or 0.
func marker(line string) int {
	n := 0
	for n < len(line) && n < 9 && line[n] >= '0' && line[n] <= '9' {
		n++
	}
	if n > 0 {
		if n == len(line) || line[n] != '.' && line[n] != ')' {
			return 0
		}
	} else if c := line[0]; c != '-' && c != '*' && c != '+' {
		return 0
	}
	n++
	if n == len(line) || line[n] == ' ' || line[n] == '\t' {
		return n
	}
	return 0
}

// closes reports whether a line ends a code block or a formula.
func closes(b block, line string) bool {
	if b.kind == formula {
		return strings.HasSuffix(line, b.fence)
	}
	return strings.HasPrefix(line, b.fence) && strings.Trim(line, b.fence[:1]) == ""
}

// fenceOnly reports a line of only backticks. In an item with a code block it belongs to the item,
// although strictly an unindented one opens another block.
func fenceOnly(line string) bool { return len(line) >= 3 && strings.Trim(line, "`") == "" }

// Rows returns the painted rows at this width, with code up to wide columns: those of finished
// blocks, then of the tail. The Stream owns both slices; they are valid until the next call.
func (s *Stream) Rows(width, wide int) (stable, tail []string) {
	wide = max(wide, width)
	if width != s.width || wide != s.codeWidth {
		s.width, s.codeWidth, s.stable, s.done, s.tailAt, s.codes = width, wide, nil, 0, -1, nil
	}
	for ; s.done < len(s.blocks); s.done++ {
		b := s.blocks[s.done]
		rows, codes := s.render(b, b.source, len(s.codes))
		s.stable, s.codes = append(s.stable, rows...), joinCode(s.codes, codes, b.cut)
		s.tailAt = -1
	}
	if s.tailAt != s.text.Len() {
		s.tailAt = s.text.Len()
		s.tail, s.tailCodes = s.renderTail()
	}
	return s.stable, s.tail
}

func (s *Stream) Code() []string {
	s.Rows(cmp.Or(s.width, 80), cmp.Or(s.codeWidth, 80)) // 80 before the first Rows
	return joinCode(slices.Clone(s.codes), s.tailCodes, s.open.cut && s.open.kind == fenced)
}

// joinCode appends a block's code blocks; the first one may continue a cut one.
func joinCode(codes, next []string, cut bool) []string {
	if cut && len(next) > 0 && len(codes) > 0 {
		codes[len(codes)-1] += next[0]
		next = next[1:]
	}
	return append(codes, next...)
}

// renderTail renders the unfinished block. Its last line may begin the next block and is shown as
// such, so that nothing moves when the line ends.
func (s *Stream) renderTail() (rows, codes []string) {
	all := s.text.String()
	source := all[s.start:]
	b := s.open
	if b.kind != none && b.fence == "" && s.line > s.start && s.line < len(all) {
		last := all[s.line:]
		trimmed := strings.TrimSpace(last)
		indent := len(last) - len(strings.TrimLeft(last, " \t"))
		if trimmed != "" && !s.continues(kindOf(trimmed), indent) &&
			(s.complete || !undecided(last)) {
			rows, codes := s.render(b, all[s.start:s.line], len(s.codes))
			next := block{kind: kindOf(trimmed), gap: s.gap(b.kind, kindOf(trimmed), s.blank)}
			nextRows, last := s.render(next, s.closeMarks(next, last), len(s.codes)+len(codes))
			return append(rows, nextRows...), append(codes, last...)
		}
	}
	if b.kind == none {
		trimmed := strings.TrimSpace(source)
		if trimmed == "" {
			return nil, nil
		}
		b = block{kind: kindOf(trimmed)}
		b.gap = s.gap(s.last(), b.kind, s.blank)
	}
	return s.render(b, s.closeMarks(b, source), len(s.codes))
}

func (s *Stream) closeMarks(b block, source string) string {
	if s.complete || b.kind != fenced && costly(source) {
		return source
	}
	return unfinished(b.kind, source)
}

// render paints one block with its gap, and returns its code. number is how many code blocks this
// text has before it.
func (s *Stream) render(b block, source string, number int) (painted, codes []string) {
	r := renderer{palette: s.palette, code: s.code, extra: s.codeWidth - s.width,
		number: s.codeOffset + number, cut: b.cut && b.kind == fenced}
	if b.cut {
		source = b.header + source
		r.state = s.state // the state at the cut continues
	}
	r.source = []byte(source)
	var rows []term.Row
	if b.kind != fenced && costly(source) {
		rows = plain(source, s.width)
	} else if b.kind == formula {
		rows = r.formula(source, s.width)
	} else {
		rows = r.document(s.width)
	}
	if b.kind == fenced && b.source != "" {
		s.state = r.state
	}
	if len(rows) == 0 {
		return nil, nil
	}
	painted = s.palette.PaintAll(rows)
	if b.gap {
		painted = append([]string{""}, painted...)
	}
	return painted, r.codes
}

package highlight

// The scanner: a line, the position in it, and the tokens so far. It knows no language: each step
// asks the table, takes at least one byte, and never looks ahead over the same byte repeatedly.

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

type scanner struct {
	State
	base, lang *Language // of the line; of the code at pos
	tokens     []Token
	earlier    int // tokens of earlier lines
	line       string
	pos, start int // tokens cover the line up to pos; the last one begins at start
	first      int // start of the text after blanks and list marks
	lookups    int // bytes in loops that look ahead; tests bound it by the line's length

	value   bool // a value precedes, so that / divides and < compares
	command bool // in a shell: a command may begin here
	expect  Kind // of the next word, set by the keyword before it
}

func (s *scanner) read() {
	s.first = s.skip(0)
	s.command = !s.arguments
	for s.pos < len(s.line) {
		f := s.top()
		r := f.region
		switch s.lang = cmp.Or(f.code, s.base); {
		case r != nil && f.code == nil:
			s.text(f)
		case r != nil && r.code != nil && strings.HasPrefix(s.line[s.pos:], r.close):
			s.pop()
			s.take(r.kind, s.pos+len(r.close))
		default:
			s.step()
		}
	}
	carried := strings.HasSuffix(s.line, `\`)
	s.arguments = carried && !s.command
	for i, f := range s.frames[:s.depth] {
		if !f.region.has('L') && !(carried && f.region.has('E')) {
			clear(s.frames[i:]) // equal states must compare equal
			s.depth = int8(i)
			break
		}
	}
}

// take makes the line up to end a token of this kind.
func (s *scanner) take(kind Kind, end int) {
	if end = min(end, len(s.line)); end <= s.pos {
		return
	}
	if n := len(s.tokens); n > s.earlier && s.tokens[n-1].Kind == kind {
		s.tokens[n-1].Text = s.line[s.start:end]
	} else {
		s.tokens, s.start = append(s.tokens, Token{kind, s.line[s.pos:end]}), s.pos
	}
	s.pos = end
}

// byteAt is the byte at i, or 0 outside the line.
func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.line) {
		return 0
	}
	return s.line[i]
}

func (s *scanner) skip(i int) int {
	for ; i < len(s.line) && (s.line[i] == ' ' || s.line[i] == '\t'); i++ {
		s.lookups++
	}
	return i
}

func (s *scanner) wordEnd(i int) int {
	for ; i < len(s.line) && s.lang.inWord[s.line[i]]; i++ {
		s.lookups++
	}
	return i
}

// top is the innermost frame; its region is nil if none is open.
func (s *scanner) top() *frame { return &s.frames[max(0, s.depth-1)] }

func (s *scanner) push(r *region, code *Language) {
	s.frames[s.depth] = frame{region: r, code: code, nested: 1}
	s.depth++
}

func (s *scanner) pop() {
	s.depth--
	s.frames[s.depth] = frame{} // equal states must compare equal
}

func (s *scanner) begins(r *region) bool {
	end := s.pos + len(r.open)
	next := s.byteAt(end)
	return strings.HasPrefix(s.line[s.pos:], r.open) &&
		(!r.has('S') || s.pos == 0) &&
		(!r.has('F') || s.pos == s.first) &&
		(!r.has('W') || s.pos == 0 || !s.lang.inWord[s.line[s.pos-1]]) &&
		(!r.has('O') || !s.value) &&
		(!r.has('M') || letter(next) || next == '/' || next == '!' || next == '?') &&
		(!r.has('C') || strings.Contains(s.line[end:min(end+200, len(s.line))], r.close)) &&
		(!r.has('H') || next == '\\' || next != '\'' && s.charEnds(end))
}

// charEnds reports whether a quote follows the character at i.
func (s *scanner) charEnds(i int) bool {
	_, size := utf8.DecodeRuneInString(s.line[i:])
	return s.byteAt(i+size) == '\''
}

// open takes the opening of a region, if one begins here.
func (s *scanner) open() bool {
	for _, r := range s.lang.opens[s.line[s.pos]] {
		if !s.begins(r) || s.depth == maxDepth {
			continue
		}
		end := s.pos + len(r.open)
		s.expect = Text
		if r.has('K') {
			s.take(r.kind, end)
			s.first, s.command = s.skip(end), true
			return true
		}
		if r.has('M') && r.code != nil {
			for end++; end < len(s.line) && r.code.inWord[s.line[end]]; end++ {
			}
		}
		s.push(r, r.code)
		s.take(r.kind, end)
		s.value, s.command = false, false
		return true
	}
	return false
}

// text takes an open region up to its end, its next hole, or the end of the line.
func (s *scanner) text(f *frame) {
	r := f.region
	end, closed, hole := s.inside(f, s.pos)
	s.take(r.kind, end)
	switch {
	case hole:
		s.push(r, r.lang)
		s.value, s.command = false, true
	case closed:
		s.pop()
		s.value = r.kind == String
		if key := s.key(r.lang, s.pos, true); s.value && key != Text {
			s.tokens[len(s.tokens)-1].Kind = key
		}
	}
}

// inside finds where the text of an open region ends after i, and why.
func (s *scanner) inside(f *frame, i int) (end int, closed, hole bool) {
	r := f.region
	for ; i < len(s.line); i++ {
		if s.lookups++; !r.stops[s.line[i]] {
			continue
		}
		rest := s.line[i:]
		switch {
		case r.hole != "" && s.depth < maxDepth && strings.HasPrefix(rest, r.hole):
			if r.hole != "{" || s.byteAt(i+1) != '{' {
				return i + len(r.hole), false, true
			}
			i++
		case s.line[i] == '\\' && r.has('E'):
			i++
		case r.has('N') && strings.HasPrefix(rest, r.nest):
			f.nested++
			i += len(r.nest) - 1
		case r.close != "" && strings.HasPrefix(rest, r.close):
			if f.nested--; f.nested <= 0 || !r.has('N') {
				return i + len(r.close), true, false
			}
			i += len(r.close) - 1
		}
	}
	return len(s.line), false, false
}

func (s *scanner) step() {
	l, c, next, prev := s.lang, s.line[s.pos], s.byteAt(s.pos+1), s.byteAt(s.pos-1)
	mark := l.marks[c]
	switch {
	case c == ' ' || c == '\t':
		s.take(Text, s.skip(s.pos))
	case l.opens[c] != nil && s.open():
	case l.has('P'):
		end := s.pos + 1
		for end < len(s.line) && l.opens[s.line[end]] == nil {
			end++
		}
		s.take(Text, end)
	case digit(c) || c == '.' && digit(next) && !s.value && prev != '.':
		s.number()
	case mark != Text && l.starts[next] && next != c && next != '-' &&
		(c == '$' || prev != c && !l.inWord[prev]):
		s.take(mark, s.wordEnd(s.pos+1))
		s.value, s.command, s.expect = mark != Keyword, false, Text
	case l.starts[c]:
		s.word()
	default:
		s.bracket(c)
	}
}

// bracket takes a byte outside words; it may close a hole.
func (s *scanner) bracket(c byte) {
	s.command = strings.IndexByte("|&;({`!@", c) >= 0 || s.command && c == '\\'
	s.value = c == ')' || c == ']'
	if strings.IndexByte("*&.:?", c) < 0 {
		s.expect = Text
	}
	kind := Text
	if f := s.top(); f.region != nil && f.region.hole != "" {
		if i := strings.IndexByte(f.region.bracket, c); i >= 0 {
			f.nested += 1 - 2*int32(i)
		}
		if f.nested == 0 {
			kind = f.region.kind
			s.pop()
		}
	}
	s.take(kind, s.pos+1)
}

// key is the kind of the key that ends at end, or Text. The colon of an unquoted key must be
// followed by a blank.
func (s *scanner) key(l *Language, end int, quoted bool) Kind {
	end = s.skip(end)
	c, next := s.byteAt(end), s.byteAt(end+1)
	if c == '=' && next == '=' || c == ':' && next > ' ' && !quoted {
		return Text
	}
	return l.keys[c]
}

func (s *scanner) word() {
	l, end := s.lang, s.wordEnd(s.pos)
	text, next, prev := s.line[s.pos:end], s.byteAt(end), s.byteAt(s.pos-1)
	info, expected, key := l.words[text], s.expect, s.key(l, end, false)
	kind := info.kind
	s.expect = Text
	switch {
	case kind == Keyword && (prev == '.' && s.byteAt(s.pos-2) != '.' || // the name of a member
		l.has('S') && !s.command && text != "in" && text != "do" && text != "AS"):
		kind = Text
	case kind == Keyword:
		s.expect = info.next
	case expected != Text:
		kind = expected
	case !s.value && key != Text:
		kind = key
	case l.has('S') && (!s.command || text[0] == '-'):
		kind = Text
	case l.has('S') && next == '=':
		kind = Variable
	case kind != Text:
	case l.has('S'):
		kind = Function
	case l.has('A'):
		kind = Key
	case next == '(', l.marks['-'] != Text && strings.IndexByte(text, '-') > 0:
		kind = Function
	case l.has('C') && text[0] >= 'A' && text[0] <= 'Z' &&
		(len(text) == 1 || strings.ContainsFunc(text, func(c rune) bool { return c >= 'a' })):
		kind = Type
	}
	s.value = kind != Keyword
	s.command = kind == Keyword && !info.operand || s.command && text[0] == '-'
	s.take(kind, end)
}

func (s *scanner) number() {
	i := s.pos + 1
	for ; i < len(s.line); i++ {
		c, exponent := s.line[i], s.line[i-1]|0x20 == 'e' && s.byteAt(s.pos+1)|0x20 != 'x'
		if !(c < 0x80 && wordByte(c) || digit(s.byteAt(i+1)) && (c == '.' || c == '\'' ||
			exponent && (c == '+' || c == '-'))) {
			break
		}
	}
	s.take(Number, i)
	s.value, s.command, s.expect = true, false, Text
}

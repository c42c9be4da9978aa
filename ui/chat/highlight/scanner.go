// The scanner: a line, the place in it, what was said of it so far.

package highlight

import "strings"

// A scanner reads one line.
type scanner struct {
	State
	lang   *Language
	tokens []Token
	line   string
	at     int // what is before it stands in tokens
	from   int // where the last token begins
	mine   int // tokens that were there before
	indent int // where the first byte stands that is not blank

	value    bool // what stands before is a value, so that / divides and < compares
	expect   Kind // of the next word, because of the keyword before it
	command  bool // in a shell: a command may stand here
	set      bool // in a shell: the value of a variable is being set
	ends     int  // in a style sheet: where the declaration ends
	sums     bool // in a shell: arithmetic was begun in this line
	pending  bool // a here document begins with the next line
	unclosed bool // a regular expression or strong text that would begin here does not end in this line
	carried  bool // a backslash before the end of the line carries the open string over it
	nested   bool // as a guest: has no guests of its own
}

// read reads the line in a language from the State.
func (s *scanner) read(l *Language) {
	if s.nested && l.has(inPHP) {
		l = &phpCode
	}
	l.once.Do(l.prepare)
	s.lang = l
	s.mine, s.indent = len(s.tokens), s.blanksEnd(0)
	switch l.shape {
	case markup:
		s.markup()
	case yaml:
		s.yaml()
	case ini:
		s.ini()
	case patch:
		s.patch()
	case prose:
		s.prose()
	case makefile:
		s.makefile()
	default:
		s.code()
	}
}

// take says of the line up to end that it is of this kind.
func (s *scanner) take(kind Kind, end int) {
	end = min(end, len(s.line))
	if end <= s.at {
		return
	}
	if n := len(s.tokens); n > s.mine && s.tokens[n-1].Kind == kind {
		s.tokens[n-1].Text = s.line[s.from:end]
	} else {
		s.tokens = append(s.tokens, Token{kind, s.line[s.at:end]})
		s.from = s.at
	}
	s.at = end
}

// rest takes all that is left.
func (s *scanner) rest(kind Kind) { s.take(kind, len(s.line)) }

// byteAt is the byte at i, 0 outside of the line.
func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.line) {
		return 0
	}
	return s.line[i]
}

// has reports that the line goes on with x.
func (s *scanner) has(x string) bool { return strings.HasPrefix(s.line[s.at:], x) }

// wordEnd is where the word that begins at i ends.
func (s *scanner) wordEnd(i int) int {
	for i++; i < len(s.line) && s.lang.continues(s.line[i]); i++ {
	}
	return i
}

// blanksEnd is where the blanks that begin at i end.
func (s *scanner) blanksEnd(i int) int {
	for i < len(s.line) && blank(s.line[i]) {
		i++
	}
	return i
}

// first reports that nothing but blanks stands before i.
func (s *scanner) first(i int) bool { return i <= s.indent }

// top is the innermost thing that is open, nil if nothing is.
func (s *scanner) top() *frame {
	if s.depth == 0 {
		return nil
	}
	return &s.frames[s.depth-1]
}

func (s *scanner) push(f frame) bool {
	if int(s.depth) >= maxDepth {
		return false
	}
	s.frames[s.depth] = f
	s.depth++
	return true
}

func (s *scanner) pop() {
	s.depth--
	s.frames[s.depth] = frame{} // States of one meaning are equal
}

// closeAll forgets all that is open from a depth on.
func (s *scanner) closeAll(depth int) {
	for int(s.depth) > depth {
		s.pop()
	}
}

// visit reads up to end in the guest's language.
func (s *scanner) visit(end int) {
	if end <= s.at {
		return
	}
	inner := scanner{State: s.State, tokens: s.tokens, line: s.line[s.at:end], nested: true}
	inner.guest, inner.until = nil, ""
	inner.read(s.guest)
	guest, until := s.guest, s.until
	s.State, s.tokens = inner.State, inner.tokens
	s.guest, s.until = guest, until
	s.at, s.from, s.mine = end, end, len(s.tokens)
}

// leave ends the visit of a guest.
func (s *scanner) leave() { s.State = State{} }

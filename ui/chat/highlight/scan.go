package highlight

// The scanner: a line, the place in it, and what was said of it so far.

import (
	"slices"
	"strings"
)

type scanner struct {
	State
	base, lang *Language // of the line; of the code at this place
	tokens     []Token
	mine       int // tokens that were there before
	line       string
	at, from   int // what is before at stands in tokens; the last one begins at from
	first      int // where the line's text begins, behind blanks and the marks of lists

	value    bool   // what stands before is a value, so that / divides and < compares
	command  bool   // in a shell: a command may stand here
	carried  bool   // a backslash before the end of the line carries the string over it
	set      bool   // in a shell: the value of a variable is being set
	keyless  bool   // no key begins here any more
	pending  bool   // a here document begins with the next line
	expect   Kind   // of the next word, because of the keyword before it
	unclosed uint64 // regions, by number, that do not close in this line
	declared int    // in a style sheet: where the declaration ends
}

func (s *scanner) read() {
	s.first = s.skip(0, " \t")
	s.command, s.joined, s.fresh = !s.joined || s.fresh, false, false
	if s.fenceCloses() {
		return
	}
	if s.block > 0 && (s.first == len(s.line) || s.first >= int(s.block)) {
		s.take(String, len(s.line))
		return
	}
	s.block = 0
	if s.here {
		s.document()
	}
	for s.at < len(s.line) {
		s.lang = s.base
		if s.depth > 0 {
			f := &s.frames[s.depth-1]
			if f.code == nil {
				s.inside(f)
				continue
			}
			if s.lang = f.code; s.closesCode(f.of()) {
				continue
			}
		}
		s.step()
	}
	s.here = s.here || s.pending
	for i := range s.frames[:s.depth] {
		if !s.frames[i].is('L') && !s.carried {
			for int(s.depth) > i {
				s.pop()
			}
			return
		}
	}
}

// take says of the line up to end that it is of this kind.
func (s *scanner) take(kind Kind, end int) {
	if end = min(end, len(s.line)); end <= s.at {
		return
	}
	if n := len(s.tokens); n > s.mine && s.tokens[n-1].Kind == kind {
		s.tokens[n-1].Text = s.line[s.from:end]
	} else {
		s.tokens, s.from = append(s.tokens, Token{kind, s.line[s.at:end]}), s.at
	}
	s.at = end
}

// byteAt is the byte at i, 0 outside of the line.
func (s *scanner) byteAt(i int) byte {
	if i < 0 || i >= len(s.line) {
		return 0
	}
	return s.line[i]
}

func (s *scanner) has(x string) bool { return strings.HasPrefix(s.line[s.at:], x) }

// skip is where the bytes end that begin at i and are among those of set.
func (s *scanner) skip(i int, set string) int {
	for i < len(s.line) && strings.IndexByte(set, s.line[i]) >= 0 {
		i++
	}
	return i
}

func (s *scanner) wordEnd(i int) int {
	for i < len(s.line) && s.lang.continues[s.line[i]] {
		i++
	}
	return i
}

func (s *scanner) push(f frame) bool {
	if s.depth < maxDepth {
		s.frames[s.depth] = f
		s.depth++
		return true
	}
	return false
}

func (s *scanner) pop() {
	s.depth--
	s.frames[s.depth] = frame{} // States of one meaning are equal
}

// step takes the next piece of code.
func (s *scanner) step() {
	l, c := s.lang, s.line[s.at]
	next := s.byteAt(s.at + 1)
	mark := l.marks[c]
	switch {
	case blank(c):
		s.take(Text, s.skip(s.at, " \t"))
		s.command, s.set = s.command || s.set, false
	case s.at == s.first && s.depth == 0 && s.lineKey():
	case l.documents != "" && s.has(l.documents) && s.documentOpens():
	case l.opens[c] && s.opened(0, ""):
	case l.is(plain):
		s.take(Text, s.at+1)
	case l.is(styles):
		s.style(c, next)
	case c == '#' && s.at == s.first && l.is(preprocessor):
		s.take(Keyword, s.wordEnd(s.skip(s.at+1, " \t")))
		if i := strings.IndexByte(s.line, '>'); strings.HasSuffix(s.line[:s.at], "include") &&
			i > 0 {
			s.take(Text, s.skip(s.at, " "))
			s.take(String, i+1)
		}
	case !l.is(commands) && (digit(c) || c == '.' && digit(next) && !s.value &&
		s.byteAt(s.at-1) != '.'):
		s.number()
	case mark != Text && next != c && l.starts[next] && next != '-' &&
		(c != ':' || s.byteAt(s.at-1) != c && !wordByte(s.byteAt(s.at-1))):
		end := s.wordEnd(s.at + 1)
		if c == '-' && l.word(s.line[s.at:end]) == Keyword {
			mark = Keyword
		}
		s.take(mark, end)
		s.value, s.command, s.expect = true, false, Text
	case c == '$' && (l.is(commands) || mark != Text) && next > ' ' && next != '"' && next != '\'':
		s.variable(next)
	case l.starts[c] || l.is(commands) && digit(c):
		s.word()
	case c == '<' && l.is(tags) && (next == '/' || !s.value && (letter(next) || next == '>')):
		s.take(Tag, s.wordEnd(s.skip(s.at+1, "/")))
		s.take(Tag, s.skip(s.at, ">"))
	case c == '\\' && l.is(commands):
		s.joined = s.at+1 == len(s.line)
		s.fresh = s.joined && s.command
		s.take(Text, s.at+2)
	default:
		redirects := c == '&' && (s.byteAt(s.at-1) == '>' || s.byteAt(s.at-1) == '<')
		s.command = strings.IndexByte("|&;({`!@", c) >= 0 && !redirects
		s.value = c == ')' || c == ']' || c == '}' && !l.is(tags)
		if strings.IndexByte("*&.:?", c) < 0 {
			s.expect = Text
		}
		s.bracket(c)
	}
}

// word takes a word.
func (s *scanner) word() {
	l, end := s.lang, s.wordEnd(s.at)
	word, next := s.line[s.at:end], s.byteAt(end)
	if (next == '"' || next == '\'') && len(word) <= 3 &&
		slices.Contains(l.prefixes, strings.ToLower(word)) {
		if s.opened(len(word), strings.ToLower(word)) {
			return
		}
	}
	kind, expected := l.word(word), s.expect
	s.expect = Text
	if l.is(commands) {
		kind = s.commandWord(word, next, kind, expected)
	} else {
		if s.byteAt(s.at-1) == '.' && kind == Keyword && s.byteAt(s.at-2) != '.' {
			kind = Text // the name of a member
		}
		switch {
		case kind == Keyword:
			s.expect = l.next[word]
		case expected != Text && kind == Type && next == '.':
			s.expect = expected // def self.name
		case expected != Text:
			kind = expected
		case kind != Text:
		case l.is(attributes):
			if kind = Key; s.byteAt(s.at-1) == '=' {
				kind = String
			}
		case next == '=' && l.is(tags) && strings.IndexByte("{\"'", s.byteAt(end+1)) >= 0 &&
			end+1 < len(s.line):
			kind = Key
		case l.is(capitals) && word[0] >= 'A' && word[0] <= 'Z' &&
			(len(word) == 1 || strings.ToUpper(word) != word):
			kind = Type
		case next == '!' && l.is(macros) && s.byteAt(end+1) != '=':
			kind, end = Function, end+1
		case l.is(calls) && next == '(', l.is(hyphenated) && strings.IndexByte(word, '-') > 0:
			kind = Function
		}
	}
	s.value = kind != Keyword && !(kind == Type && l.is(bare))
	s.take(kind, end)
	if s.byteAt(s.at) == '\'' && s.value && letter(s.byteAt(s.at+1)) && l.is(tags) {
		s.take(Text, s.at+1) // the apostrophe of prose between tags
	}
}

// commandWord is the kind of a word of a shell: a command, an option, an argument.
func (s *scanner) commandWord(word string, next byte, kind, expected Kind) Kind {
	command := s.command
	s.command = false
	switch {
	case strings.Trim(word, "0123456789") == "":
		return Number
	case s.lang.is(instructions) && command && s.at == s.first && !s.joined &&
		s.lang.words[strings.ToUpper(word)] == Keyword:
		s.command = !slices.Contains(s.lang.operands, strings.ToUpper(word))
		return Keyword
	case expected != Text:
		return expected
	case command && kind == Text && (next == '=' || strings.HasSuffix(word, "+") && next == '='):
		s.set = true
		return Variable
	case kind == Keyword && (command || word == "in" || word == "do" || word == "AS" ||
		word == "as"):
		s.command = !slices.Contains(s.lang.operands, word)
		s.expect = s.lang.next[word]
		return Keyword
	case command && (word[0] == '-' || word[0] == '+'):
		s.command = true // an option of sudo
		return Text
	case command:
		s.command = kind == Type &&
			slices.Contains([]string{"sudo", "exec", "command", "env", "nohup"}, word)
		if kind == Text {
			kind = Function
		}
		return kind
	}
	return Text
}

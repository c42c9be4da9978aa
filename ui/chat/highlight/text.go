// What is read by its lines: patches and markdown.

package highlight

import "strings"

// patch reads a line of a patch.
func (s *scanner) patch() {
	switch {
	case s.has("+++") || s.has("---") || s.has("diff ") || s.has("index ") || s.has("Index: ") || s.has("=== ") || s.has("*** "):
		s.rest(Heading)
	case s.has("@@"):
		if i := strings.Index(s.line[2:], "@@"); i >= 0 {
			s.take(Function, i+4)
			s.rest(Text)
			return
		}
		s.rest(Function)
	case s.has("+"), s.has(">"):
		s.rest(Inserted)
	case s.has("-"), s.has("<"):
		s.rest(Deleted)
	case s.has(`\`):
		s.rest(Comment)
	default:
		s.rest(Text)
	}
}

// prose reads a line of markdown; the code blocks in it are read in their own language.
func (s *scanner) prose() {
	if s.until != "" {
		if line := strings.TrimSpace(s.line); strings.HasPrefix(line, s.until) && strings.Trim(line, s.until[:1]) == "" {
			s.rest(Keyword)
			s.leave()
		} else if s.guest != nil {
			s.visit(len(s.line))
		} else {
			s.rest(String)
		}
		return
	}
	s.take(Text, s.indent)
	rest := s.line[s.at:]
	switch c := s.byteAt(s.at); {
	case strings.HasPrefix(rest, "```"), strings.HasPrefix(rest, "~~~"):
		n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		s.until = rest[:n]
		if !s.nested {
			s.guest = Find(strings.TrimSpace(rest[n:]))
		}
		s.rest(Keyword)
		return
	case c == '#':
		if n := len(rest) - len(strings.TrimLeft(rest, "#")); n <= 6 && (n == len(rest) || rest[n] == ' ') {
			s.rest(Heading)
			return
		}
	case c == '>':
		s.rest(Comment)
		return
	case (c == '-' || c == '*' || c == '+') && blank(s.byteAt(s.at+1)):
		s.take(Keyword, s.at+1)
	case digit(c):
		i := s.at
		for i < len(s.line) && digit(s.line[i]) {
			i++
		}
		if d := s.byteAt(i); (d == '.' || d == ')') && blank(s.byteAt(i+1)) {
			s.take(Keyword, i+1)
		}
	}
	for s.at < len(s.line) {
		s.inline()
	}
}

// inline takes the next piece of a paragraph: a code span, a link's address, words.
func (s *scanner) inline() {
	rest := s.line[s.at:]
	switch c := rest[0]; {
	case c == '`':
		n := len(rest) - len(strings.TrimLeft(rest, "`"))
		if i := strings.Index(rest[n:], rest[:n]); i >= 0 {
			s.take(String, s.at+n+i+n)
		} else {
			s.rest(String)
		}
	case strings.HasPrefix(rest, "]("):
		s.take(Text, s.at+2)
		if i := strings.IndexByte(s.line[s.at:], ')'); i >= 0 {
			s.take(Key, s.at+i)
		} else {
			s.rest(Key)
		}
	case c == '*' && s.strong("**"), c == '_' && s.strong("__"):
	default:
		end := 1
		for end < len(rest) && strings.IndexByte("`]*_", rest[end]) < 0 {
			end++
		}
		s.take(Text, s.at+end)
	}
}

// strong takes text between two marks, if it ends in this line.
func (s *scanner) strong(mark string) bool {
	if !s.has(mark) || s.unclosed {
		return false
	}
	i := strings.Index(s.line[s.at+2:], mark)
	if i <= 0 {
		s.unclosed = i < 0
		return false
	}
	s.take(Heading, s.at+2+i+2)
	return true
}

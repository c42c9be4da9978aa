// Style sheets.

package highlight

import "strings"

// styleStep takes the next piece of a style sheet. What begins a declaration is a property where a colon follows it and
// no brace opens before the declaration ends, else a selector.
func (s *scanner) styleStep() {
	l, c := s.lang, s.line[s.at]
	next := s.byteAt(s.at + 1)
	switch {
	case blank(c):
		s.take(Text, s.blanksEnd(s.at))
	case l.opens[c] && s.opened():
	case digit(c), (c == '.' || c == '-' || c == '+') && digit(next) && s.value, c == '.' && digit(next):
		end := s.at + 1
		for end < len(s.line) && (wordByte(s.line[end]) || s.line[end] == '.') {
			end++
		}
		if s.byteAt(end) == '%' {
			end++
		}
		s.take(Number, end)
	case c == '#' && wordByte(next) && s.value:
		s.take(Number, s.wordEnd(s.at+1))
	case (c == '.' || c == '#' || c == '&' || c == '%') && (l.starts(next) || next == '-') && !s.value:
		s.take(Tag, s.wordEnd(s.at+1))
	case c == '@' && l.starts(next):
		s.take(Keyword, s.wordEnd(s.at+1))
		s.value = true
	case c == '$' && l.starts(next):
		s.take(Variable, s.wordEnd(s.at+1))
		s.value = s.value || s.byteAt(s.blanksEnd(s.at)) == ':'
	case c == '!' && l.starts(next):
		s.take(Keyword, s.wordEnd(s.at+1))
	case l.starts(c):
		s.styleWord()
	default:
		if c == '{' || c == '}' || c == ';' {
			s.value = false
		}
		s.hole(c)
	}
}

// styleWord takes a word of a style sheet.
func (s *scanner) styleWord() {
	end := s.wordEnd(s.at)
	switch {
	case s.byteAt(end) == '(':
		s.take(Function, end)
		s.value = true
	case strings.HasPrefix(s.line[s.at:end], "--") && s.value:
		s.take(Variable, end)
	case s.value:
		s.take(Text, end)
	case s.property(end):
		s.take(Key, end)
		s.take(Text, s.blanksEnd(s.at))
		s.take(Text, s.at+1)
		s.value = true
	default:
		s.take(Tag, end)
	}
}

// property reports that the word that ends there is the name of one.
func (s *scanner) property(end int) bool {
	i := s.blanksEnd(end)
	if s.byteAt(i) != ':' {
		return false
	}
	if s.ends < i { // each declaration is looked through once
		s.ends = len(s.line)
		if j := strings.IndexAny(s.line[i:], "{};"); j >= 0 {
			s.ends = i + j
		}
	}
	return s.byteAt(s.ends) != '{'
}

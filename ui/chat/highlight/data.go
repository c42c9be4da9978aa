// Data that people write: YAML, and files of keys and values in sections.

package highlight

import "strings"

// Where in YAML a line may begin.
const (
	inKeys  uint8 = iota
	inBlock       // of text behind | or >
)

// yaml reads a line of YAML.
func (s *scanner) yaml() {
	if s.mode == inBlock {
		if s.indent == len(s.line) || s.indent > int(s.column) {
			s.rest(String)
			return
		}
		s.mode, s.column = inKeys, 0
	}
	if s.depth == 0 {
		if strings.HasPrefix(s.line, "---") || strings.HasPrefix(s.line, "...") || strings.HasPrefix(s.line, "%") {
			s.rest(Heading)
			return
		}
		s.take(Text, s.indent)
		for s.has("- ") || s.has("? ") || s.line[s.at:] == "-" {
			s.take(Keyword, s.at+1)
			s.take(Text, s.blanksEnd(s.at))
		}
		s.yamlKey()
	}
	for s.at < len(s.line) {
		if s.top() != nil {
			s.inside()
		} else {
			s.yamlValue()
		}
	}
	s.endLine()
}

// yamlKey takes the key of a line and its colon.
func (s *scanner) yamlKey() {
	column := s.at
	end := -1
	switch c := s.byteAt(s.at); c {
	case 0, '[', '{', '#', '&', '*', '!', '|', '>':
		return
	case '"', '\'':
		for i := s.at + 1; i < len(s.line) && end < 0; i++ {
			if s.line[i] == '\\' && c == '"' {
				i++
			} else if s.line[i] == c {
				end = i + 1
			}
		}
		if end < 0 || s.byteAt(end) != ':' {
			return
		}
	default:
		for i := s.at; i < len(s.line) && end < 0; i++ {
			if s.line[i] == ':' && (i+1 == len(s.line) || blank(s.line[i+1])) {
				end = i
			} else if s.line[i] == '#' && blank(s.byteAt(i-1)) {
				return
			}
		}
		if end < 0 {
			return
		}
	}
	s.take(Key, end)
	s.take(Text, s.at+1)
	s.take(Text, s.blanksEnd(s.at))
	if c := s.byteAt(s.at); c == '|' || c == '>' {
		s.take(Keyword, s.at+1)
		for s.at < len(s.line) && strings.IndexByte("+-0123456789", s.line[s.at]) >= 0 {
			s.take(Keyword, s.at+1)
		}
		s.mode, s.column = inBlock, int32(column)
	}
}

// yamlValue takes the next piece of a value.
func (s *scanner) yamlValue() {
	c := s.line[s.at]
	switch {
	case blank(c):
		s.take(Text, s.blanksEnd(s.at))
	case s.lang.opens[c] && s.opened():
	case (c == '&' || c == '*' || c == '!') && s.at+1 < len(s.line) && !blank(s.line[s.at+1]):
		end := s.at + 1
		for end < len(s.line) && strings.IndexByte(" \t,]}", s.line[end]) < 0 {
			end++
		}
		s.take(Type, end)
	case strings.IndexByte("[]{},", c) >= 0:
		s.take(Text, s.at+1)
	default:
		end := s.at + 1
		for end < len(s.line) && strings.IndexByte(",]}", s.line[end]) < 0 && !(s.line[end] == '#' && blank(s.line[end-1])) &&
			!(s.line[end] == ':' && (end+1 == len(s.line) || blank(s.line[end+1]))) {
			end++
		}
		word := strings.TrimRight(s.line[s.at:end], " \t")
		kind := Text
		switch {
		case s.byteAt(end) == ':':
			kind = Key
		case numeric(word):
			kind = Number
		default:
			kind = s.lang.word(word)
		}
		s.take(kind, s.at+len(word))
		if s.byteAt(s.at) == ':' {
			s.take(Text, s.at+1)
		}
	}
}

// numeric reports a number, a date, a version of digits.
func numeric(w string) bool {
	if w == "" || !digit(w[0]) && !(len(w) > 1 && (w[0] == '-' || w[0] == '+' || w[0] == '.') && digit(w[1])) {
		return false
	}
	for i := range len(w) {
		if !digit(w[i]) && strings.IndexByte("+-.:_eExXabcdefABCDEFTZ", w[i]) < 0 {
			return false
		}
	}
	return true
}

// ini reads a line of a file of keys and values.
func (s *scanner) ini() {
	s.take(Text, s.indent)
	switch c := s.byteAt(s.at); c {
	case 0:
		return
	case '#', ';', '!':
		s.rest(Comment)
		return
	case '[':
		s.take(Heading, max(s.at+1, strings.LastIndexByte(s.line, ']')+1))
		s.rest(Comment)
		return
	}
	i := strings.IndexAny(s.line[s.at:], "=:")
	if i < 0 {
		s.rest(Text)
		return
	}
	s.take(Key, s.at+len(strings.TrimRight(s.line[s.at:s.at+i], " \t")))
	s.take(Text, s.blanksEnd(s.at))
	s.take(Text, s.at+1)
	s.take(Text, s.blanksEnd(s.at))
	value := strings.TrimRight(s.line[s.at:], " \t")
	switch {
	case numeric(value):
		s.take(Number, s.at+len(value))
	case value != "" && (value[0] == '"' || value[0] == '\''):
		s.take(String, s.at+len(value))
	default:
		s.take(s.lang.word(value), s.at+len(value))
	}
	s.rest(Text)
}

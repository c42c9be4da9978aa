// Languages of words, brackets, strings and comments.

package highlight

import (
	"strings"
	"unicode/utf8"
)

// code reads a line of a language that is made of words, brackets, strings and comments.
func (s *scanner) code() {
	if s.command = !s.joined; s.joined {
		s.command, s.joined, s.mode = s.mode == inCommand, false, 0
	}
	if s.here && s.document() {
		return
	}
	for s.at < len(s.line) {
		if f := s.top(); f != nil && !f.hole {
			s.inside()
		} else if s.lang.shape == shell || s.lang.shape == makefile {
			s.shellStep()
		} else if s.lang.shape == styles {
			s.styleStep()
		} else {
			s.step()
		}
	}
	s.endLine()
}

// endLine closes the strings that end with the line.
func (s *scanner) endLine() {
	s.here = s.here || s.pending
	if s.carried {
		return
	}
	for i := range int(s.depth) {
		if s.lang.regions[s.frames[i].region].form&lines == 0 {
			s.closeAll(i)
			return
		}
	}
}

// step takes the next piece of code.
func (s *scanner) step() {
	l, c := s.lang, s.line[s.at]
	switch {
	case blank(c):
		s.take(Text, s.blanksEnd(s.at))
	case l.opens[c] && s.opened():
	case l.has(preprocessor) && c == '#' && s.first(s.at):
		s.directive()
	case l.has(sections) && c == '[' && s.first(s.at):
		s.take(Heading, max(s.at+1, strings.LastIndexByte(s.line, ']')+1))
	case digit(c), c == '.' && digit(s.byteAt(s.at+1)) && !s.value && s.byteAt(s.at-1) != '.':
		s.take(Number, s.numberEnd())
		s.value, s.expect = true, Text
	case l.starts(c):
		s.identifier()
	case s.marked(c):
	default:
		s.operator(c)
	}
}

// identifier takes a word.
func (s *scanner) identifier() {
	l, end := s.lang, s.wordEnd(s.at)
	if p := s.byteAt(end); (p == '!' || p == '?') && strings.IndexByte(l.part, p) >= 0 && s.byteAt(end+1) != '=' {
		end++
	}
	word := s.line[s.at:end]
	next := s.byteAt(end)
	if l.prefixes != "" && (next == '"' || next == '\'') && len(word) <= 4 && listed(l.prefixes, strings.ToLower(word)) {
		s.take(String, end)
		s.openPrefixed(word)
		return
	}
	if l.has(wordQuotes) && s.wordQuote(word, end) {
		return
	}
	kind := l.word(word)
	expected := s.expect
	s.expect = Text
	if s.byteAt(s.at-1) == '.' && kind == Keyword && s.byteAt(s.at-2) != '.' {
		kind = Text // the name of a member
	}
	s.value = kind == Text || kind == Type && !l.has(wordQuotes|percents) // split /x/
	switch {
	case kind == Keyword:
		if s.expect = l.next[word]; s.expect == Text && l.has(foldsCase) {
			s.expect = l.next[strings.ToLower(word)]
		}
	case expected != Text && kind == Type && next == '.':
		s.expect = expected // def self.name
	case expected != Text:
		kind = expected
	case kind != Text:
	case l.has(assigns) && s.first(s.at) && s.keyBefore(end):
		kind = Key
	case l.has(tags) && next == '=' && strings.IndexByte("{\"'", s.byteAt(end+1)) >= 0 && end+1 < len(s.line):
		kind = Key
	case l.has(capitals) && typeName(word):
		kind = Type
	case l.has(macros) && next == '!' && s.byteAt(end+1) != '=':
		kind, end = Function, end+1
	case l.has(hyphenated) && strings.IndexByte(word, '-') > 0, l.has(calls) && next == '(':
		kind = Function
	}
	s.take(kind, end)
	if q := s.byteAt(s.at); q == '\'' && kind != Keyword && letter(s.byteAt(s.at+1)) && l.opens[q] && !l.has(characters) {
		s.take(Text, s.at+1) // the apostrophe of prose between tags
	}
}

// keyBefore reports that an equals sign is what follows, as behind a key.
func (s *scanner) keyBefore(end int) bool {
	for end < len(s.line) && (wordByte(s.line[end]) || strings.IndexByte(".-\" ", s.line[end]) >= 0) {
		end++
	}
	return s.byteAt(end) == '='
}

// typeName reports a word of the form that names types: a capital, and not in capitals throughout.
func typeName(w string) bool {
	if w[0] < 'A' || w[0] > 'Z' {
		return false
	}
	if len(w) == 1 {
		return true
	}
	for i := 1; i < len(w); i++ {
		if w[i] >= 'a' && w[i] <= 'z' {
			return true
		}
	}
	return false
}

// listed reports that w is one of the words.
func listed(words, w string) bool {
	for words != "" {
		var one string
		if one, words, _ = strings.Cut(words, " "); one == w {
			return true
		}
	}
	return false
}

// numberEnd is where the number ends that begins here.
func (s *scanner) numberEnd() int {
	i := s.at
	hex := s.line[i] == '0' && (s.byteAt(i+1)|0x20 == 'x')
	for ; i < len(s.line); i++ {
		switch c := s.line[i]; {
		case c == '.':
			if n := s.byteAt(i + 1); n == '.' || !digit(n) && s.lang.starts(n) && !s.lang.has(ticks) {
				return i
			}
		case (c == '-' || c == ':') && s.lang.has(sections) && digit(s.byteAt(i-1)) && digit(s.byteAt(i+1)): // a date
		case c == '\'':
			if !s.lang.has(ticks) || i == s.at || !wordByte(s.byteAt(i+1)) {
				return i
			}
		case c == '+' || c == '-':
			e := s.byteAt(i-1) | 0x20
			if i == s.at || !digit(s.byteAt(i+1)) || !(e == 'e' && !hex || e == 'p' && hex) {
				return i
			}
		case !wordByte(c) || c >= 0x80:
			return i
		}
	}
	return i
}

// marked takes what begins with a mark of the language's: @word, $word, :name, a character, a regular expression, a tag.
func (s *scanner) marked(c byte) bool {
	l, next := s.lang, s.byteAt(s.at+1)
	switch {
	case (c == '$' || c == '@' || c == '%' && !s.value || c == '&' && !s.value) && l.has(sigils):
		return s.sigil(c, next)
	case c == '@' && l.at != Text && l.starts(next):
		s.take(l.at, s.wordEnd(s.at+1))
		s.value = true
		return true
	case c == '$' && l.dollar != Text && (l.starts(next) || next == '{'):
		s.variable()
		return true
	case c == ':' && l.has(symbols) && l.starts(next) && strings.IndexByte(":<>", s.byteAt(s.at-1)) < 0 && !wordByte(s.byteAt(s.at-1)):
		s.take(String, s.wordEnd(s.at+1))
		s.value = true
		return true
	case c == '\'' && l.has(characters):
		s.character()
		return true
	case c == '/' && l.has(regexps) && !s.value && !s.unclosed:
		return s.regex()
	case c == '%' && l.has(percents) && !s.value && strings.IndexByte("wWiIqQr", next) >= 0 && next != 0:
		if open := s.byteAt(s.at + 2); open != 0 && open < 0x80 && !wordByte(open) && !blank(open) && open != '=' {
			s.take(String, s.quotedBy(s.at+2))
			s.value = true
			return true
		}
	case c == '<' && l.has(tags) && (next == '/' && (letter(s.byteAt(s.at+2)) || s.byteAt(s.at+2) == '>') || !s.value && (letter(next) || next == '>')):
		end := s.at + 1
		for end < len(s.line) && (wordByte(s.line[end]) || strings.IndexByte("/.:-", s.line[end]) >= 0) {
			end++
		}
		s.take(Tag, end)
		s.value = false
		return true
	case c == '<' && l.has(isPHP) && next == '?':
		end := s.at + 2
		for end < len(s.line) && (s.line[end] == '=' || letter(s.line[end])) {
			end++
		}
		s.take(Tag, end)
		return true
	case c == '-' && l.has(hyphenated) && letter(next) && !wordByte(s.byteAt(s.at-1)):
		end := s.wordEnd(s.at + 1)
		kind := Key
		if l.word(s.line[s.at:end]) == Keyword {
			kind = Keyword
		}
		s.take(kind, end)
		s.value = false
		return true
	}
	return false
}

// sigil takes a variable with a sigil before it, plain, so that its name is no keyword.
func (s *scanner) sigil(c, next byte) bool {
	end := s.at + 1
	if c == '$' && next == '#' && s.lang.starts(s.byteAt(end+1)) {
		end++
		next = s.byteAt(end)
	}
	switch {
	case c == '@' && next == '@':
		end = s.wordEnd(end)
	case s.lang.starts(next) || digit(next):
		end = s.wordEnd(end)
	case c == '$' && next > ' ' && next < 0x7f && strings.IndexByte("{(\"'`)", next) < 0:
		end++
	case next != '{' && next != '$':
		return false
	}
	s.take(s.lang.dollar, end)
	s.value, s.expect = true, Text
	return true
}

// variable takes $name and ${name}.
func (s *scanner) variable() {
	end := s.at + 1
	if s.byteAt(end) == '{' {
		if i := strings.IndexByte(s.line[s.at:], '}'); i >= 0 {
			end = s.at + i + 1
		} else {
			end = len(s.line)
		}
	} else {
		end = s.wordEnd(end)
	}
	s.take(s.lang.dollar, end)
	s.value, s.expect = true, Text
}

// character takes a character or, where none closes, the mark and the name behind it.
func (s *scanner) character() {
	i := s.at + 1
	if s.byteAt(i) == '\\' {
		for i += 2; i < min(len(s.line), s.at+14); i++ {
			if s.line[i] == '\'' {
				s.take(String, i+1)
				s.value = true
				return
			}
		}
	} else if i < len(s.line) && s.line[i] != '\'' {
		if _, size := utf8.DecodeRuneInString(s.line[i:]); s.byteAt(i+size) == '\'' {
			s.take(String, i+size+1)
			s.value = true
			return
		}
	}
	if end := s.at + 1; !s.value && s.lang.starts(s.byteAt(end)) {
		s.take(Type, s.wordEnd(end)) // a lifetime
		return
	}
	s.take(Text, s.at+1)
}

// regex takes a regular expression, if one closes in this line.
func (s *scanner) regex() bool {
	class := false
	for i := s.at + 1; i < len(s.line); i++ {
		switch c := s.line[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			for i++; i < len(s.line) && letter(s.line[i]); i++ {
			}
			s.take(String, i)
			s.value = true
			return true
		}
	}
	s.unclosed = true
	return false
}

// wordQuote takes q(), qw(), m//, s/// and their like, which end in this line at the latest.
func (s *scanner) wordQuote(word string, end int) bool {
	open := s.byteAt(end)
	if !listed("q qq qw qr m s tr y", word) || open <= ' ' || open >= 0x7f || wordByte(open) || strings.IndexByte("=,;)]}>-+.", open) >= 0 {
		return false
	}
	if b := s.byteAt(s.at - 1); b == '{' && open == '}' || b == '>' || b == '-' {
		return false
	}
	i := s.quotedBy(end)
	if word == "s" || word == "tr" || word == "y" {
		if mirror(open) != open {
			if i = s.blanksEnd(i); i < len(s.line) {
				i = s.quotedBy(i)
			}
		} else if i < len(s.line) {
			i = s.quotedBy(i - 1)
		}
	}
	for i < len(s.line) && letter(s.line[i]) && word != "q" && word != "qq" && word != "qw" {
		i++
	}
	s.take(String, i)
	s.value, s.expect = true, Text
	return true
}

// quotedBy is where the text ends that is quoted by the byte at i and its mirror, the end of the line if it does not.
func (s *scanner) quotedBy(i int) int {
	open := s.line[i]
	shut, depth := mirror(open), 1
	for i++; i < len(s.line); i++ {
		switch c := s.line[i]; {
		case c == '\\':
			i++
		case c == shut:
			if depth--; depth == 0 {
				return i + 1
			}
		case c == open:
			depth++
		}
	}
	return len(s.line)
}

// mirror is the bracket that closes c, c itself if it is none.
func mirror(c byte) byte {
	if i := strings.IndexByte("([{<", c); i >= 0 {
		return ")]}>"[i]
	}
	return c
}

// directive takes the word of a preprocessor's line, and the file that is included.
func (s *scanner) directive() {
	start := s.blanksEnd(s.at + 1)
	end := start
	for end < len(s.line) && wordByte(s.line[end]) {
		end++
	}
	word := s.line[start:end]
	s.take(Keyword, max(end, s.at+1))
	if word == "include" || word == "import" {
		s.take(Text, s.blanksEnd(s.at))
		if s.byteAt(s.at) == '<' {
			if i := strings.IndexByte(s.line[s.at:], '>'); i >= 0 {
				s.take(String, s.at+i+1)
			}
		}
	}
	if word == "error" || word == "warning" || word == "pragma" || word == "region" {
		s.rest(Text) // words of no meaning
	}
}

// operator takes one byte that is none of the others.
func (s *scanner) operator(c byte) {
	closed := s.hole(c)
	s.value = c == ')' || c == ']' || c == '}' && (closed || !s.lang.has(tags))
	if strings.IndexByte("*&.:?", c) < 0 {
		s.expect = Text
	}
}

// hole takes one byte and keeps count of the brackets of the hole that is open, if one is; it reports its end.
func (s *scanner) hole(c byte) bool {
	if f := s.top(); f != nil {
		hole := s.lang.regions[f.region].hole
		open := hole[strings.IndexAny(hole, "{(")]
		if c == open {
			f.n++
		} else if c == mirror(open) {
			if f.n--; f.n <= 0 {
				s.pop()
				s.take(String, s.at+1)
				return true
			}
		}
	}
	s.take(Text, s.at+1)
	return false
}

package highlight

// What is more than one piece: comments and strings, code inside of them, here documents, keys,
// numbers, variables, declarations of style sheets.

import (
	"strings"
	"unicode/utf8"
)

// opened opens a region, if one begins here behind the bytes of a prefix.
func (s *scanner) opened(skip int, prefix string) bool {
	for i := range s.lang.regions {
		r := &s.lang.regions[i]
		if prefix != "" && r.kind != String {
			continue
		}
		if end, shut, ok := s.opening(r, i, s.at+skip); ok {
			f := frame{lang: s.lang, region: int16(i), code: r.in, n: 1,
				raw: strings.Contains(prefix, "r"), holes: strings.ContainsAny(prefix, "ft")}
			return s.open(r, f, end, shut)
		}
	}
	return false
}

// opening reports that a region begins at, where its first bytes end, and what will close it if
// its table does not say.
func (s *scanner) opening(r *region, i, at int) (end int, shut string, ok bool) {
	lead, rest, filled := r.open, "", r.fill != 0
	if filled {
		lead, rest, _ = strings.Cut(r.open, "*")
	}
	before := s.byteAt(at - 1)
	switch {
	case !strings.HasPrefix(s.line[at:], lead),
		filled && (s.end != "" || before == r.fill),
		r.is('S') && (at > 0 || s.depth > 0),
		r.is('F') && at != s.first,
		r.is('W') && at > 0 && strings.IndexByte(" \t;({[,:=", before) < 0,
		r.is('O') && (s.value || s.unclosed>>(i&63)&1 != 0),
		r.is('M') && !letter(s.byteAt(at+len(lead))) &&
			strings.IndexByte("/!?", s.byteAt(at+len(lead))) < 0,
		r.is('C') && s.unclosed>>(i&63)&1 != 0:
		return 0, "", false
	}
	end = at + len(lead)
	if filled {
		begin := end
		for end < len(s.line) && (s.line[end] == r.fill || r.fill == 'w' && end-begin <= 16 &&
			wordByte(s.line[end])) {
			end++
		}
		if !strings.HasPrefix(s.line[end:], rest) {
			return 0, "", false
		}
		shut = strings.Replace(r.shut, "*", s.line[begin:end], 1)
		end += len(rest)
	}
	switch {
	case r.is('C'):
		_, closed, _ := s.literal(r, &frame{n: 1}, end)
		if !closed {
			s.unclosed |= 1 << (i & 63)
		}
		return end, shut, closed
	case r.is('H'):
		_, size := utf8.DecodeRuneInString(s.line[end:])
		if s.byteAt(end) == '\\' && end+2 < len(s.line) {
			size = 2 + max(0, strings.IndexByte(s.line[end+2:min(end+12, len(s.line))], '\''))
		}
		end += size
		return end + 1, "", size > 0 && s.line[end-size] != '\'' && s.byteAt(end) == '\''
	case r.is('M'):
		for end < len(s.line) && (wordByte(s.line[end]) ||
			strings.IndexByte("/!?:.-", s.line[end]) >= 0) {
			end++
		}
	}
	return end, shut, true
}

// open opens a region whose first bytes end there.
func (s *scanner) open(r *region, f frame, end int, shut string) bool {
	first := s.at == s.first
	s.expect, s.command = Text, false
	switch {
	case r.is('G'):
		if f.code = Find(strings.Trim(s.line[end:], r.open[:1]+" ")); s.depth > 0 ||
			f.code != nil && f.code.is(plain) {
			f.code = nil
		}
		s.push(f)
		s.end = r.open
		s.take(r.kind, len(s.line))
	case r.is('K'):
		s.take(r.kind, s.at+len(strings.TrimRight(r.open, " ")))
		if s.command = true; first {
			s.first = s.skip(s.at, " \t")
		}
	case r.shut == "":
		s.take(r.kind, len(s.line))
	case r.is('H'):
		s.take(r.kind, end)
		s.value = true
	default:
		if r.kind == String && s.lang.is(keyStrings) {
			if key, closed, _ := s.literal(r, &f, end); closed &&
				s.byteAt(s.skip(key, " \t")) == ':' {
				s.take(Key, key)
				return true
			}
		}
		if !s.push(f) {
			return false
		}
		if shut != "" {
			s.end = shut
		}
		s.take(r.kind, end)
		s.value = false
	}
	return true
}

// closesCode ends code inside of a region, if what closes the region stands here.
func (s *scanner) closesCode(r *region) bool {
	if r.in == nil || !s.has(r.shut) {
		return false
	}
	s.take(r.kind, s.at+len(r.shut))
	s.pop()
	return true
}

// fenceCloses takes a line that ends a fence, and what is open in it.
func (s *scanner) fenceCloses() bool {
	if s.depth == 0 || !s.frames[0].is('G') {
		return false
	}
	line := strings.TrimSpace(s.line)
	if !strings.HasPrefix(line, s.end) || strings.Trim(line, s.end[:1]) != "" {
		return false
	}
	s.take(Keyword, len(s.line))
	s.State = State{}
	return true
}

// inside takes the open region up to its end, its next hole, or the end of the line.
func (s *scanner) inside(f *frame) {
	r := f.of()
	if r.is('S') && (s.at > 0 || s.has(r.shut)) {
		if s.at == 0 {
			s.pop()
		}
		s.take(r.kind, len(s.line))
		return
	}
	end, closed, hole := s.literal(r, f, s.at)
	kind := r.kind
	if r.is('G') {
		kind = String
	}
	s.take(kind, end)
	switch {
	case hole:
		s.push(frame{lang: f.lang, region: f.region, code: f.lang, n: 1})
		s.value, s.command = false, true
	case closed:
		if r.fill != 0 {
			s.end = ""
		}
		s.pop()
		s.value = r.kind == String
	}
}

// literal finds where the text of a region that is open at i ends, for which reason.
func (s *scanner) literal(r *region, f *frame, i int) (end int, closed, hole bool) {
	shut, nested, class := r.shut, r.open, false
	if r.fill != 0 {
		shut = s.end
	}
	if len(shut) == 1 {
		nested = r.open[len(r.open)-1:]
	}
	if r.is('S') || r.is('G') {
		return len(s.line), false, false
	}
	holes := r.hole != "" && (r.hole != "{" || f.holes || r.open[0] == '$') && s.depth+1 < maxDepth
	s.carried = false
	for ; i < len(s.line); i++ {
		c, rest := s.line[i], s.line[i:]
		switch {
		case holes && c == r.hole[0] && strings.HasPrefix(rest, r.hole):
			if r.hole != "{" || s.byteAt(i+1) != '{' {
				return i + len(r.hole), false, true
			}
			i++
		case c == '\\' && r.is('E') && (!f.raw || s.byteAt(i+1) == shut[0]), c == '`' && r.is('B'):
			i++
			s.carried = i >= len(s.line)
		case (c == '[' || c == ']') && r.is('R'):
			class = c == '['
		case r.is('N') && c == nested[0] && strings.HasPrefix(rest, nested):
			f.n++
			i += len(nested) - 1
		case c == shut[0] && !class && strings.HasPrefix(rest, shut):
			i += len(shut) - 1
			if r.is('D') && strings.HasPrefix(s.line[i+1:], shut) {
				i += len(shut)
			} else if f.n--; f.n <= 0 || !r.is('N') {
				for i++; r.is('R') && letter(s.byteAt(i)); i++ { // flags
				}
				return i, true, false
			}
		}
	}
	return len(s.line), false, false
}

// bracket takes one byte; one that closes a hole is its end.
func (s *scanner) bracket(c byte) {
	if s.depth > 0 {
		f := &s.frames[s.depth-1]
		if r := &f.lang.regions[f.region]; r.hole != "" {
			open := r.hole[strings.IndexAny(r.hole, "{(")]
			if c == open {
				f.n++
			} else if c == open+1+open>>6 { // ) follows (, } is two behind {
				if f.n--; f.n <= 0 {
					s.pop()
					s.take(r.kind, s.at+1)
					return
				}
			}
		}
	}
	s.take(Text, s.at+1)
}

// document reads a line of a here document, or its last one.
func (s *scanner) document() {
	if rest, ok := strings.CutPrefix(s.line[s.first:], s.end); ok &&
		(rest == "" || !wordByte(rest[0])) {
		s.take(String, s.first+len(s.end))
		s.end, s.here, s.command = "", false, false
		return
	}
	s.take(String, len(s.line))
}

// documentOpens takes the mark and the word of a here document, which begins with the next line.
func (s *scanner) documentOpens() bool {
	i := s.skip(s.at+len(s.lang.documents), "-~")
	if s.lang.is(commands) {
		i = s.skip(i, " ")
	}
	quoted := s.byteAt(i) == '"' || s.byteAt(i) == '\''
	if quoted {
		i++
	}
	end := i
	for end < len(s.line) && end-i <= 64 && wordByte(s.line[end]) {
		end++
	}
	if s.end != "" || end == i || end-i > 64 || !quoted && (s.line[i] < 'A' || s.line[i] > 'Z') {
		return false
	}
	s.end, s.pending = s.line[i:end], true
	if quoted {
		end++
	}
	s.take(String, end)
	s.value = true
	return true
}

// lineKey takes the key that a line begins with.
func (s *scanner) lineKey() bool {
	l, column := s.lang, s.at
	if s.keyless || !l.hasKeys || blank(s.byteAt(s.at+1)) || l.is(margin) && s.at > 0 {
		return false
	}
	s.keyless = true
	for i := s.at; i < len(s.line); i++ {
		c := s.line[i]
		switch kind := l.keys[c]; {
		case kind != Text && l.is(margin) && c == ':' && s.byteAt(i+1) == '=':
		case kind != Text && (!l.is(blocks) || i+1 == len(s.line) || blank(s.line[i+1])):
			s.take(kind, s.at+len(strings.TrimRight(s.line[s.at:i], " \t?+:")))
			s.take(Text, s.skip(i+1, " \t"))
			s.command = false
			if n := s.byteAt(s.at); l.is(blocks) && (n == '|' || n == '>') {
				s.take(Keyword, s.skip(s.at, "|>+-0123456789"))
				s.block = int32(column) + 2
			}
			return s.at > column
		case c == '"' || c == '\'':
			if n := strings.IndexByte(s.line[i+1:], c); n >= 0 {
				i += n + 1
			}
		case strings.IndexByte("([{&*|>!#,;", c) >= 0:
			return false
		}
	}
	return false
}

// number takes a number.
func (s *scanner) number() {
	i := s.at
	hex := s.line[i] == '0' && s.byteAt(i+1)|0x20 == 'x'
	for ; i < len(s.line); i++ {
		c, before, next := s.line[i], s.byteAt(i-1), s.byteAt(i+1)
		if c < 0x80 && wordByte(c) || c == '.' &&
			(digit(next) || next != '.' && (!s.lang.starts[next] || s.lang.is(ticks))) ||
			i > s.at && c == '\'' && wordByte(next) && s.lang.is(ticks) ||
			i > s.at && digit(next) && (c == '+' || c == '-') && (before|0x20 == 'e' && !hex ||
				before|0x20 == 'p') ||
			(c == '-' || c == ':') && digit(before) && digit(next) && s.lang.is(dates) {
			continue
		}
		break
	}
	s.take(Number, i)
	s.value, s.expect = true, Text
}

// variable takes ${name}, $(name) in a makefile, $1; $( alone opens a command.
func (s *scanner) variable(next byte) {
	end := s.at + 2
	if next == '{' || next == '(' && s.lang.is(margin) {
		if i := strings.IndexByte(s.line[s.at:], next+1+next>>6); i >= 0 {
			end = s.at + i + 1
		} else {
			end = len(s.line)
		}
	} else if next == '(' {
		s.take(Text, s.at+1)
		return
	} else if wordByte(next) {
		for end < len(s.line) && wordByte(s.line[end]) {
			end++
		}
	}
	s.take(Variable, end)
	s.value, s.command = true, false
}

// style takes the next piece of a style sheet. What begins a declaration is a property where a
// colon follows it and no brace opens before the declaration ends, else a selector.
func (s *scanner) style(c, next byte) {
	l, end := s.lang, s.wordEnd(s.at+1)
	switch {
	case digit(c), strings.IndexByte(".-+", c) >= 0 && digit(next), c == '#' && wordByte(next) &&
		s.value:
		s.take(Number, s.skip(end, ".0123456789%empxrsvhw"))
	case (c == '@' || c == '!') && l.starts[next]:
		s.take(Keyword, end)
		s.value = s.value || c == '@'
	case c == '$' && l.starts[next], s.value && s.has("--"):
		s.take(Variable, end)
		s.value = true
	case strings.IndexByte(".#&%", c) >= 0 && (l.starts[next] || next == '-') && !s.value:
		s.take(Tag, end)
	case l.starts[c] && s.byteAt(end) == '(':
		s.take(Function, end)
		s.value = true
	case l.starts[c] && s.value:
		s.take(Text, end)
	case l.starts[c] && s.property(end):
		s.take(Key, end)
		s.value = true
	case l.starts[c]:
		s.take(Tag, end)
	default:
		if strings.IndexByte("{};", c) >= 0 {
			s.value = false
		}
		s.take(Text, s.at+1)
	}
}

// property reports that the word that ends there is the name of a property.
func (s *scanner) property(end int) bool {
	i := s.skip(end, " \t")
	if s.byteAt(i) != ':' {
		return false
	}
	if s.declared < i { // each declaration is looked through once
		s.declared = len(s.line)
		if j := strings.IndexAny(s.line[i:], "{};"); j >= 0 {
			s.declared = i + j
		}
	}
	return s.byteAt(s.declared) != '{'
}

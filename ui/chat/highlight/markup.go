// HTML, XML and what stands inside of them: scripts, styles, PHP.

package highlight

import "strings"

// Where in markup a line may begin.
const (
	inText uint8 = iota // in a page of PHP: in PHP
	inTag
	inRemark // a comment
	inQuotes
	inApostrophes
	inData  // <![CDATA[
	outside // in a page of PHP: in the text
)

// between is the mode between tags.
func (s *scanner) between() uint8 {
	if s.lang.has(inPHP) {
		return outside
	}
	return inText
}

// markup reads a line of HTML or XML.
func (s *scanner) markup() {
	for s.at < len(s.line) {
		if s.lang.has(inPHP) && s.mode == inText && s.guest == nil {
			s.guest, s.until = &phpCode, "?>"
		}
		rest := s.line[s.at:]
		switch {
		case s.guest != nil && s.mode != inTag && s.mode != inQuotes && s.mode != inApostrophes:
			s.script()
		case s.mode == inRemark:
			s.through("-->", Comment)
		case s.mode == inData:
			s.through("]]>", String)
		case s.mode == inQuotes:
			if s.through(`"`, String); s.mode == s.between() {
				s.mode = inTag
			}
		case s.mode == inApostrophes:
			if s.through("'", String); s.mode == s.between() {
				s.mode = inTag
			}
		case s.mode == inTag:
			s.attribute()
		case rest[0] == '<':
			s.tagOpens()
		case rest[0] == '&':
			end := 1
			for end < len(rest) && end < 12 && (wordByte(rest[end]) && rest[end] < 0x80 || rest[end] == '#') {
				end++
			}
			if end < len(rest) && rest[end] == ';' {
				s.take(Type, s.at+end+1)
			} else {
				s.take(Text, s.at+1)
			}
		default:
			end := strings.IndexAny(rest, "<&")
			if end < 0 {
				end = len(rest)
			}
			s.take(Text, s.at+end)
		}
	}
}

// through takes all up to the end of what is open, and its end if it is in this line.
func (s *scanner) through(end string, kind Kind) {
	if i := strings.Index(s.line[s.at:], end); i >= 0 {
		s.take(kind, s.at+i+len(end))
		s.mode = s.between()
		return
	}
	s.rest(kind)
}

// tagOpens takes what begins with <.
func (s *scanner) tagOpens() {
	next := s.byteAt(s.at + 1)
	switch {
	case s.has("<!--"):
		s.take(Comment, s.at+4)
		s.mode = inRemark
	case s.has("<![CDATA["):
		s.take(Tag, s.at+9)
		s.mode = inData
	case (s.has("<?php") || s.has("<?=")) && !s.nested:
		s.guest, s.until, s.mode = &phpCode, "?>", inText
	case letter(next) || next == '/' || next == '!' || next == '?':
		end := s.at + 2
		for end < len(s.line) && (wordByte(s.line[end]) || strings.IndexByte(":.-", s.line[end]) >= 0) {
			end++
		}
		name := s.line[s.at+1 : end]
		s.take(Tag, end)
		s.mode = inTag
		if !s.nested && !s.lang.has(sections) {
			switch {
			case strings.EqualFold(name, "script"):
				s.guest, s.until = &javascript, "</script"
			case strings.EqualFold(name, "style"):
				s.guest, s.until = &css, "</style"
			}
		}
	default:
		s.take(Text, s.at+1)
	}
}

// attribute takes the next piece of a tag.
func (s *scanner) attribute() {
	switch c := s.line[s.at]; {
	case blank(c):
		s.take(Text, s.blanksEnd(s.at))
	case c == '>':
		s.take(Tag, s.at+1)
		s.mode = s.between()
	case s.has("/>") || s.has("?>"):
		s.take(Tag, s.at+2)
		s.mode = s.between()
		s.guest, s.until = nil, ""
	case c == '"':
		s.take(String, s.at+1)
		s.mode = inQuotes
	case c == '\'':
		s.take(String, s.at+1)
		s.mode = inApostrophes
	case wordByte(c) || c == '@' || c == ':' || c == '#' || c == '*' || c == '[' || c == '(':
		end := s.at + 1
		for end < len(s.line) && (wordByte(s.line[end]) || strings.IndexByte(":.-@#[]()*", s.line[end]) >= 0) {
			end++
		}
		kind := Key
		if s.byteAt(s.at-1) == '=' {
			kind = String
		}
		s.take(kind, end)
	default:
		s.take(Text, s.at+1)
	}
}

// script reads the guest up to its end, which is markup again.
func (s *scanner) script() {
	end := foldIndex(s.line[s.at:], s.until)
	if end < 0 {
		s.visit(len(s.line))
		return
	}
	s.visit(s.at + end)
	if s.until == "?>" {
		s.take(Tag, s.at+2)
	}
	s.leave()
	s.mode = s.between()
}

// foldIndex is the place of the small letters x in s, whatever letters s has.
func foldIndex(s, x string) int {
	for i := 0; i+len(x) <= len(s); i++ {
		if s[i] == x[0] && strings.EqualFold(s[i:i+len(x)], x) {
			return i
		}
	}
	return -1
}

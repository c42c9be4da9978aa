package jsondoc

// Splitting valid objects and arrays without copying: each level of a long request is scanned once.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
)

// Part is a member of an object with its original text as value.
type Part = Named[json.RawMessage]

// Parts are the members of an object in order, with unique names.
type Parts struct {
	List   []Part
	places map[string]int // in List, if there are many
}

// Get returns the member's value, nil if it is absent.
func (p *Parts) Get(name string) json.RawMessage {
	if i := indexOf(p.List, p.places, name); i >= 0 {
		return p.List[i].Value
	}
	return nil
}

func (p *Parts) set(name string, raw json.RawMessage) {
	if i := indexOf(p.List, p.places, name); i >= 0 {
		p.List[i].Value = raw
		return
	}
	appendMember(&p.List, &p.places, name, raw)
}

// Parts splits an object of at most most members. Names are case-sensitive; of a duplicate name the
// last value counts, at the place of the first. The values are parts of the field's own bytes.
func (f Field) Parts(most int) (*Parts, error) {
	s := scanner{raw: f.Raw}
	if !s.skip('{') {
		return nil, f.typeError("an object")
	}
	p := &Parts{List: make([]Part, 0, 3)} // as most have
	for !s.closes('}') {
		quoted, ok := s.value()
		if !ok || len(quoted) < 2 || quoted[0] != '"' || !s.skip(':') {
			return nil, f.typeError("an object")
		}
		raw, ok := s.value()
		if !ok {
			return nil, f.typeError("an object")
		}
		if p.set(unquote(quoted), raw); len(p.List) > most {
			return nil, f.typeError(fmt.Sprintf("an object of at most %d members", most))
		}
	}
	return p, nil
}

// Items are the items of an array, as parts of the field's own bytes; other values have none.
func (f Field) Items() iter.Seq2[int, Field] {
	return func(yield func(int, Field) bool) {
		for i, raw := range f.values() {
			if !yield(i, Field{raw, f.Path + "[" + strconv.Itoa(i) + "]"}) {
				return
			}
		}
	}
}

// Count returns the number of an array's items, up to most.
func (f Field) Count(most int) (n int) {
	for range f.values() {
		if n++; n == most {
			break
		}
	}
	return n
}

func (f Field) values() iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		s := scanner{raw: f.Raw}
		if !s.skip('[') {
			return
		}
		for i := 0; !s.closes(']'); i++ {
			if raw, ok := s.value(); !ok || !yield(i, raw) {
				return
			}
		}
	}
}

// scanner is a JSON text that is read starting at pos.
type scanner struct {
	raw []byte
	pos int
}

func (s *scanner) space() {
	for s.pos < len(s.raw) && (s.raw[s.pos] == ' ' || s.raw[s.pos] == '\n' ||
		s.raw[s.pos] == '\t' || s.raw[s.pos] == '\r') {
		s.pos++
	}
}

// skip skips one byte, which must be b.
func (s *scanner) skip(b byte) bool {
	s.space()
	if s.pos >= len(s.raw) || s.raw[s.pos] != b {
		return false
	}
	s.pos++
	return true
}

// closes reports whether the object or array ends here; it skips a comma before the next value.
func (s *scanner) closes(bracket byte) bool {
	s.space()
	if s.pos < len(s.raw) && s.raw[s.pos] == ',' {
		s.pos++
	}
	return s.skip(bracket)
}

func (s *scanner) value() (raw json.RawMessage, ok bool) {
	s.space()
	begin, depth := s.pos, 0
	for s.pos < len(s.raw) {
		switch b := s.raw[s.pos]; b {
		case '"':
			if !s.quoted() {
				return nil, false
			}
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ',', ':', ' ', '\t', '\r', '\n':
			s.pos++ // inside brackets
		default:
			s.word()
		}
		if depth <= 0 {
			return s.raw[begin:s.pos:s.pos], depth == 0
		}
	}
	return nil, false
}

func (s *scanner) quoted() bool {
	for i := s.pos + 1; ; {
		n := bytes.IndexByte(s.raw[i:], '"')
		if n < 0 {
			return false
		}
		i += n
		slashes := 0
		for s.raw[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			s.pos = i
			return true
		}
	}
}

func (s *scanner) word() {
	for s.pos < len(s.raw) {
		switch s.raw[s.pos] {
		case ',', ':', ' ', '\t', '\r', '\n', '{', '}', '[', ']', '"':
			return
		}
		s.pos++
	}
}

func unquote(quoted []byte) string {
	for _, b := range quoted {
		if b == '\\' || b >= 0x80 {
			var s string
			_ = json.Unmarshal(quoted, &s) // it is valid
			return s
		}
	}
	return string(quoted[1 : len(quoted)-1])
}

package jsondoc

// Splitting objects and arrays that are known to be valid JSON, without a copy of what they hold:
// each level of a long request is passed over once.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
)

// Part is a member of an object, its value as it is written.
type Part = Named[json.RawMessage]

// Parts are the members of an object, in their order, each name once.
type Parts struct {
	List   []Part
	places map[string]int // in List, where there are many
}

// Get is the member's value, nil where there is none.
func (p *Parts) Get(name string) json.RawMessage {
	if at := place(p.List, p.places, name); at >= 0 {
		return p.List[at].Value
	}
	return nil
}

// set gives a name its value.
func (p *Parts) set(name string, raw json.RawMessage) {
	if at := place(p.List, p.places, name); at >= 0 {
		p.List[at].Value = raw
		return
	}
	grow(&p.List, &p.places, name, raw)
}

// Parts splits an object of at most so many members. Names match in case; of a name that comes
// twice the last value counts, at the place of the first. The values are parts of the field's own
// bytes.
func (f Field) Parts(most int) (*Parts, error) {
	s := text{raw: f.Raw}
	if !s.skip('{') {
		return nil, f.wrong("an object")
	}
	p := &Parts{List: make([]Part, 0, 3)} // as most have
	for !s.closes('}') {
		quoted, ok := s.value()
		if !ok || len(quoted) < 2 || quoted[0] != '"' || !s.skip(':') {
			return nil, f.wrong("an object")
		}
		raw, ok := s.value()
		if !ok {
			return nil, f.wrong("an object")
		}
		if p.set(unquote(quoted), raw); len(p.List) > most {
			return nil, f.wrong(fmt.Sprintf("an object of at most %d members", most))
		}
	}
	return p, nil
}

// Items are the items of an array, each a part of the field's own bytes; of anything else there are
// none.
func (f Field) Items() iter.Seq2[int, Field] {
	return func(yield func(int, Field) bool) {
		for i, raw := range f.values() {
			if !yield(i, Field{raw, f.Path + "[" + strconv.Itoa(i) + "]"}) {
				return
			}
		}
	}
}

// Count is how many items an array has; no more than most are looked for.
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
		s := text{raw: f.Raw}
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

// text is a JSON text that is read from at on.
type text struct {
	raw []byte
	at  int
}

func (s *text) space() {
	for s.at < len(s.raw) && (s.raw[s.at] == ' ' || s.raw[s.at] == '\n' || s.raw[s.at] == '\t' ||
		s.raw[s.at] == '\r') {
		s.at++
	}
}

// skip passes over one byte, which must be b.
func (s *text) skip(b byte) bool {
	s.space()
	if s.at >= len(s.raw) || s.raw[s.at] != b {
		return false
	}
	s.at++
	return true
}

// closes tells whether the object or array ends here; a comma before the next value is passed over.
func (s *text) closes(bracket byte) bool {
	s.space()
	if s.at < len(s.raw) && s.raw[s.at] == ',' {
		s.at++
	}
	return s.skip(bracket)
}

// value passes over a value and returns it.
func (s *text) value() (raw json.RawMessage, ok bool) {
	s.space()
	begin, depth := s.at, 0
	for s.at < len(s.raw) {
		switch b := s.raw[s.at]; b {
		case '"':
			if !s.quoted() {
				return nil, false
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			s.at++ // inside of brackets
		default:
			s.word()
		}
		if depth <= 0 {
			return s.raw[begin:s.at:s.at], depth == 0
		}
	}
	return nil, false
}

// quoted passes over a string.
func (s *text) quoted() bool {
	for i := s.at + 1; ; {
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
			s.at = i
			return true
		}
	}
}

// word passes over a number, true, false or null.
func (s *text) word() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ',', ':', ' ', '\t', '\r', '\n', '{', '}', '[', ']', '"':
			return
		}
		s.at++
	}
}

// unquote decodes a string that is known to be one.
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

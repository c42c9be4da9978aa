// JSON as OpenAI's library reads and writes it, which the rendered text of a tool depends on.
//
// What encoding/json does not give: the order of an object's members, numbers printed as that library prints them, names
// that must match in case, an error for a name that comes twice. The dialect is that of Rust's serde_json.

package harmony

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type jsonKind uint8

const (
	jsonAbsent jsonKind = iota // no value: what get returns for a name that is not there
	jsonNull
	jsonFalse
	jsonTrue
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a boolean", "a number", "a string", "a list", "an object"}

func (k jsonKind) String() string { return kindNames[k] }

type jsonValue struct {
	kind    jsonKind
	text    string       // of a string; of a number as it is printed
	items   []jsonValue  // of an array
	members []jsonMember // of an object, each name once: in the place of its first value, with its last one
	twice   []jsonMember // earlier values of names that came more than once
	source  []byte       // the value as it was written
}

type jsonMember struct {
	name  string
	value jsonValue
}

// isTwice tells whether the name came more than once.
func (v jsonValue) isTwice(name string) bool {
	return slices.ContainsFunc(v.twice, func(m jsonMember) bool { return m.name == name })
}

// get returns the member of that name.
func (v jsonValue) get(name string) jsonValue {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return jsonValue{}
}

// jsonDepth is how deep arrays and objects may lie in each other.
const jsonDepth = 127

// parseJSON reads one value with nothing but white space around it. The result refers to b.
func parseJSON(b []byte) (jsonValue, error) {
	p := jsonParser{b: b}
	v, err := p.value(0)
	if err == nil {
		if p.space(); p.at < len(p.b) {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return jsonValue{}, fmt.Errorf("invalid JSON at byte %d: %w", p.at, err)
	}
	return v, nil
}

type jsonParser struct {
	b  []byte
	at int
}

var errJSONEnd = errors.New("it ends too early")

func (p *jsonParser) space() {
	for p.at < len(p.b) && strings.IndexByte(" \t\r\n", p.b[p.at]) >= 0 {
		p.at++
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *jsonParser) peek() byte {
	if p.space(); p.at < len(p.b) {
		return p.b[p.at]
	}
	return 0
}

func (p *jsonParser) value(depth int) (v jsonValue, err error) {
	c := p.peek()
	from := p.at
	switch {
	case c == '{' || c == '[':
		if depth == jsonDepth {
			return v, errors.New("it is nested too deep")
		}
		if c == '{' {
			err = p.object(&v, depth+1)
		} else {
			err = p.array(&v, depth+1)
		}
	case c == '"':
		v.kind = jsonString
		v.text, err = p.string()
	case c == '-' || c >= '0' && c <= '9':
		v.kind = jsonNumber
		v.text, err = p.number()
	default:
		v.kind, err = p.word()
	}
	v.source = p.b[from:p.at]
	return v, err
}

func (p *jsonParser) word() (jsonKind, error) {
	for _, w := range []struct {
		word string
		kind jsonKind
	}{{"null", jsonNull}, {"true", jsonTrue}, {"false", jsonFalse}} {
		if strings.HasPrefix(string(p.b[p.at:min(len(p.b), p.at+5)]), w.word) {
			p.at += len(w.word)
			return w.kind, nil
		}
	}
	if p.at == len(p.b) {
		return jsonAbsent, errJSONEnd
	}
	return jsonAbsent, errors.New("a value is expected")
}

func (p *jsonParser) array(v *jsonValue, depth int) error {
	v.kind = jsonArray
	p.at++
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		item, err := p.value(depth)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return nil
		default:
			return errors.New("a comma or ] is expected")
		}
	}
}

func (p *jsonParser) object(v *jsonValue, depth int) error {
	v.kind = jsonObject
	p.at++
	if p.peek() == '}' {
		p.at++
		return nil
	}
	places := map[string]int{}
	for {
		if p.peek() != '"' {
			return errors.New("a name is expected")
		}
		name, err := p.string()
		if err != nil {
			return err
		}
		if p.peek() != ':' {
			return errors.New("a colon is expected")
		}
		p.at++
		value, err := p.value(depth)
		if err != nil {
			return err
		}
		if i, ok := places[name]; ok {
			v.twice = append(v.twice, v.members[i])
			v.members[i].value = value
		} else {
			places[name] = len(v.members)
			v.members = append(v.members, jsonMember{name, value})
		}
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return nil
		default:
			return errors.New("a comma or } is expected")
		}
	}
}

// string reads a string. Lone surrogates and bytes that are not UTF-8 are errors.
func (p *jsonParser) string() (string, error) {
	p.at++
	from := p.at
	for p.at < len(p.b) && p.b[p.at] != '"' && p.b[p.at] != '\\' && p.b[p.at] >= ' ' {
		p.at++
	}
	s := append([]byte(nil), p.b[from:p.at]...)
	for {
		if p.at == len(p.b) {
			return "", errJSONEnd
		}
		c := p.b[p.at]
		p.at++
		switch {
		case c == '"':
			if !utf8.Valid(s) {
				return "", errors.New("a string is not UTF-8")
			}
			return string(s), nil
		case c < ' ':
			return "", errors.New("a control character in a string")
		case c != '\\':
			s = append(s, c)
		default:
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			s = utf8.AppendRune(s, r)
		}
	}
}

// escape reads what follows a backslash.
func (p *jsonParser) escape() (rune, error) {
	if p.at == len(p.b) {
		return 0, errJSONEnd
	}
	c := p.b[p.at]
	p.at++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, errors.New("an unknown escape in a string")
	}
	r, err := p.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if p.at+2 <= len(p.b) && p.b[p.at] == '\\' && p.b[p.at+1] == 'u' {
		p.at += 2
		low, err := p.hex()
		if err != nil {
			return 0, err
		}
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, nil
		}
	}
	return 0, errors.New("half a surrogate pair in a string")
}

func (p *jsonParser) hex() (rune, error) {
	if p.at+4 > len(p.b) {
		return 0, errJSONEnd
	}
	n, err := strconv.ParseUint(string(p.b[p.at:p.at+4]), 16, 16)
	if err != nil {
		return 0, errors.New("four hexadecimal digits are expected")
	}
	p.at += 4
	return rune(n), nil
}

// String writes the value without white space.
func (v jsonValue) String() string {
	var s strings.Builder
	v.write(&s)
	return s.String()
}

func (v jsonValue) write(s *strings.Builder) {
	switch v.kind {
	case jsonNull:
		s.WriteString("null")
	case jsonFalse:
		s.WriteString("false")
	case jsonTrue:
		s.WriteString("true")
	case jsonNumber:
		s.WriteString(v.text)
	case jsonString:
		writeJSONString(s, v.text)
	case jsonArray:
		s.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				s.WriteByte(',')
			}
			item.write(s)
		}
		s.WriteByte(']')
	case jsonObject:
		s.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				s.WriteByte(',')
			}
			writeJSONString(s, m.name)
			s.WriteByte(':')
			m.value.write(s)
		}
		s.WriteByte('}')
	}
}

// writeJSONString escapes what must be escaped and nothing else.
func writeJSONString(s *strings.Builder, text string) {
	s.WriteByte('"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		s.WriteString(text[from:i])
		from = i + 1
		if k := strings.IndexByte("\"\\\b\f\n\r\t", c); k >= 0 {
			s.WriteByte('\\')
			s.WriteByte(`"\bfnrt`[k])
		} else {
			fmt.Fprintf(s, "\\u%04x", c)
		}
	}
	s.WriteString(text[from:])
	s.WriteByte('"')
}

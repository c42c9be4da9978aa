package jsondoc

// Reading a document. There are two dialects: that of OpenAI's library (Rust's serde_json), which
// the rendered text of a tool depends on, and that of encoding/json, which accepts what serde
// refuses.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Dialect defines what a document may contain where readers differ.
type Dialect struct {
	Depth  int  // maximum nesting of arrays and objects
	Strict bool // as serde_json: no lone surrogates, only UTF-8, numbers as printed
}

var (
	// Serde is the dialect of OpenAI's library.
	Serde = Dialect{Depth: 127, Strict: true}
	// Lenient accepts what encoding/json accepts, nested at most 512 deep: invalid characters
	// become U+FFFD and numbers are unchanged.
	Lenient = Dialect{Depth: 512}
)

// Parse reads one value with only white space around it.
func Parse(text []byte, d Dialect) (*Value, error) {
	p := parser{s: string(text), Dialect: d}
	v, err := p.value(0)
	if err == nil {
		if p.space(); p.pos < len(p.s) {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("invalid JSON at byte %d: %w", p.pos, err)
	}
	return v, nil
}

type parser struct {
	Dialect
	s    string
	pos  int
	pool []Value // values are allocated many at a time
}

var errEnd = errors.New("it ends too early")

func (p *parser) space() {
	for ; p.pos < len(p.s); p.pos++ {
		if c := p.s[p.pos]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.space(); p.pos < len(p.s) {
		return p.s[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) (_ *Value, err error) {
	if len(p.pool) == 0 {
		p.pool = make([]Value, min(64, 1+(len(p.s)-p.pos)/32))
	}
	c, v := p.peek(), &p.pool[0]
	p.pool = p.pool[1:]
	from := p.pos
	switch {
	case c == '{' || c == '[':
		if depth == p.Depth {
			return nil, fmt.Errorf("it is nested deeper than %d", p.Depth)
		}
		if c == '{' {
			err = p.object(v, depth+1)
		} else {
			err = p.array(v, depth+1)
		}
	case c == '"':
		v.Kind = String
		v.Text, err = p.string()
	case c == '-' || c >= '0' && c <= '9':
		v.Kind = Number
		if v.Text, err = p.number(); !p.Strict && (err == nil || errors.Is(err, errNumberRange)) {
			v.Text, err = p.s[from:p.pos], nil
		}
	default:
		v.Kind, v.Truth, err = p.word()
	}
	v.Source = p.s[from:p.pos]
	return v, err
}

func (p *parser) word() (Kind, bool, error) {
	rest := p.s[p.pos:]
	for _, w := range [...]string{"null", "true", "false"} {
		if strings.HasPrefix(rest, w) {
			p.pos += len(w)
			if w == "null" {
				return Null, false, nil
			}
			return Bool, w == "true", nil
		}
	}
	if rest == "" {
		return Absent, false, errEnd
	}
	return Absent, false, errors.New("a value is expected")
}

// next reads the comma after an item, or the end of the list.
func (p *parser) next(end byte) (done bool, err error) {
	switch c := p.peek(); c {
	case ',', end:
		p.pos++
		return c == end, nil
	}
	return false, fmt.Errorf("a comma or %c is expected", end)
}

func (p *parser) array(v *Value, depth int) error {
	v.Kind = Array
	p.pos++
	if p.peek() == ']' {
		p.pos++
		return nil
	}
	for {
		item, err := p.value(depth)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
		if done, err := p.next(']'); done || err != nil {
			return err
		}
	}
}

func (p *parser) object(v *Value, depth int) error {
	v.Kind = Object
	p.pos++
	if p.peek() == '}' {
		p.pos++
		return nil
	}
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
		p.pos++
		value, err := p.value(depth)
		if err != nil {
			return err
		}
		v.add(name, value)
		if done, err := p.next('}'); done || err != nil {
			return err
		}
	}
}

// string reads a string. Without escapes it is a part of the document's text.
func (p *parser) string() (string, error) {
	p.pos++
	from := p.pos
	for p.pos < len(p.s) && p.s[p.pos] != '"' && p.s[p.pos] != '\\' && p.s[p.pos] >= ' ' {
		p.pos++
	}
	if p.pos < len(p.s) && p.s[p.pos] == '"' {
		p.pos++
		return p.utf8(p.s[from : p.pos-1])
	}
	s := append([]byte(nil), p.s[from:p.pos]...)
	for {
		if p.pos == len(p.s) {
			return "", errEnd
		}
		c := p.s[p.pos]
		p.pos++
		switch {
		case c == '"':
			return p.utf8(string(s))
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

func (p *parser) utf8(s string) (string, error) {
	switch {
	case utf8.ValidString(s):
		return s, nil
	case p.Strict:
		return "", errors.New("a string is not UTF-8")
	}
	return string([]rune(s)), nil // each invalid byte becomes one U+FFFD
}

func (p *parser) escape() (rune, error) {
	if p.pos == len(p.s) {
		return 0, errEnd
	}
	c := p.s[p.pos]
	p.pos++
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
	if strings.HasPrefix(p.s[p.pos:], `\u`) {
		start := p.pos
		p.pos += 2
		low, err := p.hex()
		if err != nil {
			return 0, err
		}
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, nil
		}
		p.pos = start
	}
	if !p.Strict {
		return utf8.RuneError, nil
	}
	return 0, errors.New("half a surrogate pair in a string")
}

func (p *parser) hex() (rune, error) {
	if p.pos+4 > len(p.s) {
		return 0, errEnd
	}
	n, err := strconv.ParseUint(p.s[p.pos:p.pos+4], 16, 16)
	if err != nil {
		return 0, errors.New("four hexadecimal digits are expected")
	}
	p.pos += 4
	return rune(n), nil
}

// Reading a request field by field.
//
// A client that sends a wrong type must be told which one: "messages[2].content" and not "cannot unmarshal". So bodies
// are split one level at a time and every value knows its path. The first complaint of a request sticks; readers after
// it return zero values, which lets a parser be written straight down without an if after every line.
//
// What must stay true: null and an absent member are the same; members nobody asks for are never looked at, so
// unknown fields are ignored; the bytes of a schema are passed on as they came, key order included.

package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
)

// maxBody is the largest request body: 64 MiB.
const maxBody = 64 << 20

// complaints holds the first fault found in a request.
type complaints struct{ first *fault }

func (c *complaints) add(f *fault) {
	if c.first == nil {
		c.first = f
	}
}

// value is one JSON value and where it stands.
type value struct {
	raw  json.RawMessage
	path string
	c    *complaints
}

// object is a JSON object split into its members. A nil *object has no members.
type object struct {
	members map[string]json.RawMessage
	path    string
	c       *complaints
}

// readBody reads a request body that must be one JSON object.
func readBody(w http.ResponseWriter, r *http.Request) (*object, *fault) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &fault{status: http.StatusRequestEntityTooLarge, kind: kindInvalid, code: "request_too_large",
			message: fmt.Sprintf("the request body is larger than %d MiB", maxBody>>20)}
	case err != nil:
		return nil, invalid("", "the request body could not be read: %v", err)
	}
	return parseObject(b)
}

func parseObject(b []byte) (*object, *fault) {
	if err := json.Unmarshal(b, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line, column := position(b, syntax.Offset)
			return nil, invalid("", "the request body is not valid JSON: %s at line %d, column %d (byte %d)", syntax, line, column, syntax.Offset)
		}
		return nil, invalid("", "the request body is not valid JSON: %v", err)
	}
	c := &complaints{}
	o := value{raw: b, c: c}.object()
	return o, c.first
}

// position counts lines and columns from one; offset is the number of bytes read when the error was found.
func position(b []byte, offset int64) (line, column int) {
	before := b[:max(0, min(offset-1, int64(len(b))))]
	return bytes.Count(before, []byte{'\n'}) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// kind is the first byte of the value: '{', '[', '"', 't' or 'f', '0' for numbers, 'n' for null and absent ones.
func (v value) kind() byte {
	s := bytes.TrimLeft(v.raw, " \t\r\n")
	if len(s) == 0 {
		return 'n'
	}
	if s[0] == '-' || s[0] >= '0' && s[0] <= '9' {
		return '0'
	}
	return s[0]
}

func (v value) name() string {
	switch v.kind() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case '0':
		return "a number"
	}
	return "null"
}

func (v value) wrong(want string) {
	where := v.path
	if where == "" {
		where = "the request body"
	}
	v.c.add(&fault{status: http.StatusBadRequest, kind: kindInvalid, code: "invalid_type", param: v.path,
		message: fmt.Sprintf("invalid type for %s: expected %s, but got %s", where, want, v.name())})
}

func (v value) object() *object {
	if v.kind() != '{' {
		v.wrong("an object")
		return nil
	}
	o := &object{path: v.path, c: v.c}
	if err := json.Unmarshal(v.raw, &o.members); err != nil {
		v.c.add(invalid(v.path, "%v", err))
	}
	return o
}

func (v value) list() []value {
	if v.kind() != '[' {
		v.wrong("an array")
		return nil
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(v.raw, &raws); err != nil {
		v.c.add(invalid(v.path, "%v", err))
	}
	list := make([]value, len(raws))
	for i, raw := range raws {
		list[i] = value{raw: raw, path: fmt.Sprintf("%s[%d]", v.path, i), c: v.c}
	}
	return list
}

func (v value) text() string {
	var s string
	if v.kind() != '"' || json.Unmarshal(v.raw, &s) != nil {
		v.wrong("a string")
	}
	return s
}

// has tells whether a member is there and not null.
func (o *object) has(name string) bool { return o.get(name).kind() != 'n' }

// get is the member's value; one that is absent is null.
func (o *object) get(name string) value {
	if o == nil {
		return value{path: name, c: &complaints{}}
	}
	return value{raw: o.members[name], path: o.at(name), c: o.c}
}

// at is the path of a member.
func (o *object) at(name string) string {
	if o == nil || o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o *object) text(name string) string {
	if !o.has(name) {
		return ""
	}
	return o.get(name).text()
}

// object is nil where the member is absent.
func (o *object) object(name string) *object {
	if !o.has(name) {
		return nil
	}
	return o.get(name).object()
}

func (o *object) list(name string) []value {
	if !o.has(name) {
		return nil
	}
	return o.get(name).list()
}

func (o *object) boolean(name string, otherwise bool) bool {
	if !o.has(name) {
		return otherwise
	}
	v := o.get(name)
	var b bool
	if json.Unmarshal(v.raw, &b) != nil {
		v.wrong("a boolean")
		return otherwise
	}
	return b
}

// number reads a number of [low, high].
func (o *object) number(name string, low, high, otherwise float64) float64 {
	if !o.has(name) {
		return otherwise
	}
	v := o.get(name)
	var f float64
	if v.kind() != '0' || json.Unmarshal(v.raw, &f) != nil {
		v.wrong("a number")
		return otherwise
	}
	if f < low || f > high {
		o.c.add(invalid(v.path, "%s is %s, it must be between %s and %s", v.path, v.raw, plain(low), plain(high)))
		return otherwise
	}
	return f
}

// integer reads a whole number of [low, high]; 5.0 is one too.
func (o *object) integer(name string, low, high, otherwise int) int {
	if !o.has(name) {
		return otherwise
	}
	v := o.get(name)
	var f float64
	if v.kind() != '0' || json.Unmarshal(v.raw, &f) != nil || f != math.Trunc(f) {
		v.wrong("an integer")
		return otherwise
	}
	if f < float64(low) || f > float64(high) {
		o.c.add(invalid(v.path, "%s is %s, it must be between %d and %d", v.path, v.raw, low, high))
		return otherwise
	}
	return int(f)
}

// seed reads 64 bits, signed or not.
func (o *object) seed(name string) (uint64, bool) {
	if !o.has(name) {
		return 0, false
	}
	v := o.get(name)
	s := string(bytes.TrimSpace(v.raw))
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(i), true
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, true
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return uint64(int64(f)), true
	}
	v.wrong("an integer of 64 bits")
	return 0, false
}

func plain(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

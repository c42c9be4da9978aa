// Reading a request field by field.
//
// A client that sends a wrong type must be told which one: "messages[2].content" and not "cannot
// unmarshal". So bodies are split one level at a time and every value knows its path. The first
// complaint of a request sticks; readers after it return zero values, which lets a parser be
// written straight down without an if after every line.
//
// What must stay true: null and an absent member are the same; members nobody asks for are never
// looked at, so unknown fields are ignored; the bytes of a schema are passed on as they came, key
// order included.

package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ossrun/ossrun/harmony/jsondoc"
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
		return nil, &fault{status: http.StatusRequestEntityTooLarge, kind: kindInvalid,
			code:    "request_too_large",
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
			return nil, invalid("", "the request body is not valid JSON: %s at line %d, column "+
				"%d (byte %d)", syntax, line, column, syntax.Offset)
		}
		return nil, invalid("", "the request body is not valid JSON: %v", err)
	}
	c := &complaints{}
	o := value{raw: b, c: c}.object()
	return o, c.first
}

// position counts lines and columns from one; offset is the number of bytes read when the error was
// found.
func position(b []byte, offset int64) (line, column int) {
	before := b[:max(0, min(offset-1, int64(len(b))))]
	return bytes.Count(before, []byte{'\n'}) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// kind is the first byte of the value: '{', '[', '"', 't' or 'f', '0' for numbers, 'n' for null and
// absent ones.
func (v value) kind() byte { return "nnt0\"[{"[v.field().Kind()] }

func (v value) field() jsondoc.Field { return jsondoc.Field{Raw: v.raw, Path: v.path} }

// take is what was read, or instead after a complaint.
func take[T any](c *complaints, instead T) func(T, error) T {
	return func(got T, err error) T {
		var e *jsondoc.FieldError
		if !errors.As(err, &e) {
			return got
		}
		if e.Want != "" {
			value{e.Raw, e.Path, c}.wrong(e.Want)
		} else {
			c.add(invalid(e.Path, "%s", e))
		}
		return instead
	}
}

// kindNames are JSON's types as OpenAI's messages call them.
var kindNames = [...]string{"null", "null", "a boolean", "a number", "a string", "an array",
	"an object"}

func (v value) wrong(want string) {
	where := v.path
	if where == "" {
		where = "the request body"
	}
	v.c.add(&fault{status: http.StatusBadRequest, kind: kindInvalid, code: "invalid_type",
		param: v.path,
		message: fmt.Sprintf("invalid type for %s: expected %s, but got %s", where, want,
			kindNames[v.field().Kind()])})
}

func (v value) object() *object {
	members, err := v.field().Members()
	if err != nil {
		return take[*object](v.c, nil)(nil, err)
	}
	return &object{members: members, path: v.path, c: v.c}
}

func (v value) list() []value {
	var list []value
	for _, f := range take[[]jsondoc.Field](v.c, nil)(v.field().Items()) {
		list = append(list, value{raw: f.Raw, path: f.Path, c: v.c})
	}
	return list
}

func (v value) text() string { return take(v.c, "")(v.field().Text()) }

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
	return take(o.c, otherwise)(o.get(name).field().Bool())
}

// number reads a number of [low, high].
func (o *object) number(name string, low, high, otherwise float64) float64 {
	if !o.has(name) {
		return otherwise
	}
	return take(o.c, otherwise)(o.get(name).field().Number(low, high))
}

// integer reads a whole number of [low, high]; 5.0 is one too.
func (o *object) integer(name string, low, high, otherwise int) int {
	if !o.has(name) {
		return otherwise
	}
	return take(o.c, otherwise)(o.get(name).field().Integer(low, high))
}

// seed reads 64 bits, signed or not.
func (o *object) seed(name string) (uint64, bool) {
	if !o.has(name) {
		return 0, false
	}
	n, err := o.get(name).field().Bits()
	return take(o.c, uint64(0))(n, err), err == nil
}

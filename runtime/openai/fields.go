// Reading a request field by field.
//
// A client that sends a wrong type must be told in which field: "messages[2].content", not "cannot
// unmarshal". So a body is split one level at a time, and every value knows its path (package
// jsondoc). Only the first complaint of a request is kept. Readers return zero values for what is
// wrong, so a parser needs no if after every line.
//
// What must stay true: null and an absent member mean the same; unknown members are ignored; the
// bytes of a schema are passed on unchanged, with the order of its keys. The request's own members
// that were never read are known (unread), so that the client can be told.

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
)

// What one request may be made of: far more than any context holds, and little enough that each
// piece may be read into a value of its own.
const (
	// mostItems bounds the items of all lists of a request, counted each time a list is read.
	mostItems = 1 << 17
	// mostMessages is how many messages or items of input a request has.
	mostMessages = 1 << 15
	mostMembers  = 1 << 16 // of an object

	// tooLong is the code of a list that is too long and is not the conversation
	tooLong = "array_above_max_length"
)

// complaints holds the first fault found in a request.
type complaints struct {
	first  *fault
	items  int             // of lists that were read
	images bool            // images are left out with a note, instead of a fault
	ctx    context.Context // of the request; it ends when the client has left
}

// add adds a fault; nil is none.
func (c *complaints) add(f *fault) {
	if c.first == nil {
		c.first = f
	}
}

// value is one JSON value of a request.
type value struct {
	jsondoc.Field
	c *complaints
}

// object is a JSON object split into its members. A nil *object has no members.
type object struct {
	members *jsondoc.Parts
	raw     json.RawMessage
	path    string
	c       *complaints
	seen    map[string]bool // members that were read; nil: nobody asks
}

func parseObject(b []byte) (*object, *fault) { return parseFor(context.Background(), b) }

// parseFor is parseObject for a request. What is no UTF-8 is refused: it is no JSON, and a byte
// that became U+FFFD would be three.
func parseFor(ctx context.Context, b []byte) (*object, *fault) {
	if !utf8.Valid(b) {
		at, _ := token.ScanUTF8(b)
		line, column := position(b, int64(at)+1)
		return nil, invalid("", "the request body is not valid JSON: it is not UTF-8: %#02x at "+
			"line %d, column %d (byte %d)", b[at], line, column, at+1)
	}
	if !json.Valid(b) {
		err := json.Unmarshal(b, new(json.RawMessage)) // its error says where
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line, column := position(b, syntax.Offset)
			return nil, invalid("", "the request body is not valid JSON: %s at line %d, column "+
				"%d (byte %d)", syntax, line, column, syntax.Offset)
		}
		return nil, invalid("", "the request body is not valid JSON: %v", err)
	}
	c := &complaints{ctx: ctx}
	o := value{jsondoc.Field{Raw: b}, c}.object()
	if o != nil {
		o.seen = map[string]bool{}
	}
	return o, c.first
}

// position counts lines and columns from one; offset is the number of bytes read when the error was
// found.
func position(b []byte, offset int64) (line, column int) {
	before := b[:max(0, min(offset-1, int64(len(b))))]
	return bytes.Count(before, []byte{'\n'}) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// gone tells whether nobody waits for the request any more. That becomes its fault, and the rest of
// it is not read.
func (c *complaints) gone() bool {
	err := c.ctx.Err()
	if err != nil {
		c.add(faultOf(err, ""))
	}
	return err != nil
}

// fault is the first complaint about the request, nil if there is none.
func (o *object) fault() *fault { return o.c.first }

// insist makes a fault the first one, whatever was said before.
func (o *object) insist(f *fault) { o.c.first = f }

// ctx is the request's; it ends when the client has left.
func (o *object) ctx() context.Context { return o.c.ctx }

// leavesImagesOut tells that images are left out with a note, instead of a fault.
func (o *object) leavesImagesOut() bool { return o.c.images }

// watch makes unread tell which members nobody has read from now on.
func (o *object) watch() { o.seen = map[string]bool{} }

// seenNames are the members that were read.
func (o *object) seenNames() []string { return slices.Collect(maps.Keys(o.seen)) }

// values are stored items, read in place of what stands at path.
func (o *object) values(items []json.RawMessage, path string) []value {
	return valuesOf(o.c, items, path)
}

// storedValues are values about which nobody hears a complaint.
func storedValues(ctx context.Context, items []json.RawMessage, path string) []value {
	return valuesOf(&complaints{ctx: ctx}, items, path)
}

func valuesOf(c *complaints, items []json.RawMessage, path string) (list []value) {
	for _, raw := range items {
		list = append(list, value{jsondoc.Field{Raw: raw, Path: path}, c})
	}
	return list
}

// becomes is another value in the same place.
func (v value) becomes(raw json.RawMessage) value {
	return value{jsondoc.Field{Raw: raw, Path: v.Path}, v.c}
}

// complain adds a fault; nil is none.
func (v value) complain(f *fault) { v.c.add(f) }

// read reads a value by one of Field's methods. A value that is wrong becomes a complaint, and
// instead is returned.
func read[T any](v value, by func(jsondoc.Field) (T, error), instead T) T {
	got, err := by(v.Field)
	e, wrong := errors.AsType[*jsondoc.FieldError](err)
	switch {
	case !wrong:
		return got
	case e.Want != "":
		value{e.Field, v.c}.wrong(e.Want)
	default:
		v.c.add(invalid(e.Path, "%s", e))
	}
	return instead
}

// member reads the member with this name; instead also stands for an absent one.
func member[T any](o *object, name string, by func(jsondoc.Field) (T, error), instead T) T {
	if !o.has(name) {
		return instead
	}
	return read(o.get(name), by, instead)
}

// kindNames are JSON's types as OpenAI's messages call them.
var kindNames = [...]string{"null", "null", "a boolean", "a number", "a string", "an array",
	"an object"}

// wrong complains that the value has another type than the one that is wanted.
func (v value) wrong(want string) {
	where := v.Path
	if where == "" {
		where = "the request body"
	}
	v.c.add(refusal(http.StatusBadRequest, v.Path, "invalid_type",
		fmt.Sprintf("invalid type for %s: expected %s, but got %s", where, want,
			kindNames[v.Kind()])))
}

// invalid complains about the value; what is said stands behind its path.
func (v value) invalid(format string, a ...any) {
	v.c.add(invalid(v.Path, "%s", v.Path+fmt.Sprintf(format, a...)))
}

// must complains about a word, absent or not, that is none of those that are known.
func (v value) must(be string) {
	word := ""
	if v.Kind() != jsondoc.Null {
		word = v.text()
	}
	v.invalid(" is %q, it must be %s", word, be)
}

func (v value) missing() { v.c.add(missing(v.Path)) }

func (v value) unsupported(what, instead string) { v.c.add(unsupported(v.Path, what, instead)) }

// unreadable complains about a part of a message whose type is not one that is read.
func (o *object) unreadable(instead string) {
	o.get("type").unsupported(fmt.Sprintf("content of type %q", o.text("type")), instead)
}

// object is nil where the value is not an object.
func (v value) object() *object {
	if v.c.gone() {
		return nil
	}
	members := read(v, func(f jsondoc.Field) (*jsondoc.Parts, error) {
		return f.Parts(mostMembers)
	}, nil)
	if members == nil {
		return nil
	}
	return &object{members: members, raw: v.Raw, path: v.Path, c: v.c}
}

// list is the items of an array; none if the value is not an array, or one that is too long.
func (v value) list() []value { return v.listOf(mostItems, tooLong) }

func (v value) messages() []value { return v.listOf(mostMessages, codeContextLength) }

func (v value) listOf(most int, code string) []value {
	if v.c.gone() {
		return nil
	}
	if v.Kind() != jsondoc.Array {
		v.wrong("an array")
		return nil
	}
	left := mostItems - v.c.items
	n := v.Count(min(most, left) + 1)
	if n > min(most, left) {
		if left < most { // other lists have used up the rest
			code = tooLong
		}
		v.tooMany(code)
		return nil
	}
	v.c.items += n
	list := make([]value, 0, n)
	for _, f := range v.Items() {
		list = append(list, value{f, v.c})
	}
	return list
}

func textsOf(list []value) (texts []string) {
	for _, v := range list {
		texts = append(texts, v.text())
	}
	return texts
}

func (v value) tooMany(code string) {
	v.c.add(refusal(http.StatusBadRequest, v.Path, code, fmt.Sprintf("%s is too long: a request "+
		"has at most %d messages or items of input, calls included, and %d items in all its lists",
		v.Path, mostMessages, mostItems)))
}

func (v value) text() string { return read(v, jsondoc.Field.Text, "") }

// has tells whether a member is there and not null.
func (o *object) has(name string) bool { return o.get(name).Kind() != jsondoc.Null }

// need is has, and complains about a member that is absent.
func (o *object) need(name string) bool {
	if !o.has(name) {
		o.get(name).missing()
	}
	return o.has(name)
}

// get is the member's value; one that is absent is null.
func (o *object) get(name string) value {
	if o == nil {
		return value{jsondoc.Field{Path: name}, &complaints{ctx: context.Background()}}
	}
	if o.seen != nil {
		o.seen[name] = true
	}
	return value{jsondoc.Field{Raw: o.members.Get(name), Path: o.at(name)}, o.c}
}

// value is the object itself, to be complained about.
func (o *object) value() value { return value{jsondoc.Field{Raw: o.raw, Path: o.path}, o.c} }

func (o *object) at(name string) string {
	if o == nil || o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o *object) text(name string) string { return member(o, name, jsondoc.Field.Text, "") }

// object is nil where the member is absent.
func (o *object) object(name string) *object {
	if !o.has(name) {
		return nil
	}
	return o.get(name).object()
}

// inner is the member that holds what o says, where it is nested, as in chat completions; else o.
func (o *object) inner(name string) *object {
	if o.has(name) {
		return o.object(name)
	}
	return o
}

func (o *object) list(name string) []value {
	if !o.has(name) {
		return nil
	}
	return o.get(name).list()
}

func (o *object) boolean(name string, otherwise bool) bool {
	return member(o, name, jsondoc.Field.Bool, otherwise)
}

// flag is a boolean member that is false where it, or the whole object, is absent.
func (o *object) flag(name string) bool { return o.boolean(name, false) }

func (o *object) number(name string, low, high, otherwise float64) float64 {
	return member(o, name, func(f jsondoc.Field) (float64, error) { return f.Number(low, high) },
		otherwise)
}

// integer reads a whole number of [low, high]; 5.0 is one too.
func (o *object) integer(name string, low, high, otherwise int) int {
	return member(o, name, func(f jsondoc.Field) (int, error) { return f.Integer(low, high) },
		otherwise)
}

// complain adds a fault. A nil object was complained about when it was read.
func (o *object) complain(f *fault) {
	if o != nil {
		o.c.add(f)
	}
}

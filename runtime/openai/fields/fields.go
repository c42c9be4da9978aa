// Package fields reads a request field by field.
//
// A client that sends a wrong type must learn in which field: "messages[2].content", not "cannot
// unmarshal". So a body is split one level at a time, and every value knows its path (package
// jsondoc). Only the first fault of a request is kept. Readers return zero values for wrong ones,
// so a parser needs no if after every line.
//
// What must stay true: null and an absent member mean the same; unknown members are ignored; the
// bytes of a schema are passed on unchanged, with the order of its keys. The request's own members
// that were never read are known (Unread), so that the client can be told.
package fields

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
)

// Limits of one request: far more than any context holds, and small enough that each piece may be
// decoded separately.
const (
	// maxItems bounds the items of all lists of a request, counted each time a list is read.
	maxItems = 1 << 17
	// maxMessages bounds the messages or items of input of a request.
	maxMessages = 1 << 15
	maxMembers  = 1 << 16 // of an object

	// codeTooLong is the code of a list that is too long and is not the conversation
	codeTooLong = "array_above_max_length"
)

type firstFault struct {
	first  *Fault
	items  int             // of lists that were read
	images bool            // messages of images only are read as a note
	past   bool            // the values are history
	notes  []string        // see Note
	owner  string          // of the stored records that it names
	ctx    context.Context // of the request; it ends when the client disconnects
}

func (c *firstFault) add(f *Fault) {
	if c.first == nil {
		c.first = f
	}
}

// Value is one JSON value of a request.
type Value struct {
	jsondoc.Field
	c *firstFault
}

// Object is a JSON object split into its members. A nil *Object has no members.
type Object struct {
	members *jsondoc.Parts
	raw     json.RawMessage
	path    string
	c       *firstFault
	// for Unread: members that were read, and the known members of nested ones
	seen  map[string]bool
	inner map[string][]string
}

func ParseObject(b []byte) (*Object, *Fault) {
	return ParseRequest(context.Background(), b, "", false)
}

// ParseRequest is ParseObject for a request, which may name stored records of owner. Invalid UTF-8
// is refused: it is no JSON, and each bad byte would become the three bytes of U+FFFD.
func ParseRequest(ctx context.Context, b []byte, owner string, ignoreImages bool) (*Object,
	*Fault) {
	b = jsondoc.StripBOM(b)
	if !utf8.Valid(b) {
		offset, _ := token.ScanUTF8(b)
		line, column := position(b, int64(offset)+1)
		return nil, Invalid("", "the request body is not valid JSON: it is not UTF-8: %#02x at "+
			"line %d, column %d (byte %d)", b[offset], line, column, offset+1)
	}
	if !json.Valid(b) {
		err := json.Unmarshal(b, new(json.RawMessage)) // its error says where
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line, column := position(b, syntax.Offset)
			what := "it ends"
			if !strings.HasSuffix(syntax.Error(), "end of JSON input") {
				char, _ := utf8.DecodeRune(b[syntax.Offset-1:])
				what = fmt.Sprintf("unexpected %q", char)
			}
			return nil, Invalid("", "the request body is not valid JSON: %s at line %d, column "+
				"%d (byte %d)", what, line, column, syntax.Offset)
		}
		return nil, Invalid("", "the request body is not valid JSON: %v", err)
	}
	c := &firstFault{ctx: ctx, owner: owner, images: ignoreImages}
	return Value{jsondoc.Field{Raw: b}, c}.Object(), c.first
}

// position counts lines and columns from one; offset is the number of bytes read when the error was
// found.
func position(b []byte, offset int64) (line, column int) {
	prefix := b[:max(0, min(offset-1, int64(len(b))))]
	return bytes.Count(prefix, []byte{'\n'}) + 1, len(prefix) - bytes.LastIndexByte(prefix, '\n')
}

// isCancelled tells whether the client has disconnected. That becomes the fault, and the rest of
// the request is not read.
func (c *firstFault) isCancelled() bool {
	err := c.ctx.Err()
	if err != nil {
		c.add(FaultOf(err, ""))
	}
	return err != nil
}

// Owner owns the stored records that the request may name.
func (o *Object) Owner() string { return o.c.owner }

// Fault is the first fault of the request, nil if there is none.
func (o *Object) Fault() *Fault { return o.c.first }

func (o *Object) ReplaceFault(f *Fault) { o.c.first = f }

func (o *Object) Ctx() context.Context { return o.c.ctx }

// IgnoresImages tells that a message of images only is read as a note.
func (o *Object) IgnoresImages() bool { return o.c.images }

// Values are stored items, read in place of the value at path.
func (o *Object) Values(items []json.RawMessage, path string) []Value {
	return valuesOf(o.c, items, path)
}

// StoredValues are values whose faults are ignored.
func StoredValues(ctx context.Context, items []json.RawMessage, path string) []Value {
	return valuesOf(&firstFault{ctx: ctx, past: true}, items, path)
}

func valuesOf(c *firstFault, items []json.RawMessage, path string) (list []Value) {
	for _, raw := range items {
		list = append(list, Value{jsondoc.Field{Raw: raw, Path: path}, c})
	}
	return list
}

// IgnoreFaults passes the value to read without its faults, which the client need not correct.
func (v Value) IgnoreFaults(read func(v Value)) {
	c := &firstFault{ctx: v.c.ctx, items: v.c.items, past: true}
	read(Value{v.Field, c})
	v.c.items = c.items
	v.c.isCancelled()
}

// Try returns the fault of what read reads, which the caller may replace by a note. A request that
// is too large or was cancelled keeps its fault.
func (v Value) Try(read func()) *Fault {
	if v.c.isCancelled() {
		return v.c.first
	}
	first := v.c.first
	v.c.first = nil
	read()
	f := v.c.first
	if v.c.first = first; first == nil && f != nil && (f.Status == StatusClientGone ||
		f.Code == CodeContextLength || f.Code == codeTooLong) {
		v.c.first = f
	}
	return f
}

// Note records a part of the request of which the model reads only a note.
func (v Value) Note(kind string) {
	if len(v.c.notes) < maxNotes {
		v.c.notes = append(v.c.notes, v.Path+": "+kind)
	}
}

// maxNotes is more than fit in a header.
const maxNotes = 100

func (o *Object) Notes() []string { return o.c.notes }

// ReadDated reads the messages of a list in order. All but the user's last one are history, whose
// faults are ignored: a client cannot correct them, and sends them with every request.
func ReadDated(list []Value, read func(i int, v Value)) {
	newest := len(list) - 1
	if newest >= 0 && isResult(list[newest]) {
		newest = -1
	}
	for i, v := range slices.Backward(list) {
		if isUsers(v) {
			newest = i
			break
		}
	}
	for i, v := range list {
		if i == newest {
			read(i, v)
			continue
		}
		if kind := v.Kind(); kind == jsondoc.String || kind == jsondoc.Number {
			v.Raw = slices.Concat([]byte(`{"role":"user","content":`), v.Raw, []byte("}"))
		}
		v.c.past = true
		v.Try(func() { read(i, v) })
		v.c.past = false
	}
}

// isResult tells whether a message or item is a tool's result. A list that ends with one and has no
// user's message continues an agent's work.
func isResult(v Value) (is bool) {
	v.IgnoreFaults(func(v Value) {
		m := v.Object()
		role := m.Text("role")
		is = role == "tool" || role == "function" || strings.HasSuffix(m.Text("type"), "_output")
	})
	return is
}

// isUsers tells whether a message or item is the user's. Anthropic's API has results of tools in
// the user's role too.
func isUsers(v Value) (is bool) {
	v.IgnoreFaults(func(v Value) {
		m := v.Object()
		is = m.Text("role") == "user" || m.Text("type") == "mcp_approval_response"
		content := m.Get("content")
		if !is || content.Kind() != jsondoc.Array {
			return
		}
		results := 0
		for _, f := range content.Items() {
			kind := Value{f, v.c}.Object().Text("type")
			if results++; !strings.HasSuffix(kind, "tool_result") {
				return
			}
		}
		is = results == 0
	})
	return is
}

// IsPast tells that the message being read is from the past.
func (o *Object) IsPast() bool { return o != nil && o.c.past }

// WithRaw is another value at the same path.
func (v Value) WithRaw(raw json.RawMessage) Value {
	return Value{jsondoc.Field{Raw: raw, Path: v.Path}, v.c}
}

func (v Value) AddFault(f *Fault) { v.c.add(f) }

// Ctx is the request's; it ends when the client disconnects.
func (v Value) Ctx() context.Context { return v.c.ctx }

// read reads a value by one of Field's methods. A wrong value adds a fault and returns instead.
func read[T any](v Value, method func(jsondoc.Field) (T, error), fallback T) T {
	got, err := method(v.Field)
	e, wrong := errors.AsType[*jsondoc.FieldError](err)
	switch {
	case !wrong:
		return got
	case e.Want != "":
		Value{e.Field, v.c}.WrongType(e.Want)
	default:
		v.c.add(Invalid(e.Path, "%s", e))
	}
	return fallback
}

// member reads the member with this name, or returns instead if it is absent.
func member[T any](o *Object, name string, method func(jsondoc.Field) (T, error), fallback T) T {
	if !o.Has(name) {
		return fallback
	}
	return read(o.Get(name), method, fallback)
}

// kindNames are JSON's types in the words of OpenAI's messages.
var kindNames = [...]string{"null", "null", "a boolean", "a number", "a string", "an array",
	"an object"}

func (v Value) WrongType(want string) {
	where := cmp.Or(v.Path, "the request body")
	v.c.add(Refusal(http.StatusBadRequest, v.Path, "invalid_type",
		fmt.Sprintf("invalid type for %s: expected %s, but got %s", where, want,
			kindNames[v.Kind()])))
}

// Invalid adds a fault of the value; the message follows the value's path.
func (v Value) Invalid(format string, a ...any) {
	v.c.add(Invalid(v.Path, "%s", v.Path+fmt.Sprintf(format, a...)))
}

// MustBe adds the fault of an unknown word; the value may be absent.
func (v Value) MustBe(be string) {
	word := ""
	if v.Kind() != jsondoc.Null {
		word = v.Text()
	}
	v.Invalid(" is %q, it must be %s", word, be)
}

func (v Value) Missing() {
	v.c.add(Refusal(http.StatusBadRequest, v.Path, "missing_required_parameter",
		"missing required parameter: "+v.Path))
}

// Unsupported adds the fault of a feature that this server lacks, with advice.
func (v Value) Unsupported(what, advice string) { v.c.add(Unsupported(v.Path, what, advice)) }

// Unreadable adds the fault of a part of a message with an unknown type.
func (o *Object) Unreadable(advice string) {
	o.Get("type").Unsupported(fmt.Sprintf("content of type %q", o.Text("type")), advice)
}

// Object is nil if the value is not an object.
func (v Value) Object() *Object {
	if v.c.isCancelled() {
		return nil
	}
	members := read(v, func(f jsondoc.Field) (*jsondoc.Parts, error) {
		return f.Parts(maxMembers)
	}, nil)
	if members == nil {
		return nil
	}
	return &Object{members: members, raw: v.Raw, path: v.Path, c: v.c}
}

// List returns the items of an array; none if the value is not an array, or one that is too long.
func (v Value) List() []Value { return v.listOf(maxItems, codeTooLong) }

// Messages returns the items of a conversation.
func (v Value) Messages() []Value { return v.listOf(maxMessages, CodeContextLength) }

// MessagesAfter returns the items of an array that may become messages after n others.
func (v Value) MessagesAfter(n int) []Value {
	if n+v.Count(maxMessages+1) > maxMessages {
		v.tooMany(CodeContextLength)
		return nil
	}
	return v.List()
}

func (v Value) listOf(limit int, code string) []Value {
	if v.c.isCancelled() {
		return nil
	}
	if v.Kind() != jsondoc.Array {
		v.WrongType("an array")
		return nil
	}
	remaining := maxItems - v.c.items
	n := v.Count(min(limit, remaining) + 1)
	if n > min(limit, remaining) {
		if remaining < limit { // other lists have used up the rest
			code = codeTooLong
		}
		v.tooMany(code)
		return nil
	}
	v.c.items += n
	list := make([]Value, 0, n)
	for _, f := range v.Items() {
		list = append(list, Value{f, v.c})
	}
	return list
}

func TextsOf(list []Value) (texts []string) {
	for _, v := range list {
		texts = append(texts, v.Text())
	}
	return texts
}

func (v Value) tooMany(code string) {
	v.c.add(Refusal(http.StatusBadRequest, v.Path, code, fmt.Sprintf("%s is too long: a request "+
		"has at most %d messages or items of input, calls included, and %d items in all its lists",
		v.Path, maxMessages, maxItems)))
}

// Text is the value, "" if it is not a string.
func (v Value) Text() string { return read(v, jsondoc.Field.Text, "") }

func (o *Object) Has(name string) bool { return o.Get(name).Kind() != jsondoc.Null }

// Need is Has, and adds a fault if the member is absent.
func (o *Object) Need(name string) bool {
	if !o.Has(name) {
		o.Get(name).Missing()
	}
	return o.Has(name)
}

// Get is the member's value; an absent one is null.
func (o *Object) Get(name string) Value {
	if o == nil {
		return Value{jsondoc.Field{Path: name}, &firstFault{ctx: context.Background()}}
	}
	if o.seen != nil {
		o.seen[name] = true
	}
	return Value{jsondoc.Field{Raw: o.members.Get(name), Path: o.PathOf(name)}, o.c}
}

// Value is the object itself, for faults.
func (o *Object) Value() Value { return Value{jsondoc.Field{Raw: o.raw, Path: o.path}, o.c} }

func (o *Object) Members() []jsondoc.Part { return o.members.List }

func (o *Object) PathOf(name string) string {
	if o == nil || o.path == "" {
		return name
	}
	return o.path + "." + name
}

// Text is a member's text, "" if it is absent.
func (o *Object) Text(name string) string { return member(o, name, jsondoc.Field.Text, "") }

// Object is nil if the member is absent.
func (o *Object) Object(name string) *Object {
	if !o.Has(name) {
		return nil
	}
	return o.Get(name).Object()
}

// Inner is the nested member if it exists, as in chat completions; else o.
func (o *Object) Inner(name string) *Object {
	if o.Has(name) {
		return o.Object(name)
	}
	return o
}

// List is the items of a member, none if it is absent.
func (o *Object) List(name string) []Value {
	if !o.Has(name) {
		return nil
	}
	return o.Get(name).List()
}

func (o *Object) Boolean(name string, fallback bool) bool {
	return member(o, name, jsondoc.Field.Bool, fallback)
}

// Flag is a boolean member, false if it or the object is absent.
func (o *Object) Flag(name string) bool { return o.Boolean(name, false) }

func (o *Object) Number(name string, low, high, fallback float64) float64 {
	return member(o, name, func(f jsondoc.Field) (float64, error) { return f.Number(low, high) },
		fallback)
}

// Integer is an integer member in [low, high]; 5.0 is valid too.
func (o *Object) Integer(name string, low, high, fallback int) int {
	return member(o, name, func(f jsondoc.Field) (int, error) { return f.Integer(low, high) },
		fallback)
}

func (o *Object) Bits(name string, fallback uint64) uint64 {
	return member(o, name, jsondoc.Field.Bits, fallback)
}

// AddFault adds a fault. A nil object already has one, from when it was read.
func (o *Object) AddFault(f *Fault) {
	if o != nil && f != nil {
		o.c.add(f)
	}
}

// MaxPrompt is the most tokens of a text that is encoded: eight of the largest contexts.
const MaxPrompt = 1 << 20

// Encode returns the ids of a text in v; names of special tokens become their ids.
func (v Value) Encode(text string) []int32 {
	ids, ok := token.Get().EncodeSpecialWhile([]int32{}, text, func(ids int) bool {
		return ids <= MaxPrompt && !v.c.isCancelled()
	})
	if !ok {
		v.c.add(Refusal(http.StatusBadRequest, v.Path, CodeContextLength, fmt.Sprintf(
			"%s has more than %d tokens", v.Path, MaxPrompt)))
		return nil
	}
	return ids
}

// TokenIDs reads an array of ids at once; nil if an item is invalid.
func (v Value) TokenIDs() (ids []int32) {
	if v.Kind() != jsondoc.Array || bytes.IndexByte(v.Raw, 'n') >= 0 || // null would be read as 0
		json.Unmarshal(v.Raw, &ids) != nil || slices.ContainsFunc(ids, func(id int32) bool {
		return id < 0 || id >= token.VocabSize
	}) {
		return nil
	}
	return ids
}

// EncodePrompt returns the ids of a text; an empty text becomes <|endoftext|>, as at OpenAI.
func (v Value) EncodePrompt(text string) []int32 {
	ids := v.Encode(text)
	if len(ids) == 0 {
		ids = []int32{token.EndOfText}
	}
	return ids
}

func IDsOf(list []Value) []int32 {
	ids := make([]int32, len(list))
	for i, v := range list {
		ids[i] = v.tokenID()
	}
	return ids
}

func (v Value) tokenID() int32 {
	id, err := strconv.ParseInt(string(bytes.TrimSpace(v.Raw)), 10, 64)
	if err != nil || id < 0 || id >= token.VocabSize {
		v.Invalid(" is %s, which is not a token id of 0 to %d", Brief(string(v.Raw)),
			token.VocabSize-1)
		return 0
	}
	return int32(id)
}

package jsondoc

// Reading values of an expected type, level by level, so that an error names its field, and unused
// members cost nothing but their bytes. A Field's text must be valid JSON.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Field is a value and its path: "messages[2].content", "" for the document.
type Field struct {
	Raw  json.RawMessage
	Path string
}

// FieldError reports a field of the wrong type or value.
type FieldError struct {
	Field
	Want      string  // the expected type; "" if the type is right
	Low, High float64 // the number's limits, if the type is right
}

func (e *FieldError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("%s is %s, it must be between %s and %s", e.Path, e.Raw,
			formatNumber(e.Low), formatNumber(e.High))
	}
	return fmt.Sprintf("%s is %s, not %s", e.Path, e.Kind(), e.Want)
}

// formatNumber writes integers without an exponent.
func formatNumber(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func (f Field) typeError(want string) error { return &FieldError{Field: f, Want: want} }

// Kind follows from the first byte. Empty text is null: an absent member and null mean the same.
func (f Field) Kind() Kind {
	s := bytes.TrimLeft(f.Raw, " \t\r\n")
	if len(s) == 0 {
		return Null
	}
	switch s[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

func read[T any](f Field, kind Kind, want string) (v T, err error) {
	if f.Kind() != kind || json.Unmarshal(f.Raw, &v) != nil {
		return *new(T), f.typeError(want)
	}
	return v, nil
}

// Members is Parts by name.
func (f Field) Members() (map[string]json.RawMessage, error) {
	parts, err := f.Parts(math.MaxInt)
	if err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage, len(parts.List))
	for _, p := range parts.List {
		members[p.Name] = p.Value
	}
	return members, nil
}

// Text reads a string. One without escapes, like most, is only copied: the decoder would scan it
// twice and leave as much garbage as a short one holds.
func (f Field) Text() (string, error) {
	if s := bytes.Trim(f.Raw, " \t\r\n"); len(s) > 1 && s[0] == '"' &&
		bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s[1 : len(s)-1]), nil
	}
	return read[string](f, String, "a string")
}

func (f Field) Bool() (bool, error) { return read[bool](f, Bool, "a boolean") }

// Number reads a number of [low, high].
func (f Field) Number(low, high float64) (float64, error) { return f.number("a number", low, high) }

// Integer reads an integer of [low, high]; 5.0 is one too.
func (f Field) Integer(low, high int) (int, error) {
	n, err := f.number("an integer", float64(low), float64(high))
	return int(n), err
}

func (f Field) number(want string, low, high float64) (n float64, err error) {
	if f.Kind() != Number || json.Unmarshal(f.Raw, &n) != nil || want == "an integer" &&
		n != math.Trunc(n) {
		return 0, f.typeError(want)
	}
	if n < low || n > high {
		return 0, &FieldError{Field: f, Low: low, High: high}
	}
	return n, nil
}

// Bits reads 64 bits, signed or not.
func (f Field) Bits() (uint64, error) {
	s := string(bytes.TrimSpace(f.Raw))
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(i), nil
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, nil
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && n == math.Trunc(n) &&
		math.Abs(n) < 1<<63 {
		return uint64(int64(n)), nil
	}
	return 0, f.typeError("an integer of 64 bits")
}

package models

// Reading a JSON object field by field, by exact name, so that each error names the file and the
// field.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/models/mapping"
)

// MaxConfig is the longest JSON file that is read, in bytes; the published ones have under 2 kB.
const MaxConfig = 4 << 20

// fields is one JSON object of a file. The first failure is stored in err; later calls do nothing.
type fields struct {
	where  string // the file, with the path of a nested object: "config.json: rope_scaling."
	object map[string]json.RawMessage
	err    *error
}

func ReadFile(path string) ([]byte, error) {
	name := filepath.Base(path)
	text, err := mapping.ReadFile(path, MaxConfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// parseFields reads the text of the file called name, a JSON object.
func parseFields(name string, text []byte) (fields, error) {
	f := fields{where: name + ": ", err: new(error)}
	if bytes.HasPrefix(text, []byte("version https://git-lfs")) {
		return f, fmt.Errorf(
			"%s is a Git LFS pointer, not the file: run git lfs pull in its folder", name)
	}
	if !utf8.Valid(text) {
		return f, fmt.Errorf("%s is not UTF-8", name)
	}
	if err := json.Unmarshal(text, &f.object); err != nil {
		return f, fmt.Errorf("%s is not a JSON object: %w", name, err)
	}
	if f.object == nil {
		return f, fmt.Errorf("%s is not a JSON object", name)
	}
	return f, nil
}

func (f fields) fail(field, format string, args ...any) {
	if *f.err == nil {
		*f.err = fmt.Errorf("%s%s %s", f.where, field, fmt.Sprintf(format, args...))
	}
}

// get returns a field's value, null if it is absent.
func (f fields) get(field string) jsondoc.Field {
	return jsondoc.Field{Raw: f.object[field], Path: field}
}

func (f fields) has(field string) bool { return f.get(field).Kind() != jsondoc.Null }

// raw returns a field's JSON on one line, truncated, in printable ASCII.
func (f fields) raw(field string) string {
	var line bytes.Buffer
	if json.Compact(&line, f.object[field]) != nil {
		return "broken"
	}
	text := line.String()
	if len(text) > 60 {
		text = text[:60] + "..."
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

// reject records an invalid field and reports whether err is set; bounds are the allowed numbers.
func (f fields) reject(field string, err error, want, bounds string) bool {
	var e *jsondoc.FieldError
	switch {
	case err == nil:
		return false
	case errors.As(err, &e) && e.Want == "":
		f.fail(field, "is %s, outside %s", f.raw(field), bounds)
	default:
		f.fail(field, "is %s, not %s", f.raw(field), want)
	}
	return true
}

func (f fields) sub(field string) fields {
	s := fields{where: f.where + field + ".", err: f.err}
	if f.has(field) {
		var err error
		s.object, err = f.get(field).Members()
		f.reject(field, err, "an object", "")
	}
	return s
}

// integer returns a required number between least and most.
func (f fields) integer(field string, least, most int) int {
	if !f.has(field) {
		f.fail(field, "is missing")
		return least
	}
	n, err := f.get(field).Integer(least, most)
	if f.reject(field, err, "a whole number", fmt.Sprintf("%d..%d", least, most)) {
		return least
	}
	return n
}

// number returns a number above zero and at most most, or the default if the field is absent.
func (f fields) number(field string, most, fallback float64) float64 {
	if !f.has(field) {
		return fallback
	}
	n, err := f.get(field).Number(math.SmallestNonzeroFloat64, most)
	if f.reject(field, err, "a number", fmt.Sprintf("0..%g", most)) {
		return fallback
	}
	return n
}

// text returns a string, "" if the field is absent.
func (f fields) text(field string) string {
	if !f.has(field) {
		return ""
	}
	s, err := f.get(field).Text()
	f.reject(field, err, "a string", "")
	return s
}

// must checks that a field has the one value that the engine supports; absent is the meaning of an
// absent field.
func must[T comparable](f fields, field string, value T, absent presence) {
	if !f.has(field) {
		if absent == required {
			f.fail(field, "is missing, gpt-oss has %v", value)
		}
		return
	}
	var got T
	if json.Unmarshal(f.object[field], &got) != nil || got != value {
		f.fail(field, "is %s, gpt-oss has %v", f.raw(field), value)
	}
}

// presence is the meaning of an absent field.
type presence bool

const (
	required presence = false // an error
	implied  presence = true  // the value of gpt-oss, as in every reader of this layout
)

// TemplateOf returns the chat template of a tokenizer_config.json or chat_template.json, the
// default one of several, or "".
func TemplateOf(text []byte) string {
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if json.Unmarshal(text, &config) != nil {
		return ""
	}
	var one string
	var several []struct{ Name, Template string }
	if json.Unmarshal(config.Template, &one) != nil &&
		json.Unmarshal(config.Template, &several) == nil {
		for _, t := range several {
			if one == "" || t.Name == "default" {
				one = t.Template
			}
		}
	}
	return one
}

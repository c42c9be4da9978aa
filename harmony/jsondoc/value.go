// Package jsondoc reads JSON where encoding/json loses information: the order of an object's
// members, duplicate names, numbers' digits, each value's own text, and the path of a field in an
// error.
//
// Parse returns a document as a tree of Values: for tools' parameters and schemas, whose order is
// part of a prompt and of an answer's shape. A Field is one value of a request or of a config.json,
// read as a certain type; its errors are *FieldError.
//
// What must stay true: reading takes time and memory linear in the text, and the cost of a member's
// look-up does not depend on their number.
package jsondoc

import (
	"fmt"
	"slices"
	"strings"
)

type Kind uint8

// The kinds. Absent is a missing value.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{
	"nothing", "null", "a boolean", "a number", "a string", "a list", "an object",
}

func (k Kind) String() string { return kindNames[k] }

// Value is one JSON value. Its strings are parts of the document's text if possible.
type Value struct {
	Kind       Kind
	Truth      bool     // of a boolean
	Text       string   // of a string, decoded; of a number
	Items      []*Value // of an array
	Members    []Member // of an object: each name once, in order of its first value, with its last
	Duplicates []Member // earlier values of duplicate names
	Source     string   // original text

	places map[string]int // of the members by name, if there are many
}

type Member = Named[*Value]

// Named is a member of an object.
type Named[V any] struct {
	Name  string
	Value V
}

// maxLinear is the number of members that are searched linearly; more have a map of their indices.
const maxLinear = 8

func indexOf[V any](list []Named[V], places map[string]int, name string) int {
	if places != nil {
		if i, ok := places[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(list, func(m Named[V]) bool { return m.Name == name })
}

func appendMember[V any](list *[]Named[V], places *map[string]int, name string, value V) {
	*list = append(*list, Named[V]{name, value})
	if *places != nil {
		(*places)[name] = len(*list) - 1
	} else if len(*list) > maxLinear {
		*places = make(map[string]int, 2*maxLinear)
		for i, m := range *list {
			(*places)[m.Name] = i
		}
	}
}

// Get returns the member of that name, or nil.
func (v *Value) Get(name string) *Value {
	if i := indexOf(v.Members, v.places, name); i >= 0 {
		return v.Members[i].Value
	}
	return nil
}

// Member is Get, but returns a value of kind Absent instead of nil.
func (v *Value) Member(name string) *Value {
	if m := v.Get(name); m != nil {
		return m
	}
	return &absent
}

var absent Value

func (v *Value) add(name string, value *Value) {
	if i := indexOf(v.Members, v.places, name); i >= 0 {
		v.Duplicates = append(v.Duplicates, v.Members[i])
		v.Members[i].Value = value
		return
	}
	appendMember(&v.Members, &v.places, name, value)
}

func (v *Value) IsDuplicate(name string) bool {
	return slices.ContainsFunc(v.Duplicates, func(m Member) bool { return m.Name == name })
}

const AnyType = "any"

// typeNames are JSON Schema's names of types, by the names that other languages have for them.
var typeNames = map[string]string{"str": "string", "text": "string", "date": "string",
	"datetime": "string", "date-time": "string", "time": "string", "uuid": "string",
	"int": "integer", "int32": "integer", "int64": "integer", "long": "integer",
	"float": "number", "double": "number", "decimal": "number", "bool": "boolean",
	"dict": "object", "map": "object", "record": "object", "list": "array", "tuple": "array",
	"set": "array", "none": "null", "unknown": AnyType, "mixed": AnyType}

// TypeName returns JSON Schema's name of a type, which may be in capitals, or AnyType.
func TypeName(name string) string {
	name = strings.ToLower(name)
	if usual, ok := typeNames[name]; ok {
		return usual
	}
	return name
}

// Spelling is the format of Append; the zero Spelling keeps the original.
type Spelling struct {
	Sorted bool                     // sort members by name
	Number func(text string) string // formats a number
}

// String writes the value without white space.
func (v *Value) String() string { return string(v.Append(nil, Spelling{})) }

// Append writes the value without white space.
func (v *Value) Append(dst []byte, s Spelling) []byte {
	switch v.Kind {
	case Absent:
	case Null:
		dst = append(dst, "null"...)
	case Bool:
		dst = fmt.Append(dst, v.Truth)
	case Number:
		text := v.Text
		if s.Number != nil {
			text = s.Number(text)
		}
		dst = append(dst, text...)
	case String:
		dst = Quote(dst, v.Text)
	case Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.Append(dst, s)
		}
		dst = append(dst, ']')
	case Object:
		members := v.Members
		if s.Sorted {
			members = slices.Clone(members)
			slices.SortFunc(members,
				func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(Quote(dst, m.Name), ':')
			dst = m.Value.Append(dst, s)
		}
		dst = append(dst, '}')
	}
	return dst
}

// Quote writes a string with the minimum of escapes.
func Quote(dst []byte, text string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		if k := strings.IndexByte("\"\\\b\f\n\r\t", c); k >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[k])
		} else {
			dst = fmt.Appendf(dst, "\\u%04x", c)
		}
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}

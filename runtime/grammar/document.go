// JSON read with the order of members kept, and its canonical spelling: compact, every character as moveString spells it,
// numbers as plain decimals.

package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

type docKind uint8

const (
	docNull docKind = iota
	docBool
	docNumber
	docString
	docArray
	docObject
)

// doc is a JSON value.
type doc struct {
	kind    docKind
	truth   bool
	text    string // of a string or a number
	items   []*doc
	members []member
}

type member struct {
	key   string
	value *doc
}

// get returns a member, nil if there is none.
func (d *doc) get(key string) *doc {
	if d.kind != docObject {
		return nil
	}
	for i := range d.members {
		if d.members[i].key == key {
			return d.members[i].value
		}
	}
	return nil
}

// mostNesting bounds how deep a schema may be nested.
const mostNesting = 512

func parseDocument(raw []byte) (*doc, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	d, err := readDocument(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON value")
	}
	return d, nil
}

func readDocument(dec *json.Decoder, depth int) (*doc, error) {
	if depth > mostNesting {
		return nil, fmt.Errorf("it is nested deeper than %d", mostNesting)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := t.(type) {
	case nil:
		return &doc{}, nil
	case bool:
		return &doc{kind: docBool, truth: v}, nil
	case json.Number:
		return &doc{kind: docNumber, text: v.String()}, nil
	case string:
		return &doc{kind: docString, text: v}, nil
	case json.Delim:
		if v == '[' {
			d := &doc{kind: docArray}
			for dec.More() {
				item, err := readDocument(dec, depth+1)
				if err != nil {
					return nil, err
				}
				d.items = append(d.items, item)
			}
			_, err := dec.Token()
			return d, err
		}
		d := &doc{kind: docObject}
		at := map[string]int{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			value, err := readDocument(dec, depth+1)
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			if i, again := at[name]; again {
				d.members[i].value = value
				continue
			}
			at[name] = len(d.members)
			d.members = append(d.members, member{name, value})
		}
		_, err := dec.Token()
		return d, err
	}
	return nil, errors.New("it is not JSON")
}

// quote appends a string in its one spelling.
func quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == 8:
			dst = append(dst, `\b`...)
		case c == 9:
			dst = append(dst, `\t`...)
		case c == 10:
			dst = append(dst, `\n`...)
		case c == 12:
			dst = append(dst, `\f`...)
		case c == 13:
			dst = append(dst, `\r`...)
		case c < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// rational reads a number; nil if its exponent is out of all reason.
func rational(text string) *big.Rat {
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 5 {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

// plainNumber is a number as a plain decimal.
func plainNumber(text string) string {
	r := rational(text)
	if r == nil {
		return text
	}
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(1100), "0")
}

// spell appends the canonical spelling; sorted puts members in the order of their keys, so that equal values are spelled
// equally.
func (d *doc) spell(dst []byte, sorted bool) []byte {
	switch d.kind {
	case docBool:
		if d.truth {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case docNumber:
		return append(dst, plainNumber(d.text)...)
	case docString:
		return quote(dst, d.text)
	case docArray:
		dst = append(dst, '[')
		for i, item := range d.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.spell(dst, sorted)
		}
		return append(dst, ']')
	case docObject:
		members := d.members
		if sorted {
			members = slices.Clone(members)
			slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(quote(dst, m.key), ':')
			dst = m.value.spell(dst, sorted)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// equal tells whether two values are the same to JSON Schema.
func (d *doc) equal(o *doc) bool { return string(d.spell(nil, true)) == string(o.spell(nil, true)) }

// characters is the length of a string as JSON Schema counts it.
func characters(s string) int { return utf8.RuneCountInString(s) }

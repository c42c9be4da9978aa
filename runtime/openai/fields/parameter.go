// A parameter of a request: one row that reads it, refuses wrong values, documents it and marks it
// as known.
//
// What must stay true: a member without a row in the route is ignored and named in the
// X-Ossrun-Ignored header, so that a misspelt parameter is noticed. An absent member has its row's
// default, either in the row or already in the row's target.

package fields

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/sample"
)

// Parameter is a row of a table of parameters.
type Parameter struct {
	Name string

	kind     string    // for the document; "": it is not documented
	bounds   []float64 // of a number: minimum and maximum
	required bool      // in the document; the reader adds the fault
	members  []string  // the known members of an object; nil: all
	// nil: it has no effect, or is read with another
	read func(o *Object, name string)
}

// Row is a parameter that a function reads. line is its documentation: its name, followed by ! if
// required, its type, and the bounds of a number; without a type the parameter is not documented.
func Row(line string, read func(o *Object, name string)) Parameter {
	name, kind, _ := strings.Cut(line, " ")
	name, needed := strings.CutSuffix(name, "!")
	return Parameter{Name: name, kind: kind, required: needed, read: read}
}

// NoEffect are parameters that have no effect here, or are read with others.
func NoEffect(lines ...string) (rows []Parameter) {
	for _, line := range lines {
		rows = append(rows, Row(line, nil))
	}
	return rows
}

func Text(name string, to *string) Parameter {
	return Parameter{Name: name, kind: "string", read: func(o *Object, name string) {
		*to = o.Text(name)
	}}
}

func Boolean(name string, fallback bool, to *bool) Parameter {
	return Parameter{Name: name, kind: "boolean", read: func(o *Object, name string) {
		*to = o.Boolean(name, fallback)
	}}
}

// Opposite is a boolean that is true by default; to is its opposite.
func Opposite(name string, to *bool) Parameter {
	return Row(name+" boolean", func(o *Object, name string) { *to = !o.Boolean(name, true) })
}

func Integer(name string, low, high, fallback int, to *int) Parameter {
	p := Parameter{Name: name, kind: "integer", bounds: []float64{float64(low), float64(high)},
		read: func(o *Object, name string) { *to = o.Integer(name, low, high, fallback) }}
	if high >= unlimited {
		p.bounds = p.bounds[:1]
	}
	return p
}

// unlimited marks a bound that no request reaches, so it is not documented.
const unlimited = 1 << 30

// Number is a row of sample.Numbers. An absent one keeps its value; a negative integer becomes 0.
func Number(n sample.Number, params *sample.Params) Parameter {
	switch to := n.Field(params).(type) {
	case *int:
		p := Integer(n.Name, int(n.Low), int(n.High), *to, to)
		read := p.read
		p.read = func(o *Object, name string) { read(o, name); *to = max(0, *to) }
		return p
	case *float32:
		return Parameter{Name: n.Name, kind: "number", bounds: []float64{n.Low, n.High},
			read: func(o *Object, name string) {
				*to = float32(o.Number(name, n.Low, n.High, float64(*to)))
			}}
	}
	return Parameter{} // there are no others
}

// RefusedText refuses a text that would change the answer, unless it is empty.
func RefusedText(name, advice string) Parameter {
	return Row(name, func(o *Object, name string) {
		if o.Text(name) != "" {
			o.Get(name).Unsupported(name, advice)
		}
	})
}

// Refused refuses all values but neutral (JSON), for they change the answer; "" refuses all.
func Refused(name, neutral, advice string) Parameter {
	return Row(name, func(o *Object, name string) {
		if v := o.Get(name); v.Kind() != jsondoc.Null &&
			(neutral == "" || string(bytes.TrimSpace(v.Raw)) != neutral) {
			v.Unsupported(name, advice)
		}
	})
}

func (p Parameter) WithName(name string) Parameter {
	p.Name = name
	return p
}

func (p Parameter) WithoutDoc() Parameter {
	p.kind = ""
	return p
}

// WithMembers lists the known members of an object. Others are reported as ignored, like an unknown
// parameter; without it an object may have any members.
func (p Parameter) WithMembers(members ...string) Parameter {
	p.members = members
	return p
}

// DocLines returns the documentation of the rows, required ones first.
func DocLines(rows []Parameter) (lines []string) {
	needed := 0
	for _, p := range rows {
		line := " " + p.kind
		for _, b := range p.bounds {
			line += fmt.Sprint(" ", b)
		}
		switch {
		case p.kind == "":
		case p.required:
			lines = slices.Insert(lines, needed, p.Name+"!"+line)
			needed++
		default:
			lines = append(lines, p.Name+line)
		}
	}
	return lines
}

// Read reads an object by its rows, in order. Unread then lists its other members.
func Read(o *Object, rows []Parameter) {
	if o != nil {
		o.seen, o.inner = map[string]bool{}, map[string][]string{}
	}
	for _, p := range rows {
		if p.read == nil {
			o.Get(p.Name)
		} else {
			p.read(o, p.Name)
		}
		if o != nil && p.members != nil {
			o.inner[p.Name] = p.members
		}
	}
}

// withoutEffect are parameters of OpenAI's and vLLM's documents that cannot change an answer here.
var withoutEffect = []string{"user", "metadata", "service_tier", "store", "parallel_tool_calls",
	"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier",
	"client_metadata", "prediction", "include", "truncation", "stream_options", "request_id",
	"priority"}

// Unread lists the members that no row has and that this server does not know.
func (o *Object) Unread() (names []string) {
	if o == nil {
		return nil
	}
	for _, m := range o.members.List {
		isKnown := o.seen[m.Name] || slices.Contains(withoutEffect, m.Name) ||
			jsondoc.Field{Raw: m.Value}.Kind() == jsondoc.Null
		if !isKnown {
			names = append(names, m.Name)
		}
	}
	for outer, isKnown := range o.inner {
		if o.Get(outer).Kind() != jsondoc.Object {
			continue
		}
		for _, m := range o.Object(outer).members.List {
			if !slices.Contains(isKnown, m.Name) {
				names = append(names, outer+"."+m.Name)
			}
		}
	}
	return names
}

// Seen are the members that were read.
func (o *Object) Seen() map[string]bool { return o.seen }

// From schemas that all must hold to shapes: the ways, one type each, in which a value can satisfy
// them.
//
// Alternatives are resolved first (variants.go): the results are lists of schemas whose own
// keywords all hold. Those are intersected type by type. What must stay true: a shape accepts no
// value that the schemas refuse.

package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// shape is one way to satisfy a node. One of literal, number, text, object and array is set.
type shape struct {
	literal string
	number  *automaton.DFA
	text    *automaton.String
	object  *objectShape
	array   *automaton.Array
	unique  *schema // the schema that requires unique items of an array
}

type objectShape struct {
	automaton.Object
	schemas []*schema // the intersected schemas
}

const (
	maxVariants = 1024
	maxOneOf    = 64
	maxPatterns = 4
)

// list reads a keyword with schemas; nil if it is absent.
func (c *compiler) list(s *schema, keyword string) ([]*schema, error) {
	d := s.value.Get(keyword)
	if d == nil {
		return nil, nil
	}
	if d.Kind != jsondoc.Array || len(d.Items) == 0 {
		return nil, &InvalidError{s.path(), keyword + " is a list of schemas"}
	}
	subs := make([]*schema, 0, len(d.Items))
	if s.original.Get(keyword) == nil && s.original.Get("items") == d { // see listedItems
		keyword = "items"
	}
	for i, item := range d.Items {
		subs = append(subs, c.schemaOf(item, s.below(keyword, strconv.Itoa(i))))
	}
	return subs, nil
}

// integerOf reads a keyword with a count; -1 if it is absent or no bound.
func integerOf(s *schema, keyword string) (int, error) {
	d := s.value.Get(keyword)
	if d == nil {
		return -1, nil
	}
	n, ok := countIn(keyword, d)
	if !ok {
		return 0, &InvalidError{s.path(), keyword + " is a count of 0 to 2^30"}
	}
	return n, nil
}

// countIn reads a count. A maximum of 2^30 and more is no bound: it is the largest number of a
// language.
func countIn(keyword string, d *jsondoc.Value) (n int, ok bool) {
	r := rational(d.Text)
	switch {
	case d.Kind != jsondoc.Number || r == nil || !r.IsInt() || r.Sign() < 0:
		return 0, false
	case r.Num().BitLen() < 31:
		return int(r.Num().Int64()), true
	}
	return -1, strings.HasPrefix(keyword, "max")
}

// count intersects two keywords that bound a count; most is -1 without a bound.
func count(schemas []*schema, low, high string) (least, most int, err error) {
	most = -1
	for _, s := range schemas {
		l, err := integerOf(s, low)
		if err != nil {
			return 0, 0, err
		}
		h, err := integerOf(s, high)
		if err != nil {
			return 0, 0, err
		}
		least = max(least, l)
		if h >= 0 && (most < 0 || h < most) {
			most = h
		}
	}
	return least, most, nil
}

// typeNames are the values of type.
var typeNames = map[string]jsondoc.Kind{"null": jsondoc.Null, "boolean": jsondoc.Bool,
	"number": jsondoc.Number, "integer": jsondoc.Number, "string": jsondoc.String,
	"array": jsondoc.Array, "object": jsondoc.Object}

// typesOf reads type: a bit for each jsondoc.Kind, and whether numbers must be integers.
func typesOf(s *schema) (types uint8, integers bool, err error) {
	if s.typesRead {
		return s.types, s.integers, nil
	}
	d := s.value.Get("type")
	if d == nil {
		s.types, s.typesRead = 0xff, true
		return 0xff, false, nil
	}
	types, integers, reason := typesIn(d)
	if reason != "" {
		return 0, false, &InvalidError{s.path(), reason}
	}
	s.types, s.integers, s.typesRead = types, integers, true
	return types, integers, nil
}

// typesIn is typesOf for a value; reason tells why it is invalid.
func typesIn(d *jsondoc.Value) (types uint8, integers bool, reason string) {
	names := d.Items
	if d.Kind == jsondoc.String {
		names = []*jsondoc.Value{d}
	} else if len(names) == 0 {
		return 0, false, "type is a name or a list of names"
	}
	integers = true
	for _, n := range names {
		name := jsondoc.TypeName(n.Text)
		kind, ok := typeNames[name]
		switch {
		case ok:
			types |= 1 << kind
		case name == jsondoc.AnyType:
			types = 0xff
		default:
			return 0, false, fmt.Sprintf("%q is no type", n.Text)
		}
		integers = integers && name != "number" && name != jsondoc.AnyType
	}
	return types, integers, ""
}

func (c *compiler) shapes(schemas []*schema) ([]shape, error) {
	types, integers := uint8(0xff), false
	var values []*jsondoc.Value
	listed := false
	for _, s := range schemas {
		t, i, err := typesOf(s)
		if err != nil {
			return nil, err
		}
		types &= t
		integers = integers || i
		if e := s.value.Get("enum"); e != nil && !listed {
			if len(e.Items) == 0 {
				return nil, &InvalidError{s.path(), "enum is a list of values"}
			}
			values, listed = e.Items, true
		}
		if v := s.value.Get("const"); v != nil && !listed {
			values, listed = []*jsondoc.Value{v}, true
		}
	}
	if listed {
		return c.literals(schemas, values)
	}
	var out []shape
	if types>>jsondoc.Null&1 == 1 {
		out = append(out, shape{literal: "null"})
	}
	if types>>jsondoc.Bool&1 == 1 {
		out = append(out, shape{literal: "true"}, shape{literal: "false"})
	}
	numberShape := func(s []*schema) (*shape, error) { return c.numberShape(s, integers) }
	for _, entry := range []struct {
		kind jsondoc.Kind
		make func([]*schema) (*shape, error)
	}{
		{jsondoc.Number, numberShape}, {jsondoc.String, c.stringShape},
		{jsondoc.Array, c.arrayShape}, {jsondoc.Object, c.objectShape},
	} {
		if types>>entry.kind&1 == 0 {
			continue
		}
		s, err := entry.make(schemas)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, *s)
		}
	}
	return out, nil
}

// literals are the listed values that satisfy all other keywords.
func (c *compiler) literals(schemas []*schema, values []*jsondoc.Value) ([]shape, error) {
	var out []shape
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		ok, err := c.holds(v, schemas)
		if err != nil {
			return nil, err
		}
		key := canonical(v, true)
		if ok && !seen[key] {
			seen[key] = true
			literal := key
			if v.Kind >= jsondoc.Array {
				literal = canonical(v, false)
			}
			out = append(out, shape{literal: literal})
		}
	}
	return out, nil
}

func readNumbers(schemas []*schema, integers bool) (automaton.Numbers, error) {
	spec := automaton.Numbers{Integer: integers}
	for _, s := range schemas {
		spec.Fraction = spec.Fraction || s.fractions
		for _, m := range s.value.Members {
			switch m.Name {
			case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			default:
				continue
			}
			if m.Value.Kind == jsondoc.Bool { // drafts before 6
				continue
			}
			r := rational(m.Value.Text)
			if m.Value.Kind != jsondoc.Number || r == nil {
				return spec, &InvalidError{s.path(), m.Name + " is a number"}
			}
			// open reports whether a bound is exclusive, in the form of drafts before 6 or of later
			// ones.
			open := func(exclusive string) bool {
				return m.Name == exclusive || s.value.Member(exclusive).Truth
			}
			switch m.Name {
			case "minimum", "exclusiveMinimum":
				out := open("exclusiveMinimum")
				if spec.Low == nil || r.Cmp(spec.Low) > 0 || r.Cmp(spec.Low) == 0 && out {
					spec.Low, spec.LowOpen = r, out
				}
			case "maximum", "exclusiveMaximum":
				out := open("exclusiveMaximum")
				if spec.High == nil || r.Cmp(spec.High) < 0 || r.Cmp(spec.High) == 0 && out {
					spec.High, spec.HiOpen = r, out
				}
			case "multipleOf":
				if r.Sign() <= 0 {
					return spec, &InvalidError{s.path(), "multipleOf is more than 0"}
				}
				if !spec.MultipleOf(r) {
					return spec, s.unsupported(m.Name,
						"only up to 4095 in its last place is supported")
				}
			}
		}
	}
	return spec, nil
}

// numberShape is the numbers that all schemas accept; nil if there are none.
func (c *compiler) numberShape(schemas []*schema, integers bool) (*shape, error) {
	spec, err := readNumbers(schemas, integers)
	if err != nil {
		return nil, err
	}
	d, err := spec.DFA()
	switch {
	case errors.Is(err, automaton.ErrEmpty):
		return nil, nil
	case err != nil:
		return nil, jointError(schemas, err.Error(), "minimum, maximum or multipleOf", "minimum",
			"maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
	}
	return &shape{number: d}, nil
}

var errNothing = errors.New("no text matches")

// expressions are the automata of a schema's own pattern and format.
func (c *compiler) expressions(s *schema) ([]automaton.Factor, error) {
	out := slices.Clone(s.strings)
	for _, keyword := range []string{"pattern", "format"} {
		v := s.value.Get(keyword)
		if v == nil || keyword == "format" && !isEnforced(v.Text) {
			continue
		}
		d, err := c.expression(s, keyword, v)
		if err != nil {
			return nil, err
		}
		out = append(out, automaton.Factor{DFA: d})
	}
	return out, nil
}

// expression is the automaton of an enforced pattern or format.
func (c *compiler) expression(s *schema, keyword string, v *jsondoc.Value) (*automaton.DFA, error) {
	if v.Kind != jsondoc.String {
		return nil, &InvalidError{s.path(), keyword + " is a string"}
	}
	text := v.Text
	if keyword == "format" {
		text = formats[v.Text]
	}
	d, err := automaton.Pattern(c.ctx, text, keyword == "pattern")
	switch {
	case errors.Is(err, automaton.ErrEmpty):
		return nil, errNothing
	case err != nil:
		return nil, s.unsupported(keyword, err.Error())
	case keyword == "pattern":
		return d, c.spend(s, keyword, d)
	}
	return d, nil
}

// jointError is the error of several schemas' keywords that cannot be enforced together.
func jointError(schemas []*schema, reason, name string, keywords ...string) error {
	u := schemas[0].unsupported(name, reason)
	for _, s := range schemas {
		if s.owner != nil {
			return s.owner.refuse("cannot be held: " + reason)
		}
	}
	u.schemas, u.keywords = schemas, keywords
	return u
}

// stringShape intersects lengths, patterns and formats; nil if no string remains.
func (c *compiler) stringShape(schemas []*schema) (*shape, error) {
	least, most, err := count(schemas, "minLength", "maxLength")
	if err != nil {
		return nil, err
	}
	if most >= 0 && least > most {
		return nil, nil
	}
	var factors []automaton.Factor
	for _, s := range schemas {
		f, err := c.expressions(s)
		if err != nil {
			if errors.Is(err, errNothing) {
				return nil, nil
			}
			return nil, err
		}
		for _, one := range f {
			if !slices.Contains(factors, one) {
				factors = append(factors, one)
			}
		}
	}
	switch {
	case len(factors) == 0 && least == 0 && most < 0:
		return &shape{text: c.anyString}, nil
	case len(factors) == 0:
		return &shape{text: &automaton.String{Make: automaton.AnyText, Min: least, Max: most}}, nil
	case len(factors) == 1 && !factors[0].Not && least == 0 && most < 0:
		return &shape{text: &automaton.String{Text: factors[0].DFA, Max: -1}}, nil
	}
	if c.effort > maxEffort {
		return nil, jointError(schemas, "the expressions of the schema are too large in all",
			"pattern or format with other keywords", "pattern", "format")
	}
	t, err := c.counted(factors, least, most)
	switch {
	case errors.Is(err, automaton.ErrEmpty):
		return nil, nil
	case err != nil:
		return nil, jointError(schemas, err.Error(), "pattern or format with other keywords",
			"pattern", "format")
	}
	if err := c.spend(schemas[0], "pattern", t.Text); err != nil {
		return nil, err
	}
	return &shape{text: t}, nil
}

// counted is the texts of all factors with least to most characters.
func (c *compiler) counted(factors []automaton.Factor, least, most int) (*automaton.String, error) {
	all := factors[0].DFA
	var err error
	if len(factors) > 1 || factors[0].Not {
		all, err = c.intersect(factors, 0, -1)
	}
	if err != nil || least == 0 && most < 0 {
		return &automaton.String{Text: all, Max: -1}, err
	}
	if s, err := automaton.Bounded(all, least, most); !errors.Is(err, automaton.ErrTooLarge) {
		return s, err
	}
	all, err = c.intersect([]automaton.Factor{{DFA: all}}, least, most)
	return &automaton.String{Text: all, Max: -1}, err
}

func (c *compiler) intersect(factors []automaton.Factor, least, most int) (*automaton.DFA, error) {
	d, err := c.crossed(factors, least, most)
	if err == nil {
		c.effort += 8 * d.Work
	} else {
		c.effort += 8 << 20
	}
	return d, err
}

// crossing is a cached intersection, or its error.
type crossing struct {
	d   *automaton.DFA
	err error
}

type crossingKey struct {
	factors     [automaton.MaxFactors]automaton.Factor
	least, most int
}

// crossed is intersect, cached for all compilations of the document.
func (r *rounds) crossed(factors []automaton.Factor, least, most int) (*automaton.DFA, error) {
	if n := automaton.MaxFactors; len(factors) > n {
		first, err := r.crossed(factors[:n], 0, -1)
		if err != nil {
			return nil, err
		}
		return r.crossed(append([]automaton.Factor{{DFA: first}}, factors[n:]...), least, most)
	}
	key := crossingKey{least: least, most: most}
	copy(key.factors[:], factors)
	entry, ok := r.crossings[key]
	if !ok {
		entry.d, entry.err = automaton.Intersect(factors, least, most)
		r.crossings[key] = entry
	}
	return entry.d, entry.err
}

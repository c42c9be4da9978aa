// Whether a listed value of a schema (enum, const) satisfies the keywords around it.

package schema

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

func (c *compiler) satisfies(v *jsondoc.Value, s *schema) (bool, error) {
	variants, err := c.variants([]*schema{s})
	if err != nil {
		return false, err
	}
	for _, variant := range variants {
		if ok, err := c.holds(v, variant); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (c *compiler) holds(v *jsondoc.Value, schemas []*schema) (bool, error) {
	for _, s := range schemas {
		if ok, err := c.scalarHolds(v, s); !ok {
			return false, err
		}
	}
	switch v.Kind {
	case jsondoc.Array:
		return c.arrayHolds(v, schemas)
	case jsondoc.Object:
		return c.objectHolds(v, schemas)
	}
	return true, nil
}

// scalarHolds reports whether a value satisfies a schema's own keywords, except those of arrays and
// objects.
func (c *compiler) scalarHolds(v *jsondoc.Value, s *schema) (bool, error) {
	if err := c.poll(); err != nil {
		return false, err
	}
	types, integers, err := typesOf(s)
	if err != nil {
		return false, err
	}
	if types>>v.Kind&1 == 0 {
		return false, nil
	}
	if e := s.value.Get("enum"); e != nil && !c.members(e)[canonical(v, true)] {
		return false, nil
	}
	if k := s.value.Get("const"); k != nil && canonical(k, true) != canonical(v, true) {
		return false, nil
	}
	schemas := []*schema{s}
	switch v.Kind {
	case jsondoc.Number:
		r := rational(v.Text)
		spec, err := readNumbers(schemas, integers)
		return err == nil && r != nil && spec.Holds(r), err
	case jsondoc.String:
		least, most, err := count(schemas, "minLength", "maxLength")
		if n := utf8.RuneCountInString(v.Text); err != nil || n < least || most >= 0 && n > most {
			return false, err
		}
		factors, err := c.expressions(s)
		if errors.Is(err, errNothing) {
			return false, nil
		}
		for _, f := range factors {
			if f.DFA.Accepts(v.Text) == f.Not {
				return false, err
			}
		}
		return err == nil, err
	}
	return true, nil
}

// members are the values of an enum, as canonical texts. The set is cached: each of its values is
// looked up in it, and pairwise comparison would be quadratic.
func (c *compiler) members(enum *jsondoc.Value) map[string]bool {
	set, ok := c.enums[enum]
	if !ok {
		set = make(map[string]bool, len(enum.Items))
		for _, v := range enum.Items {
			set[canonical(v, true)] = true
		}
		c.enums[enum] = set
	}
	return set
}

func (c *compiler) allHold(v *jsondoc.Value, node int32) (bool, error) {
	for _, s := range c.nodes[node].all {
		if ok, err := c.satisfies(v, s); !ok {
			return false, err
		}
	}
	return true, nil
}

func (c *compiler) arrayHolds(v *jsondoc.Value, schemas []*schema) (bool, error) {
	shape, err := c.arrayShape(schemas)
	if err != nil {
		return false, err
	}
	a := shape.array
	if len(v.Items) < a.Min || a.Max >= 0 && len(v.Items) > a.Max {
		return false, nil
	}
	matches := 0
	for i, item := range v.Items {
		node := a.Items
		if i < len(a.Prefix) {
			node = a.Prefix[i]
		}
		if ok, err := c.allHold(item, node); !ok {
			return false, err
		}
		if a.Least > 0 {
			ok, err := c.allHold(item, a.Matches[min(i, len(a.Prefix))])
			if err != nil {
				return false, err
			}
			if ok {
				matches++
			}
		}
	}
	return matches >= a.Least, nil
}

func (c *compiler) objectHolds(v *jsondoc.Value, schemas []*schema) (bool, error) {
	shape, err := c.objectShape(schemas)
	if err != nil {
		return false, err
	}
	o := shape.object
	if len(v.Members) < o.Min || o.Max >= 0 && len(v.Members) > o.Max {
		return false, nil
	}
	for _, p := range o.Properties {
		if p.Required && v.Get(p.Name) == nil {
			return false, nil
		}
	}
	for _, m := range v.Members {
		value := int32(-1)
		if i := slices.IndexFunc(o.Properties,
			func(p automaton.Property) bool { return p.Name == m.Name }); i >= 0 {
			value = o.Properties[i].Value
		} else {
			for _, x := range o.Extra {
				if x.Name.Accepts(m.Name) {
					value = x.Value
				}
			}
		}
		if value < 0 {
			return false, nil
		}
		if ok, err := c.allHold(m.Value, value); !ok {
			return false, err
		}
	}
	return true, nil
}

// Whether a value that a schema lists (enum, const) fulfils the keywords around it.

package grammar

import (
	"math/big"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// fulfils tells whether a value fulfils a schema with all it refers to.
func (c *compiler) fulfils(v *jsondoc.Value, s *schema) (bool, error) {
	variants, err := c.variants([]*schema{s})
	if err != nil {
		return false, err
	}
	for _, own := range variants {
		all := true
		for _, s := range own {
			ok, err := c.holds(v, s)
			if err != nil {
				return false, err
			}
			all = all && ok
		}
		if all {
			return true, nil
		}
	}
	return false, nil
}

// holds tells whether a value fulfils a schema's own keywords.
func (c *compiler) holds(v *jsondoc.Value, s *schema) (bool, error) {
	types, integers, err := typesOf(s)
	if err != nil {
		return false, err
	}
	if types>>v.Kind&1 == 0 {
		return false, nil
	}
	if e := s.at.Get("enum"); e != nil && !slices.ContainsFunc(e.Items,
		func(o *jsondoc.Value) bool { return equal(v, o) }) {
		return false, nil
	}
	if k := s.at.Get("const"); k != nil && !equal(k, v) {
		return false, nil
	}
	own := []*schema{s}
	switch v.Kind {
	case jsondoc.Number:
		r := rational(v.Text)
		if r == nil || integers && !r.IsInt() {
			return false, nil
		}
		shape, err := c.numberShape(own, integers)
		if err != nil || shape == nil {
			return false, err
		}
		return inBounds(r, s), nil
	case jsondoc.String:
		least, most, err := count(own, "minLength", "maxLength")
		if n := characters(v.Text); err != nil || n < least || most >= 0 && n > most {
			return false, err
		}
		factors, err := c.expressions(s)
		for _, f := range factors {
			if !f.d.accepts(v.Text) {
				return false, err
			}
		}
		return err == nil, err
	case jsondoc.Array:
		return c.arrayHolds(v, s)
	case jsondoc.Object:
		return c.objectHolds(v, s)
	}
	return true, nil
}

// inBounds tells whether a number fulfils the keywords of numbers, which were checked.
func inBounds(r *big.Rat, s *schema) bool {
	for _, m := range s.at.Members {
		if m.Value.Kind != jsondoc.Number {
			continue
		}
		limit := rational(m.Value.Text)
		if limit == nil {
			continue
		}
		bad := false
		switch order := r.Cmp(limit); m.Name {
		case "minimum":
			old := s.at.Get("exclusiveMinimum")
			bad = order < 0 || order == 0 && old != nil && old.Truth
		case "maximum":
			old := s.at.Get("exclusiveMaximum")
			bad = order > 0 || order == 0 && old != nil && old.Truth
		case "exclusiveMinimum":
			bad = order <= 0
		case "exclusiveMaximum":
			bad = order >= 0
		case "multipleOf":
			bad = !new(big.Rat).Quo(r, limit).IsInt()
		}
		if bad {
			return false
		}
	}
	return true
}

func (c *compiler) arrayHolds(v *jsondoc.Value, s *schema) (bool, error) {
	if _, err := c.arrayShape([]*schema{s}); err != nil {
		return false, err
	}
	least, most, err := count([]*schema{s}, "minItems", "maxItems")
	if err != nil || len(v.Items) < least || most >= 0 && len(v.Items) > most {
		return false, err
	}
	prefix, err := c.list(s, "prefixItems")
	if err != nil {
		return false, err
	}
	for i, item := range v.Items {
		sub := s
		if i < len(prefix) {
			sub = prefix[i]
		} else if d := s.at.Get("items"); d != nil {
			sub = c.at(d, s.path+"/items")
		} else {
			continue
		}
		if ok, err := c.fulfils(item, sub); !ok {
			return false, err
		}
	}
	return true, nil
}

func (c *compiler) objectHolds(v *jsondoc.Value, s *schema) (bool, error) {
	shape, err := c.objectShape([]*schema{s})
	if err != nil {
		return false, err
	}
	o := shape.object
	if len(v.Members) < o.min || o.max >= 0 && len(v.Members) > o.max {
		return false, nil
	}
	for _, p := range o.properties {
		if p.required && v.Get(p.name) == nil {
			return false, nil
		}
	}
	for _, m := range v.Members {
		value := int32(-1)
		if i := slices.IndexFunc(o.properties,
			func(p property) bool { return p.name == m.Name }); i >= 0 {
			value = o.properties[i].value
		} else {
			for _, x := range o.extra {
				if c.program.strings[x.name].dfa().accepts(m.Name) {
					value = x.value
				}
			}
		}
		if value < 0 {
			return false, nil
		}
		for _, sub := range c.nodes[value].all {
			if ok, err := c.fulfils(m.Value, sub); !ok {
				return false, err
			}
		}
	}
	return true, nil
}

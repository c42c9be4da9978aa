// Whether a value that a schema lists (enum, const) fulfils the keywords around it.

package grammar

import (
	"math/big"
	"slices"
)

// fulfils tells whether a value fulfils a schema with all it refers to.
func (c *compiler) fulfils(v *doc, s *schema) (bool, error) {
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
func (c *compiler) holds(v *doc, s *schema) (bool, error) {
	types, integers, err := typesOf(s)
	if err != nil {
		return false, err
	}
	if types>>v.kind&1 == 0 {
		return false, nil
	}
	if e := s.at.get("enum"); e != nil && !slices.ContainsFunc(e.items, v.equal) {
		return false, nil
	}
	if k := s.at.get("const"); k != nil && !k.equal(v) {
		return false, nil
	}
	own := []*schema{s}
	switch v.kind {
	case docNumber:
		r := rational(v.text)
		if r == nil || integers && !r.IsInt() {
			return false, nil
		}
		shape, err := c.numberShape(own, integers)
		if err != nil || shape == nil {
			return false, err
		}
		return inBounds(r, s), nil
	case docString:
		least, most, err := count(own, "minLength", "maxLength")
		if n := characters(v.text); err != nil || n < least || most >= 0 && n > most {
			return false, err
		}
		factors, err := c.expressions(s)
		for _, f := range factors {
			if !f.d.accepts(v.text) {
				return false, err
			}
		}
		return err == nil, err
	case docArray:
		return c.arrayHolds(v, s)
	case docObject:
		return c.objectHolds(v, s)
	}
	return true, nil
}

// inBounds tells whether a number fulfils the keywords of numbers, which were checked.
func inBounds(r *big.Rat, s *schema) bool {
	for _, m := range s.at.members {
		if m.value.kind != docNumber {
			continue
		}
		limit := rational(m.value.text)
		if limit == nil {
			continue
		}
		bad := false
		switch order := r.Cmp(limit); m.key {
		case "minimum":
			old := s.at.get("exclusiveMinimum")
			bad = order < 0 || order == 0 && old != nil && old.truth
		case "maximum":
			old := s.at.get("exclusiveMaximum")
			bad = order > 0 || order == 0 && old != nil && old.truth
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

func (c *compiler) arrayHolds(v *doc, s *schema) (bool, error) {
	if _, err := c.arrayShape([]*schema{s}); err != nil {
		return false, err
	}
	least, most, err := count([]*schema{s}, "minItems", "maxItems")
	if err != nil || len(v.items) < least || most >= 0 && len(v.items) > most {
		return false, err
	}
	prefix, err := c.list(s, "prefixItems")
	if err != nil {
		return false, err
	}
	for i, item := range v.items {
		sub := s
		if i < len(prefix) {
			sub = prefix[i]
		} else if d := s.at.get("items"); d != nil {
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

func (c *compiler) objectHolds(v *doc, s *schema) (bool, error) {
	shape, err := c.objectShape([]*schema{s})
	if err != nil {
		return false, err
	}
	o := shape.object
	if len(v.members) < o.min || o.max >= 0 && len(v.members) > o.max {
		return false, nil
	}
	for _, p := range o.properties {
		if p.required && v.get(p.name) == nil {
			return false, nil
		}
	}
	for _, m := range v.members {
		value := int32(-1)
		if i := slices.IndexFunc(o.properties, func(p property) bool { return p.name == m.key }); i >= 0 {
			value = o.properties[i].value
		} else {
			for _, x := range o.extra {
				if c.program.strings[x.name].dfa().accepts(m.key) {
					value = x.value
				}
			}
		}
		if value < 0 {
			return false, nil
		}
		for _, sub := range c.nodes[value].all {
			if ok, err := c.fulfils(m.value, sub); !ok {
				return false, err
			}
		}
	}
	return true, nil
}

// Shapes of arrays and objects: what their items and members must fulfil is a node of its own, found later.

package grammar

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/jsondoc"
)

// arrayShape intersects prefixItems, items and the bounds.
func (c *compiler) arrayShape(own []*schema) (*shape, error) {
	least, most, err := count(own, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	longest := 0
	prefixes := make([][]*schema, len(own))
	for i, s := range own {
		if items := s.at.Get("items"); items != nil && items.Kind == jsondoc.Array {
			return nil, &UnsupportedError{s.path, "items", "a list is not supported, use prefixItems"}
		}
		if u := s.at.Get("uniqueItems"); u != nil && u.Truth && (most < 0 || most > 1) {
			return nil, &UnsupportedError{s.path, "uniqueItems", "is not supported"}
		}
		if prefixes[i], err = c.list(s, "prefixItems"); err != nil {
			return nil, err
		}
		longest = max(longest, len(prefixes[i]))
	}
	a := &arrayShape{min: least, max: most}
	at := func(i int) int32 {
		var all []*schema
		for k, s := range own {
			if i < len(prefixes[k]) {
				all = append(all, prefixes[k][i])
			} else if items := s.at.Get("items"); items != nil {
				all = append(all, c.at(items, s.path+"/items"))
			}
		}
		return c.node(all)
	}
	for i := range longest {
		a.prefix = append(a.prefix, at(i))
	}
	a.items = at(longest)
	return &shape{array: a}, nil
}

// objectShape intersects properties, patterns, additionalProperties, required and the bounds.
func (c *compiler) objectShape(own []*schema) (*shape, error) {
	least, most, err := count(own, "minProperties", "maxProperties")
	if err != nil {
		return nil, err
	}
	type keyPattern struct {
		d  *dfa
		of map[*schema][]*schema // by the schema that has the pattern, what it demands of the value
	}
	var patterns []*keyPattern
	var names []string
	known := map[string]bool{}
	required := map[string]bool{}
	for _, s := range own {
		if d := s.at.Get("properties"); d != nil {
			if d.Kind != jsondoc.Object {
				return nil, &InvalidError{s.path, "properties is an object"}
			}
			for _, m := range d.Members {
				if !known[m.Name] {
					known[m.Name] = true
					names = append(names, m.Name)
				}
			}
		}
		d := s.at.Get("patternProperties")
		if d == nil {
			continue
		}
		for _, m := range d.Members {
			p, err := pattern(m.Name, true)
			if errors.Is(err, errEmpty) {
				continue
			}
			if err != nil {
				return nil, &UnsupportedError{s.path, "patternProperties", fmt.Sprintf("%q: %s", m.Name, err)}
			}
			if err := c.spend(s, "patternProperties", p); err != nil {
				return nil, err
			}
			i := slices.IndexFunc(patterns, func(k *keyPattern) bool { return k.d == p })
			if i < 0 {
				i = len(patterns)
				patterns = append(patterns, &keyPattern{p, map[*schema][]*schema{}})
			}
			patterns[i].of[s] = append(patterns[i].of[s], c.at(m.Value, s.path+"/patternProperties/"+escape(m.Name)))
		}
	}
	if len(patterns) > mostPatterns {
		return nil, &UnsupportedError{own[0].path, "patternProperties", fmt.Sprintf("more than %d patterns are not supported", mostPatterns)}
	}
	for _, s := range own {
		d := s.at.Get("required")
		if d == nil || d.Kind == jsondoc.Bool { // draft 3 has it as a truth of the property
			continue
		}
		if d.Kind != jsondoc.Array {
			return nil, &InvalidError{s.path, "required is a list of names"}
		}
		for _, n := range d.Items {
			if n.Kind != jsondoc.String {
				return nil, &InvalidError{s.path, "required is a list of names"}
			}
			required[n.Text] = true
			if !known[n.Text] {
				known[n.Text] = true
				names = append(names, n.Text)
			}
		}
	}
	// value is the node of a member's value: what properties, the patterns that match and else additionalProperties say.
	value := func(name string, listed bool, matches func(int) bool) int32 {
		var all []*schema
		for _, s := range own {
			said := false
			if d := s.at.Get("properties"); d != nil && listed {
				if v := d.Get(name); v != nil {
					all = append(all, c.at(v, s.path+"/properties/"+escape(name)))
					said = true
				}
			}
			for i, p := range patterns {
				if subs := p.of[s]; len(subs) > 0 && matches(i) {
					all = append(all, subs...)
					said = true
				}
			}
			if d := s.at.Get("additionalProperties"); d != nil && !said {
				all = append(all, c.at(d, s.path+"/additionalProperties"))
			}
		}
		return c.node(all)
	}
	o := &objectShape{min: least, max: most}
	letters := 0
	for _, name := range names {
		letters += len(name)
		v := value(name, true, func(i int) bool { return patterns[i].d.accepts(name) })
		o.properties = append(o.properties, property{name, string(append(jsondoc.Quote(nil, name), ':')), v, required[name]})
	}
	if letters > mostStates/2 {
		return nil, &UnsupportedError{own[0].path, "properties", "their names are too long in all"}
	}
	for set := range 1 << len(patterns) {
		v := value("", false, func(i int) bool { return set>>i&1 == 1 })
		if c.impossible(v) {
			continue
		}
		spec := &stringSpec{max: -1, make: func() *dfa {
			d, err := otherThan(names)
			if err != nil {
				panic("grammar: " + err.Error()) // the names were counted
			}
			return d
		}}
		if len(names) == 0 {
			spec = c.anyString
		}
		if len(patterns) > 0 {
			others, err := otherThan(names)
			if err == nil {
				factors := []factor{{d: others}}
				for i, p := range patterns {
					factors = append(factors, factor{p.d, set>>i&1 == 0})
				}
				others, err = intersect(factors, 0, -1)
			}
			if errors.Is(err, errEmpty) {
				continue
			}
			if err != nil {
				return nil, &UnsupportedError{own[0].path, "patternProperties", err.Error()}
			}
			if err := c.spend(own[0], "patternProperties", others); err != nil {
				return nil, err
			}
			spec = &stringSpec{text: others, max: -1}
		}
		o.extra = append(o.extra, extraKey{c.addString(spec), v})
	}
	return &shape{object: o}, nil
}

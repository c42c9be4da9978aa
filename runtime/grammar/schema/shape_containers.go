// Shapes of arrays and objects: what their items and members must fulfil is a node of its own,
// found later.

package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
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
			return nil, s.unsupported("items", "a list is not supported, use prefixItems")
		}
		if u := s.at.Get("uniqueItems"); u != nil && u.Truth && (most < 0 || most > 1) {
			return nil, s.unsupported("uniqueItems", "is not supported")
		}
		if prefixes[i], err = c.list(s, "prefixItems"); err != nil {
			return nil, err
		}
		longest = max(longest, len(prefixes[i]))
	}
	a := &automaton.Array{Min: least, Max: most}
	at := func(i int) int32 {
		var all []*schema
		for k, s := range own {
			if i < len(prefixes[k]) {
				all = append(all, prefixes[k][i])
			} else if items := s.at.Get("items"); items != nil {
				all = append(all, c.at(items, s.under("items")))
			}
		}
		return c.node(all)
	}
	for i := range longest {
		a.Prefix = append(a.Prefix, at(i))
	}
	a.Items = at(longest)
	return &shape{array: a}, nil
}

// objectKeywords is what the schemas of an object say about its members.
type objectKeywords struct {
	*compiler
	own      []*schema
	names    []string // of properties and required, each once
	required map[string]bool
	patterns []*keyPattern
	// by schema, nil for none: properties and additionalProperties
	listed, additional []*jsondoc.Value
}

// keyPattern is one of patternProperties.
type keyPattern struct {
	d  *automaton.DFA
	of map[*schema][]*schema // by the schema that has the pattern, what it demands of the value
}

// objectShape intersects properties, patterns, additionalProperties, required and the bounds.
func (c *compiler) objectShape(own []*schema) (*shape, error) {
	least, most, err := count(own, "minProperties", "maxProperties")
	if err != nil {
		return nil, err
	}
	names := 0
	for _, s := range own {
		names += len(s.at.Member("properties").Members)
	}
	k := &objectKeywords{compiler: c, own: own, required: make(map[string]bool, names),
		names: make([]string, 0, names)}
	if err := k.read(); err != nil {
		return nil, err
	}
	o := &objectShape{automaton.Object{Min: least, Max: most}, own}
	letters := 0
	o.Properties = make([]automaton.Property, 0, len(k.names))
	for _, name := range k.names {
		letters += len(name)
		v := k.value(name, true, func(i int) bool { return k.patterns[i].d.Accepts(name) })
		o.Properties = append(o.Properties, automaton.Property{Name: name, Value: v,
			Required: k.required[name]})
	}
	if letters > automaton.MostStates/2 {
		return nil, together(own, "their names are too long in all", "properties", "properties",
			"required")
	}
	for set := range 1 << len(k.patterns) {
		v := k.value("", false, func(i int) bool { return set>>i&1 == 1 })
		if c.impossible(v) {
			continue
		}
		name, err := k.otherNames(set)
		if err != nil {
			return nil, err
		}
		if name != nil {
			o.Extra = append(o.Extra, automaton.Extra{Name: name, Value: v})
		}
	}
	return &shape{object: o}, nil
}

// read reads properties, patternProperties and required.
func (k *objectKeywords) read() error {
	for _, s := range k.own {
		d := s.at.Get("properties")
		if d != nil {
			if d.Kind != jsondoc.Object {
				return &InvalidError{s.path(), "properties is an object"}
			}
			for _, m := range d.Members {
				k.name(m.Name)
			}
		}
		k.listed = append(k.listed, d)
		k.additional = append(k.additional, s.at.Get("additionalProperties"))
		if err := k.readPatterns(s); err != nil {
			return err
		}
	}
	if len(k.patterns) > mostPatterns {
		return together(k.own, fmt.Sprintf("more than %d patterns are not supported", mostPatterns),
			"patternProperties", "patternProperties", "additionalProperties")
	}
	for _, s := range k.own {
		d := s.at.Get("required")
		if d == nil || d.Kind == jsondoc.Bool { // draft 3: a boolean in the property's schema
			continue
		}
		notText := func(n *jsondoc.Value) bool { return n.Kind != jsondoc.String }
		if d.Kind != jsondoc.Array || slices.ContainsFunc(d.Items, notText) {
			return &InvalidError{s.path(), "required is a list of names"}
		}
		for _, n := range d.Items {
			k.name(n.Text)
			k.required[n.Text] = true
		}
	}
	return nil
}

func (k *objectKeywords) name(name string) {
	if _, known := k.required[name]; !known {
		k.required[name] = false
		k.names = append(k.names, name)
	}
}

func (k *objectKeywords) readPatterns(s *schema) error {
	d := s.at.Get("patternProperties")
	if d == nil {
		return nil
	}
	for _, m := range d.Members {
		p, err := automaton.Pattern(k.ctx, m.Name, true)
		if errors.Is(err, automaton.ErrEmpty) {
			continue
		}
		if err != nil {
			return s.unsupported("patternProperties", fmt.Sprintf("%q: %s", m.Name, err),
				"additionalProperties")
		}
		if err := k.spend(s, "patternProperties", p); err != nil {
			return err
		}
		i := slices.IndexFunc(k.patterns, func(o *keyPattern) bool { return o.d == p })
		if i < 0 {
			i = len(k.patterns)
			k.patterns = append(k.patterns, &keyPattern{p, map[*schema][]*schema{}})
		}
		of := k.patterns[i].of
		of[s] = append(of[s], k.at(m.Value, s.below("patternProperties", m.Name)))
	}
	return nil
}

// value is the node of a member's value. Each schema adds what properties and the matching patterns
// say, or if they say nothing what additionalProperties says.
func (k *objectKeywords) value(name string, listed bool, matches func(pattern int) bool) int32 {
	var room [8]*schema
	all := room[:0]
	for i, s := range k.own {
		said := false
		if d := k.listed[i]; d != nil && listed {
			if v := d.Get(name); v != nil {
				all = append(all, k.at(v, s.below("properties", name)))
				said = true
			}
		}
		for n, p := range k.patterns {
			if subs := p.of[s]; len(subs) > 0 && matches(n) {
				all = append(all, subs...)
				said = true
			}
		}
		if d := k.additional[i]; d != nil && !said {
			all = append(all, k.at(d, s.under("additionalProperties")))
		}
	}
	return k.node(all)
}

// otherNames are the names that are not listed and match just the patterns whose bits are in set;
// nil if there are none.
func (k *objectKeywords) otherNames(set int) (*automaton.String, error) {
	if len(k.names)+len(k.patterns) == 0 {
		return k.anyString, nil
	}
	names := slices.Clone(k.names)
	slices.Sort(names)
	var key []byte
	for _, name := range names {
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
	}
	spec := k.others[string(key)] // alternatives of one object share it
	if spec == nil {
		spec = &automaton.String{Max: -1, Make: func() *automaton.DFA {
			d, err := automaton.OtherThan(names)
			if err != nil {
				panic("grammar: " + err.Error()) // the names were counted
			}
			return d
		}}
		k.others[string(key)] = spec
	}
	if len(k.patterns) == 0 {
		return spec, nil
	}
	factors := []automaton.Factor{{DFA: spec.DFA()}}
	for i, p := range k.patterns {
		factors = append(factors, automaton.Factor{DFA: p.d, Not: set>>i&1 == 0})
	}
	others, err := k.crossed(factors, 0, -1)
	switch {
	case errors.Is(err, automaton.ErrEmpty):
		return nil, nil
	case err != nil:
		return nil, together(k.own, err.Error(), "patternProperties", "patternProperties",
			"additionalProperties")
	}
	if err := k.spend(k.own[0], "patternProperties", others); err != nil {
		return nil, err
	}
	return &automaton.String{Text: others, Max: -1}, nil
}

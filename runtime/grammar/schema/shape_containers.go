// Shapes of arrays and objects: the requirements of their items and members are separate nodes,
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

// arrayShape intersects prefixItems, items, contains and the bounds.
func (c *compiler) arrayShape(schemas []*schema) (*shape, error) {
	least, most, err := count(schemas, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	longest := 0
	var unique *schema
	prefixes := make([][]*schema, len(schemas))
	for i, s := range schemas {
		if u := s.value.Get("uniqueItems"); u != nil && u.Truth && (most < 0 || most > 1) {
			unique = s
		}
		if prefixes[i], err = c.list(s, "prefixItems"); err != nil {
			return nil, err
		}
		longest = max(longest, len(prefixes[i]))
	}
	a := &automaton.Array{Min: least, Max: most, Unique: unique != nil}
	nodeAt := func(i int) int32 {
		var all, evaluating []*schema
		for k, s := range schemas {
			items := s.value.Get("items")
			if i < len(prefixes[k]) {
				all = append(all, prefixes[k][i])
			} else if items != nil {
				all = append(all, c.schemaOf(items, s.under("items")))
			}
			if i < len(prefixes[k]) || items != nil {
				evaluating = append(evaluating, s)
			}
		}
		return c.node(c.unevaluated(all, schemas, evaluating, "unevaluatedItems"))
	}
	for i := range longest {
		a.Prefix = append(a.Prefix, nodeAt(i))
	}
	a.Items = nodeAt(longest)
	var sought []*schema
	for _, s := range schemas {
		least, err := integerOf(s, "minContains")
		if err != nil {
			return nil, err
		}
		d := s.value.Get("contains")
		if d == nil || least == 0 {
			continue
		}
		if a.Least > 0 {
			return nil, s.unsupported("contains", "is not supported beside another")
		}
		sought, a.Least = append(sought, c.schemaOf(d, s.under("contains"))), max(least, 1)
	}
	if a.Least > 0 {
		for _, item := range append(slices.Clone(a.Prefix), a.Items) {
			all := append(slices.Clone(c.nodes[item].all), sought...)
			a.Matches = append(a.Matches, c.node(all))
		}
	}
	if unique != nil && least > 1 && (longest > 0 || a.Least > 1) {
		return nil, unique.unsupported("uniqueItems",
			"is not supported with minItems where the items are not all alike")
	}
	return &shape{array: a, unique: unique}, nil
}

// objectKeywords is an object's keywords about its members.
type objectKeywords struct {
	*compiler
	schemas  []*schema
	names    []string // of properties and required, each once
	required map[string]bool
	patterns []*keyPattern
	naming   []*schema // of propertyNames
	// by schema, nil for none: properties and additionalProperties
	listed, additional []*jsondoc.Value
}

// nameSpec is one way in which a name satisfies propertyNames.
type nameSpec struct {
	factors     []automaton.Factor
	least, most int
}

// nameSpecs are the ways to spell an unlisted name.
func (k *objectKeywords) nameSpecs() (out []nameSpec, err error) {
	for _, s := range k.schemas {
		if d := s.value.Get("propertyNames"); d != nil {
			k.naming = append(k.naming, k.schemaOf(d, s.under("propertyNames")))
		}
	}
	if len(k.naming) == 0 {
		return []nameSpec{{most: -1}}, nil
	}
	text := k.synthesizeObject(k.naming[0].owns("type"), typeMember("string"))
	variants, err := k.variants(append(slices.Clone(k.naming), text))
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, variant := range variants {
		shapes, err := k.shapes(variant)
		if err != nil {
			return nil, err
		}
		for _, s := range shapes {
			switch {
			case s.text == nil: // a listed name
				v, err := jsondoc.Parse([]byte(s.literal), jsondoc.Lenient)
				if err != nil {
					return nil, err
				}
				listed = append(listed, v.Text)
			case s.text == k.anyString:
				out = append(out, nameSpec{most: -1})
			default:
				out = append(out, nameSpec{[]automaton.Factor{{DFA: s.text.DFA()}}, s.text.Min,
					s.text.Max})
			}
		}
	}
	if len(listed) == 0 {
		return out, nil
	}
	d, err := automaton.OtherThan(listed)
	if err != nil {
		return nil, k.naming[0].unsupported("enum", err.Error())
	}
	return append(out, nameSpec{[]automaton.Factor{{DFA: d, Not: true}}, 0, -1}), nil
}

// keyPattern is one of patternProperties.
type keyPattern struct {
	d       *automaton.DFA
	demands map[*schema][]*schema // by the schema with the pattern, its requirements of the value
}

// objectShape intersects properties, patterns, additionalProperties, required and the bounds.
func (c *compiler) objectShape(schemas []*schema) (*shape, error) {
	least, most, err := count(schemas, "minProperties", "maxProperties")
	if err != nil {
		return nil, err
	}
	names := 0
	for _, s := range schemas {
		names += len(s.value.Member("properties").Members)
	}
	k := &objectKeywords{compiler: c, schemas: schemas, required: make(map[string]bool, names),
		names: make([]string, 0, names)}
	if err := k.read(); err != nil {
		return nil, err
	}
	o := &objectShape{automaton.Object{Min: least, Max: most}, schemas}
	o.Properties = make([]automaton.Property, 0, len(k.names))
	specs, err := k.nameSpecs()
	if err != nil {
		return nil, err
	}
	for _, name := range k.names {
		v := k.value(name, true, func(i int) bool { return k.patterns[i].d.Accepts(name) })
		for _, s := range k.naming {
			if ok, err := k.satisfies(textValue(name), s); err != nil {
				return nil, err
			} else if !ok {
				v = k.node([]*schema{k.synthesize(s.owns("propertyNames"), falseSchema())})
			}
		}
		o.Properties = append(o.Properties, automaton.Property{Name: name, Value: v,
			Required: k.required[name]})
	}
	if prefixes(k.names) > automaton.MaxStates-16 {
		return nil, jointError(schemas, "their names are too long in all", "properties",
			"properties", "required")
	}
	for set := range 1 << len(k.patterns) {
		v := k.value("", false, func(i int) bool { return set>>i&1 == 1 })
		if c.impossible(v) {
			continue
		}
		for _, spec := range specs {
			name, err := k.otherNames(set, spec)
			if err != nil {
				return nil, err
			}
			if name != nil {
				o.Extra = append(o.Extra, automaton.Extra{Name: name, Value: v})
			}
		}
	}
	return &shape{object: o}, nil
}

func (k *objectKeywords) read() error {
	for _, s := range k.schemas {
		d := s.value.Get("properties")
		if d != nil {
			if d.Kind != jsondoc.Object {
				return &InvalidError{s.path(), "properties is an object"}
			}
			for _, m := range d.Members {
				k.name(m.Name)
			}
		}
		k.listed = append(k.listed, d)
		k.additional = append(k.additional, s.value.Get("additionalProperties"))
		if err := k.readPatterns(s); err != nil {
			return err
		}
	}
	if len(k.patterns) > maxPatterns {
		reason := fmt.Sprintf("more than %d patterns are not supported", maxPatterns)
		return jointError(k.schemas, reason, "patternProperties", "patternProperties",
			"additionalProperties")
	}
	for _, s := range k.schemas {
		d := s.value.Get("required")
		if d == nil || d.Kind == jsondoc.Bool { // draft 3: a boolean in the property's schema
			continue
		}
		if !isNames(d) {
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
	if _, ok := k.required[name]; !ok {
		k.required[name] = false
		k.names = append(k.names, name)
	}
}

func (k *objectKeywords) readPatterns(s *schema) error {
	d := s.value.Get("patternProperties")
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
		demands := k.patterns[i].demands
		demands[s] = append(demands[s], k.schemaOf(m.Value, s.below("patternProperties", m.Name)))
	}
	return nil
}

// value is the node of a member's value. Each schema adds properties and the matching patterns, or
// if none applies additionalProperties.
func (k *objectKeywords) value(name string, listed bool, matches func(pattern int) bool) int32 {
	var room [8]*schema
	all := room[:0]
	var evaluating []*schema
	for i, s := range k.schemas {
		evaluated := false
		if d := k.listed[i]; d != nil && listed {
			if v := d.Get(name); v != nil {
				all = append(all, k.schemaOf(v, s.below("properties", name)))
				evaluated = true
			}
		}
		for n, p := range k.patterns {
			if subs := p.demands[s]; len(subs) > 0 && matches(n) {
				all = append(all, subs...)
				evaluated = true
			}
		}
		d := k.additional[i]
		if d != nil && !evaluated {
			all = append(all, k.schemaOf(d, s.under("additionalProperties")))
		}
		if d != nil || evaluated {
			evaluating = append(evaluating, s)
		}
	}
	return k.node(k.unevaluated(all, k.schemas, evaluating, "unevaluatedProperties"))
}

// maxLazyBytes is the bytes of names above which their automaton is made during compilation;
// smaller ones are made on first use, because most are never used.
const maxLazyBytes = 1 << 10

// prefixes counts the prefixes of some names: the states of the automaton that distinguishes them.
func prefixes(names []string) (n int) {
	last := ""
	for _, name := range slices.Sorted(slices.Values(names)) {
		same := 0
		for same < len(name) && same < len(last) && name[same] == last[same] {
			same++
		}
		n += len(name) - same
		last = name
	}
	return n
}

// otherNames are the names that are not listed, match exactly the patterns whose bits are in set,
// and are spelled as spec requires; nil if there are none.
func (k *objectKeywords) otherNames(set int, spec nameSpec) (*automaton.String, error) {
	free := len(spec.factors) == 0
	if free && len(k.names)+len(k.patterns) == 0 {
		return k.anyString, nil
	}
	names := slices.Clone(k.names)
	slices.Sort(names)
	var key []byte
	for _, name := range names {
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
	}
	complement := k.complements[string(key)] // shared by alternatives of one object
	if complement == nil {
		complement = &automaton.String{Max: -1, Make: func() *automaton.DFA {
			d, err := automaton.OtherThan(names)
			if err != nil {
				panic("grammar: " + err.Error()) // the names were counted
			}
			return d
		}}
		k.complements[string(key)] = complement
		if len(key) > maxLazyBytes { // a token must not wait for it
			complement.DFA()
		}
	}
	if free && len(k.patterns) == 0 {
		return complement, nil
	}
	factors := append([]automaton.Factor{{DFA: complement.DFA()}}, spec.factors...)
	for i, p := range k.patterns {
		factors = append(factors, automaton.Factor{DFA: p.d, Not: set>>i&1 == 0})
	}
	name, err := k.counted(factors, spec.least, spec.most)
	switch {
	case errors.Is(err, automaton.ErrEmpty):
		return nil, nil
	case err != nil:
		return nil, jointError(k.schemas, err.Error(), "patternProperties", "patternProperties",
			"additionalProperties")
	}
	return name, k.spend(k.schemas[0], "patternProperties", name.Text)
}

// Logic: not, if, dependencies, and a oneOf with overlapping alternatives, rewritten with the
// keywords that shapes support.
//
// What must stay true: a rewrite has exactly the meaning of the keyword.

package schema

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// owner is the keyword of the document for which a schema was made.
type owner struct {
	schema  *schema
	keyword string
}

// negation is the alternatives of which one must hold; all: every value is allowed.
type negation struct {
	alternatives []*schema
	all          bool
}

func textValue(s string) *jsondoc.Value { return &jsondoc.Value{Kind: jsondoc.String, Text: s} }

func numberValue(r *big.Rat) *jsondoc.Value {
	return &jsondoc.Value{Kind: jsondoc.Number, Text: decimal(r)}
}

func listValue(items ...*jsondoc.Value) *jsondoc.Value {
	return &jsondoc.Value{Kind: jsondoc.Array, Items: items}
}

func objectValue(members ...jsondoc.Member) *jsondoc.Value {
	return &jsondoc.Value{Kind: jsondoc.Object, Members: members}
}

func member(name string, v *jsondoc.Value) jsondoc.Member {
	return jsondoc.Member{Name: name, Value: v}
}

func typeMember(name string) jsondoc.Member { return member("type", textValue(name)) }

func countMember(name string, n int) jsondoc.Member {
	return member(name, numberValue(big.NewRat(int64(n), 1)))
}

// singleMember is an object with one member, such as properties with one name.
func singleMember(name string, v *jsondoc.Value) *jsondoc.Value {
	return objectValue(member(name, v))
}

func falseSchema() *jsondoc.Value { return &jsondoc.Value{Kind: jsondoc.Bool} }

// synthesize makes the schema of a value that is not in the document. Its keywords have the meaning
// of the latest draft.
func (c *compiler) synthesize(o *owner, v *jsondoc.Value) *schema {
	s := c.schemaOf(v, o.schema.location)
	s.value, s.owner = v, o
	return s
}

func (c *compiler) synthesizeObject(o *owner, members ...jsondoc.Member) *schema {
	return c.synthesize(o, objectValue(members...))
}

// notOf is {"not": v}.
func (c *compiler) notOf(o *owner, v *jsondoc.Value) *jsondoc.Value {
	n := singleMember("not", v)
	c.synthesize(o, n)
	return n
}

// allOf is {"allOf": [...]}.
func (c *compiler) allOf(o *owner, list ...*jsondoc.Value) *schema {
	return c.synthesizeObject(o, member("allOf", listValue(list...)))
}

// owns is the owner of the schemas made for a keyword of s.
func (s *schema) owns(keyword string) *owner {
	return cmp.Or(s.owner, &owner{s, keyword})
}

// logic returns the demands of a schema's not, if and dependencies: groups of alternatives, one of
// each of which must hold. possible is false if no value satisfies them.
func (c *compiler) logic(s *schema) (groups [][]*schema, possible bool, err error) {
	if s.logicDone {
		return s.groups, s.groups != nil, nil
	}
	groups = [][]*schema{}
	for _, m := range s.value.Members {
		switch m.Name {
		case "not":
			n, err := c.negate(s.owns(m.Name), c.schemaOf(m.Value, s.under("not")))
			switch {
			case err != nil:
				return nil, false, err
			case n.all:
			case len(n.alternatives) == 0:
				s.logicDone = true
				return nil, false, nil
			default:
				groups = append(groups, n.alternatives)
			}
		case "if":
			then, els := s.value.Get("then"), s.value.Get("else")
			if then == nil && els == nil && c.places == nil {
				continue
			}
			o := s.owns(m.Name)
			c.schemaOf(m.Value, s.under("if"))
			yes, no := []*jsondoc.Value{m.Value}, []*jsondoc.Value{c.notOf(o, m.Value)}
			if then != nil {
				c.schemaOf(then, s.under("then"))
				yes = append(yes, then)
			}
			if els != nil {
				c.schemaOf(els, s.under("else"))
				no = append(no, els)
			}
			groups = append(groups, []*schema{c.allOf(o, yes...), c.allOf(o, no...)})
		case "dependentRequired", "dependentSchemas", "dependencies":
			o := s.owns(m.Name)
			for _, d := range m.Value.Members {
				group, err := c.dependency(o, s.below(m.Name, d.Name), d)
				if err != nil {
					return nil, false, err
				}
				if group != nil {
					groups = append(groups, group)
				}
			}
		}
	}
	s.groups, s.logicDone = groups, true
	return groups, true, nil
}

// dependency returns two alternatives: a name is absent, or its requirements hold.
func (c *compiler) dependency(o *owner, loc location, d jsondoc.Member) ([]*schema, error) {
	with := []jsondoc.Member{typeMember("object")}
	names := []*jsondoc.Value{textValue(d.Name)}
	switch d.Value.Kind {
	case jsondoc.Array:
		if len(d.Value.Items) == 0 {
			return nil, nil
		}
		names = append(names, d.Value.Items...)
	case jsondoc.String: // draft 3
		names = append(names, d.Value)
	case jsondoc.Object, jsondoc.Bool:
		c.schemaOf(d.Value, loc)
		with = append(with, member("allOf", listValue(d.Value)))
	default:
		return nil, &InvalidError{loc.path(), "a dependency is names or a schema"}
	}
	for _, n := range names {
		if n.Kind != jsondoc.String {
			return nil, &InvalidError{loc.path(), "a dependency is names or a schema"}
		}
	}
	with = append(with, member("required", listValue(names...)))
	without := c.synthesizeObject(o, member("properties", singleMember(d.Name, falseSchema())))
	return []*schema{without, c.synthesizeObject(o, with...)}, nil
}

// exclusive returns the alternatives of a oneOf, each without the values of those that it overlaps.
func (c *compiler) exclusive(s *schema, subs []*schema) []*schema {
	stages := c.stages[s.original]
	if cached := c.exclusives[s]; cached != nil {
		return cached
	}
	o := s.owns("oneOf")
	out := slices.Clone(subs)
	for i, a := range subs {
		list := []*jsondoc.Value{a.original}
		excluded := uint8(0)
		for j, b := range subs {
			p := stages[[2]int{min(i, j), max(i, j)}]
			if i == j || p.stage < negated {
				continue
			}
			if len(c.relaxed) > 0 { // which of them could satisfy both is unknown
				p.full, p.partial = 0, p.full|p.partial
			}
			excluded |= p.full
			if p.partial == 0 {
				continue
			}
			// outside of these kinds it need not be checked
			outside := c.synthesize(o, onlyKinds(^p.partial)).original
			list = append(list, c.synthesizeObject(o, member("anyOf",
				listValue(outside, c.notOf(o, b.original)))).original)
		}
		if excluded != 0 {
			list = append(list, c.synthesize(o, onlyKinds(^excluded)).original)
		}
		if len(list) > 1 {
			out[i] = c.allOf(o, list...)
		}
	}
	c.exclusives[s] = out
	return out
}

func (c *compiler) withoutOneOf(s *schema) *schema {
	if cached := c.withoutOneOfs[s]; cached != nil {
		return cached
	}
	v := *s.value
	v.Members = slices.DeleteFunc(slices.Clone(v.Members),
		func(m jsondoc.Member) bool {
			return m.Name == "oneOf" || strings.HasPrefix(m.Name, "unevaluated")
		})
	b := c.synthesize(s.owns("oneOf"), objectValue(v.Members...))
	b.location, b.strings, b.fractions, b.beyond = s.location, s.strings, s.fractions, s.beyond
	c.withoutOneOfs[s] = b
	return b
}

// fault turns an error below a keyword into an error of the keyword.
func (o *owner) fault(err error) error {
	if u, ok := err.(*UnsupportedError); ok {
		return o.refuse("cannot be held with " + u.Keyword + " in it")
	}
	return err
}

func (o *owner) refuse(reason string) *UnsupportedError {
	if o.keyword == "oneOf" {
		reason = "two alternatives may hold at once (" + reason + "); use anyOf"
	}
	return &UnsupportedError{Path: o.schema.path(), Keyword: o.keyword, Reason: reason,
		schemas: []*schema{o.schema}, keywords: []string{o.keyword}}
}

// spread resolves one of schemas that requires a member outside some names: it returns schemas once
// for each possible name of the member.
func (c *compiler) spread(schemas []*schema) ([][]*schema, error) {
	i := slices.IndexFunc(schemas, func(s *schema) bool { return s.beyond != nil })
	if i < 0 {
		return [][]*schema{schemas}, nil
	}
	asks := schemas[i]
	rest := slices.Delete(slices.Clone(schemas), i, i+1)
	for _, s := range rest {
		for _, n := range s.value.Member("required").Items {
			if !slices.Contains(asks.beyond, n.Text) {
				return c.spread(append(rest, c.synthesizeObject(asks.owner, typeMember("object"))))
			}
		}
	}
	ends := false
	var names []string
	for _, s := range schemas {
		for _, p := range s.value.Member("properties").Members {
			if !slices.Contains(names, p.Name) && !slices.Contains(asks.beyond, p.Name) {
				names = append(names, p.Name)
			}
		}
		ends = ends || closed(s)
	}
	types := uint8(0xff)
	for _, s := range schemas {
		t, _, err := typesOf(s)
		if err != nil {
			return nil, err
		}
		types &= t
	}
	if types>>jsondoc.Object&1 == 0 {
		return nil, nil
	}
	if !ends {
		return nil, asks.owner.refuse("cannot be held with additionalProperties in it")
	}
	var out [][]*schema
	for _, name := range names {
		with := c.synthesizeObject(asks.owner, typeMember("object"),
			member("required", listValue(textValue(name))))
		expanded, err := c.spread(append(slices.Clone(rest), with))
		if err != nil {
			return nil, err
		}
		out = append(out, expanded...)
	}
	return out, nil
}

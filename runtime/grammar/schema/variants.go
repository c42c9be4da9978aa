// Variants: $ref, allOf, anyOf, oneOf and logic resolved into alternatives, each a list of schemas
// whose own keywords all hold.
//
// What must stay true: a value satisfies the schemas if and only if it satisfies one of the
// variants. Unsatisfiable variants are dropped as early as is cheap, because alternatives multiply.

package schema

import (
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// variants resolves the schemas that all must hold into alternatives.
func (c *compiler) variants(all []*schema) ([][]*schema, error) {
	w := variantWalk{compiler: c, all: all}
	if err := w.walk(all, nil, nil, 0xff); err != nil {
		return nil, err
	}
	return w.out, nil
}

type variantWalk struct {
	*compiler
	all   []*schema
	out   [][]*schema
	steps int
}

// tooMany is the error of multiplying alternatives.
func (w *variantWalk) tooMany(own []*schema) error {
	return together(own, "its alternatives multiply beyond reason", "anyOf", "anyOf", "oneOf",
		"not", "if", "dependencies", "dependentRequired", "dependentSchemas")
}

// walk resolves todo and one alternative of each group, which must hold in addition to own; types
// are the remaining types.
func (w *variantWalk) walk(todo, own []*schema, groups [][]*schema, types uint8) error {
	w.effort += 1000
	if w.steps++; w.steps > 16*mostVariants {
		return w.tooMany(own)
	}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if slices.Contains(own, s) {
			continue
		}
		if err := w.check(s); err != nil {
			return err
		}
		if s.at.Kind == jsondoc.Bool {
			if !s.at.Truth {
				return nil
			}
			continue
		}
		t, _, err := typesOf(s)
		if err != nil {
			return err
		}
		if types &= t; types == 0 || types == 1<<jsondoc.Object && contradicts(s, own) {
			return nil
		}
		own = append(slices.Clip(own), s)
		if ref := s.at.Get("$ref"); ref != nil {
			to, err := w.refer(s, ref.Text)
			if err = w.leave(s, err); err != nil {
				return err
			}
			if to != nil {
				todo = append(slices.Clip(todo), to)
			}
		}
		subs, err := w.list(s, "allOf")
		if err != nil {
			return err
		}
		todo = append(slices.Clip(todo), subs...)
		more, possible, err := w.logic(s)
		if err != nil || !possible {
			return err
		}
		// the latest groups come first: their alternatives end soonest
		var asked [][]*schema
		for _, g := range more {
			if len(g) == 1 {
				todo = append(slices.Clip(todo), g[0])
			} else {
				asked = append(asked, g)
			}
		}
		for _, keyword := range []string{"anyOf", "oneOf"} {
			subs, err := w.list(s, keyword)
			if err != nil {
				return err
			}
			if keyword == "oneOf" && subs != nil && !w.relaxed[s.from]["oneOf"] {
				if err := w.mustBeApart(s, subs); err != nil {
					return err
				}
				subs = w.exclusive(s, subs)
			}
			if subs != nil {
				asked = append(asked, subs)
			}
		}
		if len(asked) > 0 {
			groups = append(asked, groups...)
		}
	}
	if len(groups) > 0 {
		for _, s := range groups[0] {
			if err := w.walk([]*schema{s}, own, groups[1:], types); err != nil {
				return err
			}
		}
		return nil
	}
	owns, err := w.spread(own)
	w.out = append(w.out, owns...)
	if w.variantCount += len(owns); len(w.out) > mostVariants || w.variantCount > mostSchemaNodes {
		return w.tooMany(own)
	}
	return err
}

// maxCompared bounds the properties of a schema that is compared with the previous ones.
const mostCompared = 8

// contradicts reports whether a schema of an object requires a name that another forbids, or
// another text for it. It may miss contradictions: the resulting shapes are not live.
func contradicts(s *schema, own []*schema) bool {
	requires := func(s *schema, name string) bool {
		return slices.ContainsFunc(s.at.Member("required").Items,
			func(n *jsondoc.Value) bool { return n.Text == name })
	}
	forbids := func(v *jsondoc.Value) bool { return v != nil && v.Kind == jsondoc.Bool && !v.Truth }
	properties := s.at.Member("properties").Members
	if len(properties) > mostCompared {
		return false
	}
	for _, o := range own {
		theirs := o.at.Member("properties")
		for _, p := range properties {
			v, never := theirs.Get(p.Name), forbids(p.Value)
			if (never || v != nil) && (requires(s, p.Name) || requires(o, p.Name)) &&
				(never || textsApart(p.Value, v)) {
				return true
			}
		}
		for _, n := range s.at.Member("required").Items {
			if forbids(theirs.Get(n.Text)) || closed(o) && theirs.Get(n.Text) == nil {
				return true
			}
		}
		for _, n := range o.at.Member("required").Items {
			if closed(s) && s.at.Member("properties").Get(n.Text) == nil {
				return true
			}
		}
	}
	return false
}

// closed reports whether an object has no members except those of properties.
func closed(s *schema) bool {
	extra := s.at.Get("additionalProperties")
	return extra != nil && extra.Kind == jsondoc.Bool && !extra.Truth &&
		s.at.Get("patternProperties") == nil
}

// textsApart reports whether no text satisfies both schemas, by their listed and excluded texts.
func textsApart(a, b *jsondoc.Value) bool {
	in, out := listedTexts(a), excludedTexts(b)
	if other := listedTexts(b); in != nil && other != nil {
		return !slices.ContainsFunc(in, func(t string) bool { return slices.Contains(other, t) })
	}
	if in == nil {
		in, out = listedTexts(b), excludedTexts(a)
	}
	return in != nil && out != nil &&
		!slices.ContainsFunc(in, func(t string) bool { return !slices.Contains(out, t) })
}

// excludedTexts are the texts that a schema's not lists; nil if not has other keywords.
func excludedTexts(s *jsondoc.Value) []string {
	not := s.Member("not")
	for _, m := range not.Members {
		if m.Name != "const" && m.Name != "enum" && (m.Name != "type" || m.Value.Text != "string") {
			return nil
		}
	}
	if not.Get("const") != nil && not.Get("enum") != nil {
		return nil
	}
	return listedTexts(not)
}

// listedTexts are the values that a schema lists, if all are texts, else nil.
func listedTexts(s *jsondoc.Value) []string {
	if s.Get("$ref") != nil { // enum may have no meaning next to it
		return nil
	}
	values := s.Member("enum").Items
	if v := s.Get("const"); v != nil {
		values = []*jsondoc.Value{v}
	}
	var out []string
	for _, v := range values {
		if v.Kind != jsondoc.String || len(values) > mostVariants {
			return nil
		}
		out = append(out, v.Text)
	}
	return out
}

// mustBeApart records that no value may satisfy two of the alternatives: only then is oneOf
// equivalent to anyOf.
func (c *compiler) mustBeApart(s *schema, subs []*schema) error {
	if !slices.Contains(c.now.oneOf, s) {
		c.now.oneOf = append(c.now.oneOf, s)
	}
	if _, known := c.overlaps[s]; known {
		return nil
	}
	overlaps := []overlap{}
	if len(subs) > mostOneOf {
		return s.unsupported("oneOf",
			fmt.Sprintf("more than %d alternatives are not supported, use anyOf", mostOneOf))
	}
	for i, a := range subs {
		for k := i + 1; k < len(subs); k++ {
			all := []*schema{a, subs[k]}
			pair := [2]int{i, k}
			switch c.stages[s.from][pair].stage {
			case beside:
				all = append(all, c.beside(s))
			case negated:
				continue
			}
			overlaps = append(overlaps, overlap{pair, c.node(all)})
		}
	}
	c.overlaps[s] = overlaps
	return nil
}

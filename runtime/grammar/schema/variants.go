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

func (w *variantWalk) tooMany(schemas []*schema) error {
	return jointError(schemas, "its alternatives multiply beyond reason", "anyOf", "anyOf", "oneOf",
		"not", "if", "dependencies", "dependentRequired", "dependentSchemas")
}

// walk resolves todo and one alternative of each group, which must hold in addition to schemas;
// types are the remaining types.
func (w *variantWalk) walk(todo, schemas []*schema, groups [][]*schema, types uint8) error {
	w.effort += 1000
	if w.steps++; w.steps > 16*maxVariants {
		return w.tooMany(schemas)
	}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if slices.Contains(schemas, s) {
			continue
		}
		if err := w.check(s); err != nil {
			return err
		}
		if s.value.Kind == jsondoc.Bool {
			if !s.value.Truth {
				return nil
			}
			continue
		}
		t, _, err := typesOf(s)
		if err != nil {
			return err
		}
		if types &= t; types == 0 || types == 1<<jsondoc.Object && contradicts(s, schemas) {
			return nil
		}
		schemas = append(slices.Clip(schemas), s)
		if ref := s.value.Get("$ref"); ref != nil {
			if ref.Kind != jsondoc.String {
				return &InvalidError{s.path(), "$ref is a string"}
			}
			to, err := w.refer(s, ref.Text)
			if err = w.dropKeywords(s, err); err != nil {
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
		added, possible, err := w.logic(s)
		if err != nil || !possible {
			return err
		}
		// the latest groups come first: their alternatives end soonest
		var pending [][]*schema
		for _, g := range added {
			if len(g) == 1 {
				todo = append(slices.Clip(todo), g[0])
			} else {
				pending = append(pending, g)
			}
		}
		for _, keyword := range []string{"anyOf", "oneOf"} {
			subs, err := w.list(s, keyword)
			if err != nil {
				return err
			}
			if keyword == "oneOf" && subs != nil && !w.relaxed[s.original]["oneOf"] {
				if err := w.requireDisjoint(s, subs); err != nil {
					return err
				}
				subs = w.exclusive(s, subs)
			}
			if subs != nil {
				pending = append(pending, subs)
			}
		}
		if len(pending) > 0 {
			groups = append(pending, groups...)
		}
	}
	if len(groups) > 0 {
		for _, s := range groups[0] {
			if err := w.walk([]*schema{s}, schemas, groups[1:], types); err != nil {
				return err
			}
		}
		return nil
	}
	owns, err := w.spread(schemas)
	w.out = append(w.out, owns...)
	if w.variantCount += len(owns); len(w.out) > maxVariants || w.variantCount > maxSchemaNodes {
		return w.tooMany(schemas)
	}
	return err
}

// maxCompared bounds the properties of a schema that is compared with the previous ones.
const maxCompared = 8

// contradicts reports whether a schema of an object requires a name that another forbids, or
// another text for it. It may miss contradictions: the resulting shapes are not live.
func contradicts(s *schema, schemas []*schema) bool {
	requires := func(s *schema, name string) bool {
		return slices.ContainsFunc(s.value.Member("required").Items,
			func(n *jsondoc.Value) bool { return n.Text == name })
	}
	forbids := func(v *jsondoc.Value) bool { return v != nil && v.Kind == jsondoc.Bool && !v.Truth }
	properties := s.value.Member("properties").Members
	if len(properties) > maxCompared {
		return false
	}
	for _, o := range schemas {
		theirs := o.value.Member("properties")
		for _, p := range properties {
			v, never := theirs.Get(p.Name), forbids(p.Value)
			if (never || v != nil) && (requires(s, p.Name) || requires(o, p.Name)) &&
				(never || textsDisjoint(p.Value, v)) {
				return true
			}
		}
		for _, n := range s.value.Member("required").Items {
			if forbids(theirs.Get(n.Text)) || closed(o) && theirs.Get(n.Text) == nil {
				return true
			}
		}
		for _, n := range o.value.Member("required").Items {
			if closed(s) && s.value.Member("properties").Get(n.Text) == nil {
				return true
			}
		}
	}
	return false
}

// closed reports whether an object has no members except those of properties.
func closed(s *schema) bool {
	extra := s.value.Get("additionalProperties")
	return extra != nil && extra.Kind == jsondoc.Bool && !extra.Truth &&
		s.value.Get("patternProperties") == nil
}

// textsDisjoint reports whether no text satisfies both schemas, by their listed and excluded texts.
func textsDisjoint(a, b *jsondoc.Value) bool {
	in, out := listedTexts(a), excludedTexts(b)
	if texts := listedTexts(b); in != nil && texts != nil {
		return !slices.ContainsFunc(in, func(t string) bool { return slices.Contains(texts, t) })
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
		if v.Kind != jsondoc.String || len(values) > maxVariants {
			return nil
		}
		out = append(out, v.Text)
	}
	return out
}

// requireDisjoint records that no value may satisfy two of the alternatives: only then is oneOf
// equivalent to anyOf.
func (c *compiler) requireDisjoint(s *schema, subs []*schema) error {
	if !slices.Contains(c.current.oneOf, s) {
		c.current.oneOf = append(c.current.oneOf, s)
	}
	if _, ok := c.overlaps[s]; ok {
		return nil
	}
	overlaps := []overlap{}
	if len(subs) > maxOneOf {
		return s.unsupported("oneOf",
			fmt.Sprintf("more than %d alternatives are not supported, use anyOf", maxOneOf))
	}
	for i, a := range subs {
		for k := i + 1; k < len(subs); k++ {
			all := []*schema{a, subs[k]}
			pair := [2]int{i, k}
			switch c.stages[s.original][pair].stage {
			case disjointInContext:
				all = append(all, c.withoutOneOf(s))
			case negated:
				continue
			}
			overlaps = append(overlaps, overlap{pair, c.node(all)})
		}
	}
	c.overlaps[s] = overlaps
	return nil
}

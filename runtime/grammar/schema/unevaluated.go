// unevaluatedProperties and unevaluatedItems: what no schema in the same place evaluates.
//
// What must stay true: a schema in the same place only counts if it is known to hold, as in a
// variant. The joint effect of several alternatives of an anyOf is unknown, as is that of a schema
// that is not completely enforced: then the keyword is refused.

package schema

import (
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// unevaluated adds the unevaluated keyword of schemas to all, the requirements of a member or an
// item. It skips a schema if one of evaluating is in its place.
func (c *compiler) unevaluated(all, schemas, evaluating []*schema, keyword string) []*schema {
	for _, s := range schemas {
		d := s.value.Get(keyword)
		if d == nil {
			continue
		}
		in := c.places[s]
		repeated := func(o *schema) bool { return o != s && in[o] && o.value.Get(keyword) != nil }
		evaluates := func(o *schema) bool { return in[o] }
		if !slices.ContainsFunc(evaluating, evaluates) && !slices.ContainsFunc(schemas, repeated) {
			all = append(all, c.schemaOf(d, s.under(keyword)))
		}
	}
	return all
}

// evaluatorKeywords are the keywords that evaluate members or items, directly or in schemas below.
var evaluatorKeywords = []string{"properties", "patternProperties", "additionalProperties",
	"unevaluatedProperties", "prefixItems", "items", "unevaluatedItems", "contains", "$ref",
	"allOf", "anyOf", "oneOf", "if", "dependentSchemas"}

// findPlace finds the schemas in the place of one with an unevaluated keyword, and returns a reason
// if they are unknown.
func (c *compiler) findPlace(s *schema, keyword string) (reason string) {
	in := map[*schema]bool{}
	var add func(x *schema)
	below := func(x *schema, members []jsondoc.Member, key string) {
		for _, m := range members {
			add(c.schemaOf(m.Value, x.below(key, m.Name)))
		}
	}
	add = func(x *schema) {
		if in[x] {
			return
		}
		in[x] = true
		evaluators := 0
		for _, alternative := range x.value.Member("anyOf").Items {
			if slices.ContainsFunc(alternative.Members, func(m jsondoc.Member) bool {
				return slices.Contains(evaluatorKeywords, m.Name)
			}) {
				evaluators++
			}
		}
		switch {
		case evaluators > 1:
			reason = "is not supported beside an anyOf"
		case len(c.relaxed[x.original]) > 0 || x.original.Get("$dynamicRef") != nil:
			reason = "is not supported beside a keyword that is not held"
		case keyword == "unevaluatedItems" && x.value.Get("contains") != nil:
			reason = "is not supported beside contains"
		}
		if ref := x.value.Get("$ref"); ref != nil {
			if to, err := c.refer(x, ref.Text); err == nil {
				add(to)
			} else {
				reason = "is not supported beside such a $ref"
			}
		}
		for _, list := range []string{"allOf", "anyOf", "oneOf"} {
			subs, _ := c.list(x, list)
			for _, sub := range subs {
				add(sub)
			}
		}
		for _, one := range []string{"if", "then", "else"} {
			if d := x.value.Get(one); d != nil {
				add(c.schemaOf(d, x.under(one)))
			}
		}
		below(x, x.value.Member("dependentSchemas").Members, "dependentSchemas")
		below(x, x.value.Member("dependencies").Members, "dependencies")
	}
	add(s)
	if c.places == nil {
		c.places = map[*schema]map[*schema]bool{}
	}
	c.places[s] = in
	return reason
}

// The negation of a schema: alternatives, one for each of its keywords. An object without a does
// not satisfy {"required":["a"]}. Schemas below a keyword are negated later, when they are reached,
// so recursion ends.
//
// What must stay true: a keyword without an exact negation is refused. The negation of a relaxed
// schema is unknown, so not, if and oneOf then enforce nothing of it.

package schema

import (
	"math/big"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// maxNegatedOneOf bounds the alternatives of a negated oneOf: any two may hold.
const mostNegatedOneOf = 8

// negate returns the negation of a schema.
func (c *compiler) negate(by *owner, x *schema) (*negation, error) {
	if known := c.negations[x]; known != nil {
		return known, nil
	}
	n := &negation{}
	switch {
	case len(c.relaxed[x.from]) > 0:
		n.all = true
	case x.at.Kind == jsondoc.Bool:
		n.all = !x.at.Truth
	default:
		if err := c.check(x); err != nil {
			return nil, by.fault(err)
		}
		if n.all = len(c.relaxed[x.from]) > 0; n.all { // check has dropped a keyword
			break
		}
		if len(x.strings) > 0 || x.fractions || x.beyond != nil {
			return nil, by.refuse("negated twice")
		}
		for _, m := range x.at.Members {
			alternatives, err := c.negateKeyword(by, x, m)
			u, ok := err.(*UnsupportedError)
			if ok && c.lenient { // its negation enforces nothing
				relax1(c.relaxed, x, "")
				c.left = append(c.left, u)
				return nil, errRelaxed
			}
			if err != nil {
				return nil, err
			}
			n.alternatives = append(n.alternatives, alternatives...)
		}
	}
	c.negations[x] = n
	return n, nil
}

// negateKeyword returns the alternatives in which a keyword of x is violated.
func (c *compiler) negateKeyword(by *owner, x *schema, m jsondoc.Member) ([]*schema, error) {
	object, array, str := typeMember("object"), typeMember("array"), typeMember("string")
	number := typeMember("number")
	var out []*schema
	add := func(members ...jsondoc.Member) { out = append(out, c.makes(by, members...)) }
	v := m.Value
	switch m.Name {
	case "$ref":
		to, err := c.refer(x, v.Text)
		if err != nil {
			return nil, by.fault(err)
		}
		return []*schema{c.made(by, c.notOf(by, to.from))}, nil
	case "type":
		return c.negateTypes(by, x)
	case "enum":
		return c.negateValues(by, v.Items)
	case "const":
		return c.negateValues(by, []*jsondoc.Value{v})
	case "allOf", "anyOf", "oneOf":
		subs, err := c.list(x, m.Name)
		if err != nil {
			return nil, err
		}
		var nots []*jsondoc.Value
		for _, sub := range subs {
			nots = append(nots, c.notOf(by, sub.from))
		}
		if m.Name == "allOf" {
			for _, n := range nots {
				out = append(out, c.made(by, n))
			}
			return out, nil
		}
		out = append(out, c.allOf(by, nots...))
		if m.Name == "oneOf" {
			if len(subs) > mostNegatedOneOf {
				break
			}
			for i, a := range subs {
				for _, b := range subs[i+1:] {
					out = append(out, c.allOf(by, a.from, b.from))
				}
			}
		}
		return out, nil
	case "not":
		return []*schema{c.at(v, x.under(m.Name))}, nil
	case "if":
		c.at(v, x.under(m.Name))
		if then := x.at.Get("then"); then != nil {
			out = append(out, c.allOf(by, v, c.notOf(by, then)))
		}
		if other := x.at.Get("else"); other != nil {
			out = append(out, c.allOf(by, c.notOf(by, v), c.notOf(by, other)))
		}
		return out, nil
	case "required":
		for _, n := range v.Items {
			add(object, member("properties", named(n.Text, never())))
		}
		return out, nil
	case "properties":
		for _, p := range v.Members {
			if isTrue(p.Value) {
				continue
			}
			c.at(p.Value, x.below(m.Name, p.Name))
			add(object, member("required", listValue(textValue(p.Name))),
				member("properties", named(p.Name, c.notOf(by, p.Value))))
		}
		return out, nil
	case "dependentRequired", "dependentSchemas", "dependencies":
		for _, d := range v.Members {
			has := member("required", listValue(textValue(d.Name)))
			if d.Value.Kind == jsondoc.Object || d.Value.Kind == jsondoc.Bool {
				c.at(d.Value, x.below(m.Name, d.Name))
				add(object, has, member("not", d.Value))
				continue
			}
			for _, n := range d.Value.Items {
				add(object, has, member("properties", named(n.Text, never())))
			}
		}
		return out, nil
	case "minLength", "minItems", "minProperties", "maxLength", "maxItems", "maxProperties":
		n, err := integerOf(x, m.Name)
		if err != nil {
			return nil, err
		}
		kind := map[string]jsondoc.Member{"Length": str, "Items": array,
			"Properties": object}[m.Name[3:]]
		switch {
		case m.Name[:3] == "max":
			add(kind, countMember("min"+m.Name[3:], n+1))
		case n > 0:
			add(kind, countMember("max"+m.Name[3:], n-1))
		}
		return out, nil
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if v.Kind == jsondoc.Bool { // drafts before 6: it belongs to its bound
			return nil, nil
		}
		open := strings.HasPrefix(m.Name, "exclusive")
		bound := strings.ToLower(strings.TrimPrefix(m.Name, "exclusive"))
		if !open {
			open = x.at.Member("exclusiveM" + m.Name[1:]).Truth
		}
		opposite := map[string]string{"minimum": "maximum", "maximum": "minimum"}[bound]
		if !open {
			opposite = "exclusiveM" + opposite[1:]
		}
		add(number, member(opposite, v))
		return out, nil
	case "pattern", "format":
		if m.Name == "format" && v.Text == "regex" {
			break // others are valid too
		}
		if m.Name == "format" && !heldFormat(v.Text) {
			return nil, nil
		}
		d, err := c.expression(x, m.Name, v)
		if err == errNothing {
			add(str)
			return out, nil
		}
		if err != nil {
			return nil, by.fault(err)
		}
		s := c.makes(by, str)
		s.strings = []automaton.Factor{{DFA: d, Not: true}}
		return []*schema{s}, nil
	case "additionalProperties":
		if isTrue(v) {
			return nil, nil
		}
		if v.Kind != jsondoc.Bool || x.at.Get("patternProperties") != nil {
			break
		}
		s := c.makes(by, object)
		s.beyond = []string{}
		for _, p := range x.at.Member("properties").Members {
			s.beyond = append(s.beyond, p.Name)
		}
		return []*schema{s}, nil
	case "patternProperties":
		asks := func(p jsondoc.Member) bool { return !isTrue(p.Value) }
		if !slices.ContainsFunc(v.Members, asks) {
			return nil, nil
		}
	case "prefixItems":
		subs, err := c.list(x, m.Name)
		if err != nil {
			return nil, err
		}
		for i, sub := range subs {
			list := make([]*jsondoc.Value, i+1)
			for k := range i {
				list[k] = objectValue()
			}
			list[i] = c.notOf(by, sub.from)
			add(array, countMember("minItems", i+1), member("prefixItems", listValue(list...)))
		}
		return out, nil
	case "items":
		if isTrue(v) {
			return nil, nil
		}
		if v.Kind == jsondoc.Bool {
			add(array, countMember("minItems", len(x.at.Member("prefixItems").Items)+1))
			return out, nil
		}
		if x.at.Get("prefixItems") == nil {
			c.at(v, x.under(m.Name))
			add(array, member("contains", c.notOf(by, v)))
			return out, nil
		}
	case "uniqueItems":
		if !v.Truth {
			return nil, nil
		}
	case "unevaluatedProperties", "unevaluatedItems", "propertyNames":
		if isTrue(v) {
			return nil, nil
		}
	case "contains":
		if x.at.Get("minContains") == nil {
			c.at(v, x.under(m.Name))
			add(array, member("items", c.notOf(by, v)))
			return out, nil
		}
	case "multipleOf", "maxContains":
	default:
		return nil, nil // an annotation, or a part of an if
	}
	return nil, by.refuse("cannot be held with " + m.Name + " in it")
}

func isTrue(v *jsondoc.Value) bool {
	return v.Kind == jsondoc.Bool && v.Truth || v.Kind == jsondoc.Object && len(v.Members) == 0
}

// onlyKinds is {"type": [...]} of the kinds whose bits are set; false for none.
func onlyKinds(kinds uint8) *jsondoc.Value {
	var names []*jsondoc.Value
	for _, name := range []string{"null", "boolean", "number", "string", "array", "object"} {
		if kinds>>typeNames[name]&1 == 1 {
			names = append(names, textValue(name))
		}
	}
	if len(names) == 0 {
		return never()
	}
	return objectValue(member("type", listValue(names...)))
}

// ofKinds is the schema of some kinds; nil for none.
func (c *compiler) ofKinds(by *owner, kinds uint8) []*schema {
	if v := onlyKinds(kinds); v.Kind == jsondoc.Object {
		return []*schema{c.made(by, v)}
	}
	return nil
}

func (c *compiler) negateTypes(by *owner, x *schema) ([]*schema, error) {
	types, integers, err := typesOf(x)
	if err != nil {
		return nil, err
	}
	out := c.ofKinds(by, ^types)
	if integers && types>>jsondoc.Number&1 == 1 {
		s := c.makes(by, typeMember("number"))
		s.fractions = true
		out = append(out, s)
	}
	return out, nil
}

// negateValues is every value except the listed ones.
func (c *compiler) negateValues(by *owner, values []*jsondoc.Value) ([]*schema, error) {
	touched := uint8(0)
	var texts []string
	var numbers []*big.Rat
	booleans := map[bool]bool{}
	for _, v := range values {
		touched |= 1 << v.Kind
		switch v.Kind {
		case jsondoc.String:
			texts = append(texts, v.Text)
		case jsondoc.Bool:
			booleans[v.Truth] = true
		case jsondoc.Number:
			r := rational(v.Text)
			if r == nil {
				return nil, by.refuse("cannot be held with such a number in it")
			}
			numbers = append(numbers, r)
		case jsondoc.Array, jsondoc.Object:
			return nil, by.refuse("cannot be held with a list or an object in an enum")
		}
	}
	out := c.ofKinds(by, ^touched)
	for _, truth := range []bool{false, true} {
		if len(booleans) > 0 && !booleans[truth] {
			out = append(out, c.makes(by, member("const",
				&jsondoc.Value{Kind: jsondoc.Bool, Truth: truth})))
		}
	}
	if len(texts) > 0 {
		d, err := automaton.OtherThan(texts)
		if err != nil {
			return nil, by.refuse("cannot be held: its texts are too long in all")
		}
		s := c.makes(by, typeMember("string"))
		s.strings = []automaton.Factor{{DFA: d}}
		out = append(out, s)
	}
	slices.SortFunc(numbers, (*big.Rat).Cmp)
	for i := 0; len(numbers) > 0 && i <= len(numbers); i++ {
		between := []jsondoc.Member{typeMember("number")}
		if i > 0 {
			between = append(between, member("exclusiveMinimum", numberValue(numbers[i-1])))
		}
		if i < len(numbers) {
			between = append(between, member("exclusiveMaximum", numberValue(numbers[i])))
		}
		out = append(out, c.makes(by, between...))
	}
	return out, nil
}

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
const maxNegatedOneOf = 8

func (c *compiler) negate(o *owner, x *schema) (*negation, error) {
	if cached := c.negations[x]; cached != nil {
		return cached, nil
	}
	n := &negation{}
	switch {
	case len(c.relaxed[x.original]) > 0:
		n.all = true
	case x.value.Kind == jsondoc.Bool:
		n.all = !x.value.Truth
	default:
		if err := c.check(x); err != nil {
			return nil, o.fault(err)
		}
		if n.all = len(c.relaxed[x.original]) > 0; n.all { // check has dropped a keyword
			break
		}
		if len(x.strings) > 0 || x.fractions || x.beyond != nil {
			return nil, o.refuse("negated twice")
		}
		for _, m := range x.value.Members {
			alternatives, err := c.negateKeyword(o, x, m)
			u, ok := err.(*UnsupportedError)
			if ok && c.lenient { // its negation enforces nothing
				relaxKeyword(c.relaxed, x, "")
				c.dropped = append(c.dropped, u)
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
func (c *compiler) negateKeyword(o *owner, x *schema, m jsondoc.Member) ([]*schema, error) {
	object, array, str := typeMember("object"), typeMember("array"), typeMember("string")
	number := typeMember("number")
	var out []*schema
	add := func(members ...jsondoc.Member) { out = append(out, c.synthesizeObject(o, members...)) }
	v := m.Value
	switch m.Name {
	case "$ref":
		to, err := c.refer(x, v.Text)
		if err != nil {
			return nil, o.fault(err)
		}
		return []*schema{c.synthesize(o, c.notOf(o, to.original))}, nil
	case "type":
		return c.negateTypes(o, x)
	case "enum":
		return c.negateValues(o, v.Items)
	case "const":
		return c.negateValues(o, []*jsondoc.Value{v})
	case "allOf", "anyOf", "oneOf":
		subs, err := c.list(x, m.Name)
		if err != nil {
			return nil, err
		}
		var nots []*jsondoc.Value
		for _, sub := range subs {
			nots = append(nots, c.notOf(o, sub.original))
		}
		if m.Name == "allOf" {
			for _, n := range nots {
				out = append(out, c.synthesize(o, n))
			}
			return out, nil
		}
		out = append(out, c.allOf(o, nots...))
		if m.Name == "oneOf" {
			if len(subs) > maxNegatedOneOf {
				break
			}
			for i, a := range subs {
				for _, b := range subs[i+1:] {
					out = append(out, c.allOf(o, a.original, b.original))
				}
			}
		}
		return out, nil
	case "not":
		return []*schema{c.schemaOf(v, x.under(m.Name))}, nil
	case "if":
		c.schemaOf(v, x.under(m.Name))
		if then := x.value.Get("then"); then != nil {
			out = append(out, c.allOf(o, v, c.notOf(o, then)))
		}
		if els := x.value.Get("else"); els != nil {
			out = append(out, c.allOf(o, c.notOf(o, v), c.notOf(o, els)))
		}
		return out, nil
	case "required":
		for _, n := range v.Items {
			add(object, member("properties", singleMember(n.Text, falseSchema())))
		}
		return out, nil
	case "properties":
		for _, p := range v.Members {
			if isTrue(p.Value) {
				continue
			}
			c.schemaOf(p.Value, x.below(m.Name, p.Name))
			add(object, member("required", listValue(textValue(p.Name))),
				member("properties", singleMember(p.Name, c.notOf(o, p.Value))))
		}
		return out, nil
	case "dependentRequired", "dependentSchemas", "dependencies":
		for _, d := range v.Members {
			has := member("required", listValue(textValue(d.Name)))
			if d.Value.Kind == jsondoc.Object || d.Value.Kind == jsondoc.Bool {
				c.schemaOf(d.Value, x.below(m.Name, d.Name))
				add(object, has, member("not", d.Value))
				continue
			}
			for _, n := range d.Value.Items {
				add(object, has, member("properties", singleMember(n.Text, falseSchema())))
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
			open = x.value.Member("exclusiveM" + m.Name[1:]).Truth
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
		if m.Name == "format" && !isEnforced(v.Text) {
			return nil, nil
		}
		d, err := c.expression(x, m.Name, v)
		if err == errNothing {
			add(str)
			return out, nil
		}
		if err != nil {
			return nil, o.fault(err)
		}
		s := c.synthesizeObject(o, str)
		s.strings = []automaton.Factor{{DFA: d, Not: true}}
		return []*schema{s}, nil
	case "additionalProperties":
		if isTrue(v) {
			return nil, nil
		}
		if v.Kind != jsondoc.Bool || x.value.Get("patternProperties") != nil {
			break
		}
		s := c.synthesizeObject(o, object)
		s.beyond = []string{}
		for _, p := range x.value.Member("properties").Members {
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
			list[i] = c.notOf(o, sub.original)
			add(array, countMember("minItems", i+1), member("prefixItems", listValue(list...)))
		}
		return out, nil
	case "items":
		if isTrue(v) {
			return nil, nil
		}
		if v.Kind == jsondoc.Bool {
			add(array, countMember("minItems", len(x.value.Member("prefixItems").Items)+1))
			return out, nil
		}
		if x.value.Get("prefixItems") == nil {
			c.schemaOf(v, x.under(m.Name))
			add(array, member("contains", c.notOf(o, v)))
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
		if x.value.Get("minContains") == nil {
			c.schemaOf(v, x.under(m.Name))
			add(array, member("items", c.notOf(o, v)))
			return out, nil
		}
	case "multipleOf", "maxContains":
	default:
		return nil, nil // an annotation, or a part of an if
	}
	return nil, o.refuse("cannot be held with " + m.Name + " in it")
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
		return falseSchema()
	}
	return objectValue(member("type", listValue(names...)))
}

// ofKinds is the schema of some kinds; nil for none.
func (c *compiler) ofKinds(o *owner, kinds uint8) []*schema {
	if v := onlyKinds(kinds); v.Kind == jsondoc.Object {
		return []*schema{c.synthesize(o, v)}
	}
	return nil
}

func (c *compiler) negateTypes(o *owner, x *schema) ([]*schema, error) {
	types, integers, err := typesOf(x)
	if err != nil {
		return nil, err
	}
	out := c.ofKinds(o, ^types)
	if integers && types>>jsondoc.Number&1 == 1 {
		s := c.synthesizeObject(o, typeMember("number"))
		s.fractions = true
		out = append(out, s)
	}
	return out, nil
}

func (c *compiler) negateValues(o *owner, values []*jsondoc.Value) ([]*schema, error) {
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
				return nil, o.refuse("cannot be held with such a number in it")
			}
			numbers = append(numbers, r)
		case jsondoc.Array, jsondoc.Object:
			return nil, o.refuse("cannot be held with a list or an object in an enum")
		}
	}
	out := c.ofKinds(o, ^touched)
	for _, truth := range []bool{false, true} {
		if len(booleans) > 0 && !booleans[truth] {
			out = append(out, c.synthesizeObject(o, member("const",
				&jsondoc.Value{Kind: jsondoc.Bool, Truth: truth})))
		}
	}
	if len(texts) > 0 {
		d, err := automaton.OtherThan(texts)
		if err != nil {
			return nil, o.refuse("cannot be held: its texts are too long in all")
		}
		s := c.synthesizeObject(o, typeMember("string"))
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
		out = append(out, c.synthesizeObject(o, between...))
	}
	return out, nil
}

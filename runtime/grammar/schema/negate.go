// The negation of a schema: alternatives, one for each of its keywords. An object without a does
// not satisfy {"required":["a"]}. Schemas below a keyword are negated later, when they are reached,
// so recursion ends.
//
// What must stay true: a keyword without an exact negation is refused. The negation of a relaxed
// schema is unknown, so not, if and oneOf then enforce nothing of it.

package schema

import (
	"errors"
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
				relaxKeyword(c.relaxed, x.original, "")
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

var errInexact = errors.New("no exact negation")

// violation collects the alternatives in which one keyword of x, with value v, is violated.
type violation struct {
	*compiler
	o            *owner
	x            *schema
	keyword      string
	v            *jsondoc.Value
	alternatives []*schema
}

// negateKeyword returns the alternatives in which a keyword of x is violated.
func (c *compiler) negateKeyword(o *owner, x *schema, m jsondoc.Member) ([]*schema, error) {
	n := &violation{compiler: c, o: o, x: x, keyword: m.Name, v: m.Value}
	err := n.collect()
	if err == errInexact {
		return nil, o.refuse("cannot be held with " + m.Name + " in it")
	}
	return n.alternatives, err
}

// add adds an object schema.
func (n *violation) add(members ...jsondoc.Member) {
	n.alternatives = append(n.alternatives, n.synthesizeObject(n.o, members...))
}

// collect returns errInexact if the keyword has no exact negation.
func (n *violation) collect() error {
	switch n.keyword {
	case "$ref", "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if":
		return n.applicator()
	case "required", "properties", "dependentRequired", "dependentSchemas", "dependencies",
		"additionalProperties", "patternProperties":
		return n.objectKeyword()
	case "prefixItems", "items", "contains":
		return n.arrayKeyword()
	case "minLength", "minItems", "minProperties", "maxLength", "maxItems", "maxProperties",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format":
		return n.limit()
	case "uniqueItems":
		if !n.v.Truth {
			return nil
		}
	case "unevaluatedProperties", "unevaluatedItems", "propertyNames":
		if isTrue(n.v) {
			return nil
		}
	case "multipleOf", "maxContains":
	default:
		return nil // an annotation, or a part of an if
	}
	return errInexact
}

func (n *violation) applicator() (err error) {
	switch n.keyword {
	case "$ref":
		to, err := n.refer(n.x, n.v.Text)
		if err != nil {
			return n.o.fault(err)
		}
		n.alternatives = []*schema{n.synthesize(n.o, n.notOf(n.o, to.original))}
		return nil
	case "type":
		n.alternatives, err = n.negateTypes(n.o, n.x)
		return err
	case "enum":
		n.alternatives, err = n.negateValues(n.o, n.v.Items)
		return err
	case "const":
		n.alternatives, err = n.negateValues(n.o, []*jsondoc.Value{n.v})
		return err
	case "allOf", "anyOf", "oneOf":
		subs, err := n.list(n.x, n.keyword)
		if err != nil {
			return err
		}
		var nots []*jsondoc.Value
		for _, sub := range subs {
			nots = append(nots, n.notOf(n.o, sub.original))
		}
		if n.keyword == "allOf" {
			for _, not := range nots {
				n.alternatives = append(n.alternatives, n.synthesize(n.o, not))
			}
			return nil
		}
		n.alternatives = append(n.alternatives, n.allOf(n.o, nots...))
		if n.keyword == "oneOf" {
			if len(subs) > maxNegatedOneOf {
				return errInexact
			}
			for i, a := range subs {
				for _, b := range subs[i+1:] {
					n.alternatives = append(n.alternatives, n.allOf(n.o, a.original, b.original))
				}
			}
		}
		return nil
	case "not":
		n.alternatives = []*schema{n.schemaOf(n.v, n.x.under(n.keyword))}
		return nil
	case "if":
		n.schemaOf(n.v, n.x.under(n.keyword))
		if then := n.x.value.Get("then"); then != nil {
			n.alternatives = append(n.alternatives, n.allOf(n.o, n.v, n.notOf(n.o, then)))
		}
		if els := n.x.value.Get("else"); els != nil {
			n.alternatives = append(n.alternatives,
				n.allOf(n.o, n.notOf(n.o, n.v), n.notOf(n.o, els)))
		}
		return nil
	}
	return errInexact
}

func (n *violation) objectKeyword() error {
	object := typeMember("object")
	switch n.keyword {
	case "required":
		for _, name := range n.v.Items {
			n.add(object, member("properties", singleMember(name.Text, falseSchema())))
		}
		return nil
	case "properties":
		for _, p := range n.v.Members {
			if isTrue(p.Value) {
				continue
			}
			n.schemaOf(p.Value, n.x.below(n.keyword, p.Name))
			n.add(object, member("required", listValue(textValue(p.Name))),
				member("properties", singleMember(p.Name, n.notOf(n.o, p.Value))))
		}
		return nil
	case "dependentRequired", "dependentSchemas", "dependencies":
		for _, d := range n.v.Members {
			has := member("required", listValue(textValue(d.Name)))
			if d.Value.Kind == jsondoc.Object || d.Value.Kind == jsondoc.Bool {
				n.schemaOf(d.Value, n.x.below(n.keyword, d.Name))
				n.add(object, has, member("not", d.Value))
				continue
			}
			for _, name := range d.Value.Items {
				n.add(object, has, member("properties", singleMember(name.Text, falseSchema())))
			}
		}
		return nil
	case "additionalProperties":
		if isTrue(n.v) {
			return nil
		}
		if n.v.Kind != jsondoc.Bool || n.x.value.Get("patternProperties") != nil {
			return errInexact
		}
		s := n.synthesizeObject(n.o, object)
		s.beyond = []string{}
		for _, p := range n.x.value.Member("properties").Members {
			s.beyond = append(s.beyond, p.Name)
		}
		n.alternatives = []*schema{s}
		return nil
	case "patternProperties":
		asks := func(p jsondoc.Member) bool { return !isTrue(p.Value) }
		if !slices.ContainsFunc(n.v.Members, asks) {
			return nil
		}
	}
	return errInexact
}

func (n *violation) arrayKeyword() error {
	array := typeMember("array")
	switch n.keyword {
	case "prefixItems":
		subs, err := n.list(n.x, n.keyword)
		if err != nil {
			return err
		}
		for i, sub := range subs {
			list := make([]*jsondoc.Value, i+1)
			for k := range i {
				list[k] = objectValue()
			}
			list[i] = n.notOf(n.o, sub.original)
			n.add(array, countMember("minItems", i+1), member("prefixItems", listValue(list...)))
		}
		return nil
	case "items":
		if isTrue(n.v) {
			return nil
		}
		if n.v.Kind == jsondoc.Bool {
			n.add(array, countMember("minItems", len(n.x.value.Member("prefixItems").Items)+1))
			return nil
		}
		return n.opposite(array, "contains", "prefixItems")
	case "contains":
		return n.opposite(array, "items", "minContains")
	}
	return errInexact
}

// opposite adds the arrays whose keyword refuses n.v; next to besides, that would not be exact.
func (n *violation) opposite(array jsondoc.Member, keyword, besides string) error {
	if n.x.value.Get(besides) != nil {
		return errInexact
	}
	n.schemaOf(n.v, n.x.under(n.keyword))
	n.add(array, member(keyword, n.notOf(n.o, n.v)))
	return nil
}

func (n *violation) limit() error {
	switch n.keyword {
	case "minLength", "minItems", "minProperties", "maxLength", "maxItems", "maxProperties":
		count, err := integerOf(n.x, n.keyword)
		if err != nil {
			return err
		}
		unit := n.keyword[3:]
		kind := map[string]string{"Length": "string", "Items": "array",
			"Properties": "object"}[unit]
		if n.keyword[:3] == "max" && count >= 0 {
			n.add(typeMember(kind), countMember("min"+unit, count+1))
		} else if n.keyword[:3] == "min" && count > 0 {
			n.add(typeMember(kind), countMember("max"+unit, count-1))
		}
		return nil
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if n.v.Kind == jsondoc.Bool { // drafts before 6: it belongs to its bound
			return nil
		}
		open := strings.HasPrefix(n.keyword, "exclusive")
		bound := strings.ToLower(strings.TrimPrefix(n.keyword, "exclusive"))
		if !open {
			open = n.x.value.Member("exclusiveM" + n.keyword[1:]).Truth
		}
		opposite := map[string]string{"minimum": "maximum", "maximum": "minimum"}[bound]
		if !open {
			opposite = "exclusiveM" + opposite[1:]
		}
		n.add(typeMember("number"), member(opposite, n.v))
		return nil
	case "pattern", "format":
		if n.keyword == "format" && n.v.Text == "regex" {
			return errInexact // others are valid too
		}
		if n.keyword == "format" && !isEnforced(n.v.Text) {
			return nil
		}
		d, err := n.expression(n.x, n.keyword, n.v)
		if err == errNothing {
			n.add(typeMember("string"))
			return nil
		}
		if err != nil {
			return n.o.fault(err)
		}
		s := n.synthesizeObject(n.o, typeMember("string"))
		s.strings = []automaton.Factor{{DFA: d, Not: true}}
		n.alternatives = []*schema{s}
		return nil
	}
	return errInexact
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

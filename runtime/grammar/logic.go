// Logic: not, if, dependencies and a oneOf whose alternatives overlap, said with the keywords that
// shapes know.
//
// The negation of a schema is alternatives, one for each of its keywords: {"required":["a"]} is
// not fulfilled by an object without a. What lies below a keyword is negated when its own turn
// comes, so recursion ends.
//
// What must stay true: what is written here means just what the keyword means, neither more nor
// less; a keyword without an exact negation is refused. A schema that was relaxed has none that is
// known: not, if and oneOf hold nothing of it then.

package grammar

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// owner is the keyword of the document because of which a schema was made.
type owner struct {
	of      *schema
	keyword string
}

// negation is the alternatives of which one must hold; all: there is nothing that must not be.
type negation struct {
	alternatives []*schema
	all          bool
}

const mostNegatedOneOf = 8

func textValue(s string) *jsondoc.Value { return &jsondoc.Value{Kind: jsondoc.String, Text: s} }

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
	return member(name, &jsondoc.Value{Kind: jsondoc.Number, Text: strconv.Itoa(n)})
}

// named is an object with one member: properties of one name.
func named(name string, v *jsondoc.Value) *jsondoc.Value { return objectValue(member(name, v)) }

func never() *jsondoc.Value { return &jsondoc.Value{Kind: jsondoc.Bool} }

// made is the schema of a value that is not in the document.
func (c *compiler) made(by *owner, v *jsondoc.Value) *schema {
	s := c.at(v, by.of.path)
	s.by = by
	return s
}

func (c *compiler) makes(by *owner, members ...jsondoc.Member) *schema {
	return c.made(by, objectValue(members...))
}

// notOf is {"not": v}.
func (c *compiler) notOf(by *owner, v *jsondoc.Value) *jsondoc.Value {
	n := named("not", v)
	c.made(by, n)
	return n
}

// allOf is {"allOf": [...]}.
func (c *compiler) allOf(by *owner, list ...*jsondoc.Value) *schema {
	return c.makes(by, member("allOf", listValue(list...)))
}

// owns is who answers for what is made because of a keyword of s.
func (s *schema) owns(keyword string) *owner {
	if s.by != nil {
		return s.by
	}
	return &owner{s, keyword}
}

// logic gives what the keywords of a schema that are said with others demand: groups of
// alternatives of which one must hold each. possible is false if nothing can fulfil them.
func (c *compiler) logic(s *schema) (groups [][]*schema, possible bool, err error) {
	if known, ok := c.logics[s]; ok {
		return known, known != nil, nil
	}
	groups = [][]*schema{}
	for _, m := range s.at.Members {
		by := s.owns(m.Name)
		switch m.Name {
		case "not":
			n, err := c.negate(by, c.at(m.Value, s.path+"/not"))
			switch {
			case err != nil:
				return nil, false, err
			case n.all:
			case len(n.alternatives) == 0:
				c.logics[s] = nil
				return nil, false, nil
			default:
				groups = append(groups, n.alternatives)
			}
		case "if":
			then, other := s.at.Get("then"), s.at.Get("else")
			if then == nil && other == nil {
				continue
			}
			c.at(m.Value, s.path+"/if")
			yes, no := []*jsondoc.Value{m.Value}, []*jsondoc.Value{c.notOf(by, m.Value)}
			if then != nil {
				c.at(then, s.path+"/then")
				yes = append(yes, then)
			}
			if other != nil {
				c.at(other, s.path+"/else")
				no = append(no, other)
			}
			groups = append(groups, []*schema{c.allOf(by, yes...), c.allOf(by, no...)})
		case "dependentRequired", "dependentSchemas", "dependencies":
			for _, d := range m.Value.Members {
				path := s.path + "/" + m.Name + "/" + escape(d.Name)
				group, err := c.dependency(by, path, d)
				if err != nil {
					return nil, false, err
				}
				if group != nil {
					groups = append(groups, group)
				}
			}
		}
	}
	c.logics[s] = groups
	return groups, true, nil
}

// dependency is: a name is absent, or what it asks for is there.
func (c *compiler) dependency(by *owner, path string, d jsondoc.Member) ([]*schema, error) {
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
		c.at(d.Value, path)
		with = append(with, member("allOf", listValue(d.Value)))
	default:
		return nil, &InvalidError{path, "a dependency is names or a schema"}
	}
	for _, n := range names {
		if n.Kind != jsondoc.String {
			return nil, &InvalidError{path, "a dependency is names or a schema"}
		}
	}
	with = append(with, member("required", listValue(names...)))
	without := c.makes(by, member("properties", named(d.Name, never())))
	return []*schema{without, c.makes(by, with...)}, nil
}

// exclusive are the alternatives of a oneOf of which some pairs overlap, each without those that it
// overlaps with.
func (c *compiler) exclusive(s *schema, subs []*schema) []*schema {
	stages := c.stages[s.from]
	if known := c.exclusives[s]; known != nil {
		return known
	}
	by := s.owns("oneOf")
	out := slices.Clone(subs)
	for i, a := range subs {
		list := []*jsondoc.Value{a.from}
		for j, b := range subs {
			if i != j && stages[[2]int{min(i, j), max(i, j)}] >= negated {
				list = append(list, c.notOf(by, b.from))
			}
		}
		if len(list) > 1 {
			out[i] = c.allOf(by, list...)
		}
	}
	c.exclusives[s] = out
	return out
}

// beside is a schema without its oneOf.
func (c *compiler) beside(s *schema) *schema {
	if known := c.besides[s]; known != nil {
		return known
	}
	v := *s.at
	v.Members = slices.DeleteFunc(slices.Clone(v.Members),
		func(m jsondoc.Member) bool { return m.Name == "oneOf" })
	b := c.made(s.owns("oneOf"), objectValue(v.Members...))
	b.path, b.strings, b.fractions, b.beyond = s.path, s.strings, s.fractions, s.beyond
	c.besides[s] = b
	return b
}

// negate finds what does not fulfil a schema.
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
		if len(x.strings) > 0 || x.fractions || x.beyond != nil {
			return nil, by.refuse("negated twice")
		}
		for _, m := range x.at.Members {
			alternatives, err := c.negateKeyword(by, x, m)
			if err != nil {
				return nil, err
			}
			n.alternatives = append(n.alternatives, alternatives...)
		}
	}
	c.negations[x] = n
	return n, nil
}

// fault is an error below a keyword, as one of the keyword.
func (o *owner) fault(err error) error {
	if u, ok := err.(*UnsupportedError); ok {
		return o.refuse("cannot be held with " + u.Keyword + " in it")
	}
	return err
}

func (o *owner) refuse(reason string) *UnsupportedError {
	if o.keyword == "oneOf" {
		reason = "two alternatives may hold at once; use anyOf"
	}
	return &UnsupportedError{Path: o.of.path, Keyword: o.keyword, Reason: reason,
		at: []*schema{o.of}, keywords: []string{o.keyword}}
}

// negateKeyword is how a keyword of x can be not fulfilled.
func (c *compiler) negateKeyword(by *owner, x *schema, m jsondoc.Member) ([]*schema, error) {
	object, array, str := typeMember("object"), typeMember("array"), typeMember("string")
	number := typeMember("number")
	var out []*schema
	add := func(members ...jsondoc.Member) { out = append(out, c.makes(by, members...)) }
	v := m.Value
	path := x.path + "/" + m.Name
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
		return []*schema{c.at(v, path)}, nil
	case "if":
		c.at(v, path)
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
			c.at(p.Value, path+"/"+escape(p.Name))
			add(object, member("required", listValue(textValue(p.Name))),
				member("properties", named(p.Name, c.notOf(by, p.Value))))
		}
		return out, nil
	case "dependentRequired", "dependentSchemas", "dependencies":
		for _, d := range v.Members {
			has := member("required", listValue(textValue(d.Name)))
			if d.Value.Kind == jsondoc.Object || d.Value.Kind == jsondoc.Bool {
				c.at(d.Value, path+"/"+escape(d.Name))
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
		s.strings = []factor{{d, true}}
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
		if !slices.ContainsFunc(v.Members, func(p jsondoc.Member) bool { return !isTrue(p.Value) }) {
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
	case "uniqueItems":
		if !v.Truth {
			return nil, nil
		}
	case "multipleOf", "propertyNames", "additionalItems", "contains", "minContains",
		"maxContains":
	default:
		return nil, nil // an annotation, or what was looked at with its if
	}
	return nil, by.refuse("cannot be held with " + m.Name + " in it")
}

func isTrue(v *jsondoc.Value) bool {
	return v.Kind == jsondoc.Bool && v.Truth || v.Kind == jsondoc.Object && len(v.Members) == 0
}

// kindNames are the names of the kinds for type.
var kindNames = []struct {
	kind jsondoc.Kind
	name string
}{{jsondoc.Null, "null"}, {jsondoc.Bool, "boolean"}, {jsondoc.Number, "number"},
	{jsondoc.String, "string"}, {jsondoc.Array, "array"}, {jsondoc.Object, "object"}}

// ofKinds is {"type": [...]} of the kinds whose bits are set; nil for none.
func (c *compiler) ofKinds(by *owner, kinds uint8) []*schema {
	var names []*jsondoc.Value
	for _, k := range kindNames {
		if kinds>>k.kind&1 == 1 {
			names = append(names, textValue(k.name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []*schema{c.makes(by, member("type", listValue(names...)))}
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

// negateValues is every value but those listed.
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
		d, err := otherThan(texts)
		if err != nil {
			return nil, by.refuse("cannot be held: its texts are too long in all")
		}
		s := c.makes(by, typeMember("string"))
		s.strings = []factor{{d: d}}
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

// numberValue is a number in full; each was read from a decimal.
func numberValue(r *big.Rat) *jsondoc.Value {
	if r.IsInt() {
		return &jsondoc.Value{Kind: jsondoc.Number, Text: r.Num().String()}
	}
	return &jsondoc.Value{Kind: jsondoc.Number, Text: strings.TrimRight(r.FloatString(1100), "0")}
}

// spread gives for schemas that all must hold, one of which asks for a member beyond some names,
// the same with each of the names that it can be.
func (c *compiler) spread(own []*schema) ([][]*schema, error) {
	i := slices.IndexFunc(own, func(s *schema) bool { return s.beyond != nil })
	if i < 0 {
		return [][]*schema{own}, nil
	}
	asks := own[i]
	rest := slices.Delete(slices.Clone(own), i, i+1)
	for _, s := range rest {
		for _, n := range s.at.Member("required").Items {
			if !slices.Contains(asks.beyond, n.Text) {
				return c.spread(append(rest, c.makes(asks.by, typeMember("object"))))
			}
		}
	}
	closed := false
	var names []string
	for _, s := range own {
		for _, p := range s.at.Member("properties").Members {
			if !slices.Contains(names, p.Name) && !slices.Contains(asks.beyond, p.Name) {
				names = append(names, p.Name)
			}
		}
		extra := s.at.Get("additionalProperties")
		closed = closed || extra != nil && extra.Kind == jsondoc.Bool && !extra.Truth &&
			s.at.Get("patternProperties") == nil
	}
	types := uint8(0xff)
	for _, s := range own {
		t, _, err := typesOf(s)
		if err != nil {
			return nil, err
		}
		types &= t
	}
	if types>>jsondoc.Object&1 == 0 {
		return nil, nil
	}
	if !closed {
		return nil, asks.by.refuse("cannot be held with additionalProperties in it")
	}
	var out [][]*schema
	for _, name := range names {
		with := c.makes(asks.by, typeMember("object"),
			member("required", listValue(textValue(name))))
		more, err := c.spread(append(slices.Clone(rest), with))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

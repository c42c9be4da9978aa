// Schemas as Pydantic and Zod write them, translated to the keywords that typescript.go knows.
//
// The TypeScript of the models' training has no references, no anyOf and no allOf. OpenAI's library
// writes any for them, so the model would not learn the names inside. Here a reference becomes its
// target, anyOf a list of types or oneOf; allOf and const are expanded. Values of an enum that are
// no strings, maps, types that are not named or in another language's words are written as they are
// enforced. This is for the functions of a request; a conversation of `ossrun harmony` is rendered
// as by the library.
//
// What must stay true: a schema without these keywords is rendered as by the library, and any
// schema terminates. Recursive references become the type's name, or any, and so do references
// after maxResolved bytes.

package harmony

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// maxResolved bounds the expansion of definitions that refer to each other many times, in bytes of
// definitions.
const maxResolved = 256 << 10

type resolver struct {
	open      []*jsondoc.Value // the document and the definitions around the current schema
	budget    int
	recursive bool // a recursive reference was replaced by its name
}

// resolveSchema returns the schema in typescript.go's keywords.
func resolveSchema(root *jsondoc.Value) *jsondoc.Value {
	r := resolver{open: []*jsondoc.Value{root}, budget: maxResolved}
	out := r.schema(root)
	if title := out.Member("title"); r.recursive && title.Kind == jsondoc.String {
		out = withTitle(out, title.Text)
	}
	return out
}

func (r *resolver) schema(s *jsondoc.Value) *jsondoc.Value {
	if s.Kind != jsondoc.Object {
		return s
	}
	opened := len(r.open)
	defer func() { r.open = r.open[:opened] }()
	null := false
	for retry := true; retry; {
		s = r.follow(s)
		s, null, retry = r.variants(s, null)
	}
	switch c := s.Member("const"); c.Kind {
	case jsondoc.String:
		s = withMember(withMember(s, "type", text("string")), "enum", list(c))
	case jsondoc.Number, jsondoc.Bool:
		s = withMember(s, "type", list(text(c.String())))
	}
	s = withTypes(s)
	types := slices.DeleteFunc(slices.Clone(s.Member("type").Items), isNull)
	if len(types) == 1 && len(s.Member("type").Items) == 2 && (s.Get("enum") != nil ||
		types[0].Text == "object" || types[0].Text == "array") { // more than the type's name
		s, null = withMember(s, "type", types[0]), true
	}
	if values := s.Member("enum").Items; len(values) > 0 && s.Member("type").Text != "string" {
		var names []*jsondoc.Value
		for _, v := range values {
			if v.Kind == jsondoc.Null {
				null = true
			} else if v.Kind == jsondoc.String {
				names = append(names, text(`"`+v.Text+`"`))
			} else {
				names = append(names, text(v.String()))
			}
		}
		s = withMember(s, "type", list(names...))
	}
	if null && s.Get("oneOf") == nil && !slices.ContainsFunc(s.Member("type").Items, isNull) {
		s = withMember(s, orNull, list())
	}
	return r.inside(s)
}

func (r *resolver) inside(s *jsondoc.Value) *jsondoc.Value {
	if properties := s.Member("properties"); len(properties.Members) > 0 {
		all := &jsondoc.Value{Kind: jsondoc.Object}
		for _, p := range properties.Members {
			all.Members = append(all.Members,
				jsondoc.Member{Name: p.Name, Value: r.schema(p.Value)})
		}
		s = withMember(s, "properties", all)
	}
	nested := func(v *jsondoc.Value) bool {
		return v.Get("properties") != nil || v.Get("items") != nil || v.Get("oneOf") != nil
	}
	values := s.Member("additionalProperties")
	if patterns := s.Member("patternProperties").Members; len(patterns) == 1 && !values.Truth &&
		values.Kind != jsondoc.Object {
		values = patterns[0].Value
	}
	v := r.schema(values)
	switch anything := values.Truth || v.Kind == jsondoc.Object && len(v.Members) == 0; {
	case v.Kind != jsondoc.Object && !anything, anything && s.Get("properties") != nil:
	case len(s.Member("properties").Members) > 0:
		const key = "[key: string]"
		s = withMember(s, "properties", withMember(s.Member("properties"), key, v))
		s = withMember(s, "required", list(append(slices.Clip(s.Member("required").Items),
			text(key))...))
	default:
		s = withMember(s, record, v)
		if d := v.Member("description"); d.Kind == jsondoc.String && v.Get("properties") == nil {
			s = mergeSchemas(s, withMember(list(), "description", d)) // a record has no line for it
		}
	}
	items := s.Member("items")
	if tuple := s.Member("prefixItems"); tuple.Kind == jsondoc.Array {
		items = tuple
	}
	if items.Kind == jsondoc.Array { // of a tuple, item by item
		items = withMember(list(), "anyOf", items)
	}
	if items.Kind == jsondoc.Object {
		v := r.schema(items)
		one := v.Member("oneOf").Items
		if len(v.Member("type").Items) > 1 || v.Member("nullable").Truth || v.Get(orNull) != nil ||
			one != nil && (items.Get("oneOf") == nil || slices.ContainsFunc(one, nested)) {
			v = withMember(v, grouped, list())
		}
		s = withMember(s, "items", v)
	}
	return s
}

// types are JSON Schema's types, and the name of all.
var types = []string{"string", "number", "integer", "boolean", "object", "array", "null",
	jsondoc.AnyType}

// withTypes returns a schema with JSON Schema's names of types, also of an object or array without
// one.
func withTypes(s *jsondoc.Value) *jsondoc.Value {
	name := func(ty *jsondoc.Value) *jsondoc.Value {
		if name := jsondoc.TypeName(ty.Text); slices.Contains(types, name) {
			return text(name)
		}
		return ty
	}
	switch ty := s.Member("type"); {
	case ty.Kind == jsondoc.String:
		return withMember(s, "type", name(ty))
	case len(ty.Items) > 1: // a single one may be the name of a recursive reference
		names := slices.Clone(ty.Items)
		for i, ty := range names {
			names[i] = name(ty)
		}
		return withMember(s, "type", list(names...))
	case ty.Kind != jsondoc.Absent:
	case s.Get("properties") != nil:
		return withMember(s, "type", text("object"))
	case s.Get("items") != nil:
		return withMember(s, "type", text("array"))
	}
	return s
}

// isName matches a possible type name; Zod numbers anonymous ones.
var isName = regexp.MustCompile(`^[A-Za-z]\w*$`)

func (r *resolver) follow(s *jsondoc.Value) *jsondoc.Value {
	for {
		ref, all := s.Member("$ref"), s.Member("allOf")
		switch {
		case ref.Kind == jsondoc.String:
			s = withMember(s, "$ref", nil)
			target := find(r.open[0], ref.Text)
			if target == nil {
				continue
			}
			if !slices.Contains(r.open, target) {
				if r.budget -= len(target.Source); r.budget < 0 {
					return s
				}
				r.open = append(r.open, target)
				s = mergeSchemas(s, target)
				continue
			}
			name := cmp.Or(target.Member("title").Text,
				ref.Text[strings.LastIndexByte(ref.Text, '/')+1:])
			if isName.MatchString(name) {
				s, r.recursive = withMember(s, "type", list(text(name))), true
			}
			return s
		case all.Kind == jsondoc.Array:
			s = withMember(s, "allOf", nil)
			for _, part := range all.Items {
				s = mergeSchemas(s, r.follow(part))
			}
		default:
			return s
		}
	}
}

// variants reads anyOf and oneOf of a schema; null: null is already allowed. again: only one
// variant remained and is returned in place of s.
func (r *resolver) variants(s *jsondoc.Value, null bool) (_ *jsondoc.Value, orNull, retry bool) {
	keyword := "anyOf"
	if s.Member(keyword).Kind != jsondoc.Array {
		keyword = "oneOf"
	}
	if s.Member(keyword).Kind != jsondoc.Array {
		return s, null, false
	}
	var rest, names []*jsondoc.Value
	seen := map[string]bool{}
	for _, v := range s.Member(keyword).Items {
		if isNull(v) {
			null = true
		} else if text := v.String(); !seen[text] {
			seen[text] = true
			rest = append(rest, v)
		}
	}
	s = withMember(s, keyword, nil)
	if len(rest) == 1 && (null || keyword == "anyOf") {
		return mergeSchemas(s, rest[0]), null, true
	}
	for i, v := range rest {
		rest[i] = r.schema(v)
		if title := rest[i].Member("title"); title.Kind == jsondoc.String && v.Get("$ref") != nil {
			rest[i] = withTitle(rest[i], title.Text)
		}
		if keyword == "anyOf" && isPlain(rest[i]) {
			names = append(names, rest[i].Member("type"))
		}
	}
	if len(rest) > 0 && len(names) == len(rest) {
		names = slices.CompactFunc(names, func(a, b *jsondoc.Value) bool {
			return typeUnion([]*jsondoc.Value{a}) == typeUnion([]*jsondoc.Value{b})
		})
		if null {
			names = append(names, text("null"))
		}
		return withMember(s, "type", list(names...)), null, false
	}
	if null {
		rest = append(rest, withMember(list(), "type", list(text("null"))))
	}
	return withMember(s, "oneOf", list(rest...)), null, false
}

// find returns the target of a reference, nil if it is not in the document.
func find(value *jsondoc.Value, ref string) *jsondoc.Value {
	pointer, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal || pointer != "" && pointer[0] != '/' {
		return nil
	}
	for _, name := range strings.Split(pointer, "/")[1:] {
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(value.Items) {
			value = value.Items[i]
		} else if value = value.Get(name); value == nil {
			return nil
		}
	}
	return value
}

// isNull reports whether a schema, or a type's name, only allows null.
func isNull(v *jsondoc.Value) bool {
	enum := v.Member("enum").Items
	return v.Text == "null" || v.Member("type").Text == "null" ||
		v.Member("const").Kind == jsondoc.Null || len(enum) == 1 && (enum[0].Kind == jsondoc.Null ||
		v.Member("nullable").Truth && enum[0].Text == "null") // OpenAPI 3 has no null
}

// isPlain reports whether a variant is fully described by its type's name.
func isPlain(v *jsondoc.Value) bool {
	return slices.Contains([]string{"string", "number", "integer", "boolean"},
		v.Member("type").Text) && v.Get("enum") == nil && v.Get("description") == nil &&
		v.Get("default") == nil
}

// mergeSchemas returns a with b's members that a lacks, b's description appended, and the
// properties merged.
func mergeSchemas(a, b *jsondoc.Value) *jsondoc.Value {
	for _, m := range b.Members {
		value := a.Member(m.Name)
		switch {
		case value.Kind == jsondoc.Absent:
			a = withMember(a, m.Name, m.Value)
		case m.Name == "description" && !strings.Contains(value.Text, m.Value.Text):
			a = withMember(a, m.Name, text(strings.TrimSuffix(value.Text, ".")+". "+m.Value.Text))
		case m.Name == "properties":
			a = withMember(a, m.Name, mergeSchemas(value, m.Value))
		case m.Name == "required":
			a = withMember(a, m.Name, list(append(slices.Clip(value.Items), m.Value.Items...)...))
		}
	}
	return a
}

// withTitle adds a title, for which a variant has no line, to the description.
func withTitle(s *jsondoc.Value, title string) *jsondoc.Value {
	if d := s.Member("description").Text; d != "" {
		title += ": " + d
	}
	return withMember(s, "description", text(title))
}

func text(s string) *jsondoc.Value { return &jsondoc.Value{Kind: jsondoc.String, Text: s} }

func list(items ...*jsondoc.Value) *jsondoc.Value {
	return &jsondoc.Value{Kind: jsondoc.Array, Items: items}
}

// withMember returns an object of v's members with one value replaced; nil removes it.
func withMember(v *jsondoc.Value, name string, value *jsondoc.Value) *jsondoc.Value {
	out := &jsondoc.Value{Kind: jsondoc.Object, Members: slices.Clone(v.Members)}
	i := slices.IndexFunc(out.Members, func(m jsondoc.Member) bool { return m.Name == name })
	switch {
	case i < 0 && value != nil:
		out.Members = append(out.Members, jsondoc.Member{Name: name, Value: value})
	case i >= 0 && value != nil:
		out.Members[i].Value = value
	case i >= 0:
		out.Members = slices.Delete(out.Members, i, i+1)
	}
	return out
}

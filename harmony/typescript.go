// JSON schemas as TypeScript, the way the models were trained to read tools.
//
// It is a lossy language: type, enum of strings, oneOf, nullable, default, title, description and examples are told, all
// else is any or silence. Its oddities (descriptions of nested objects come twice, several lines of a description are
// not all comments, nothing is escaped) are kept, since the model has seen them that way.

package harmony

import "strings"

// typeScript writes the type that the schema describes. Lines after its first one are indented by indent.
func typeScript(s *strings.Builder, schema jsonValue, indent string) {
	if variants := schema.get("oneOf"); variants.kind == jsonArray {
		for _, v := range variants.items {
			s.WriteString("\n" + indent + " | ")
			nullableType(s, v, indent+"   ")
			var remarks []string
			if d := v.get("description"); d.kind == jsonString {
				remarks = append(remarks, d.text)
			}
			if d := v.get("default"); d.kind == jsonString && !isEnum(v) {
				remarks = append(remarks, `default: "`+d.text+`"`)
			} else if d.kind != jsonAbsent {
				remarks = append(remarks, "default: "+d.String())
			}
			trailing(s, remarks)
		}
		return
	}
	switch ty := schema.get("type"); ty.kind {
	case jsonArray:
		s.WriteString(typeUnion(ty.items))
	case jsonString:
		namedType(s, ty.text, schema, indent)
	default:
		s.WriteString("any")
	}
}

// typeUnion is the type of a list of type names.
func typeUnion(types []jsonValue) string {
	var names []string
	for _, ty := range types {
		if ty.kind != jsonString {
			continue
		}
		name := ty.text
		if name == "integer" {
			name = "number"
		}
		names = append(names, name)
	}
	if names == nil {
		return "any"
	}
	return strings.Join(names, " | ")
}

// namedType writes a schema whose type is one name.
func namedType(s *strings.Builder, name string, schema jsonValue, indent string) {
	switch name {
	case "object":
		objectType(s, schema, indent)
	case "string":
		var values []string
		for _, v := range schema.get("enum").items {
			if v.kind == jsonString {
				values = append(values, `"`+v.text+`"`)
			}
		}
		if values == nil {
			values = []string{"string"}
		}
		s.WriteString(strings.Join(values, " | "))
	case "number", "integer":
		s.WriteString("number")
	case "boolean":
		s.WriteString("boolean")
	case "array":
		items := schema.get("items")
		if items.kind == jsonAbsent {
			s.WriteString("Array<any>")
			return
		}
		typeScript(s, items, indent)
		s.WriteString("[]")
	default:
		s.WriteString("any")
	}
}

func objectType(s *strings.Builder, schema jsonValue, indent string) {
	if d := schema.get("description"); d.kind == jsonString {
		s.WriteString(indent + "// " + d.text + "\n")
	}
	s.WriteString("{\n")
	required := map[string]bool{}
	for _, r := range schema.get("required").items {
		if r.kind == jsonString {
			required[r.text] = true
		}
	}
	for _, p := range schema.get("properties").members {
		name := p.name
		if !required[name] {
			name += "?"
		}
		property(s, name, p.value, indent)
	}
	s.WriteString(indent + "}")
}

// property writes one property with its comments.
func property(s *strings.Builder, name string, schema jsonValue, indent string) {
	comment := indent + "// "
	oneOf, description := schema.get("oneOf"), schema.get("description")
	if title := schema.get("title"); title.kind == jsonString {
		s.WriteString(comment + title.text + "\n" + indent + "//\n")
	}
	if description.kind == jsonString && oneOf.kind == jsonAbsent {
		s.WriteString(comment + description.text + "\n")
	}
	if examples := schema.get("examples"); len(examples.items) > 0 {
		s.WriteString(comment + "Examples:\n")
		for _, e := range examples.items {
			if e.kind == jsonString {
				s.WriteString(comment + `- "` + e.text + "\"\n")
			}
		}
	}
	if oneOf.kind == jsonArray {
		variantsProperty(s, name, schema, indent)
		return
	}
	s.WriteString(indent + name + ": ")
	nullableType(s, schema, indent+"    ")
	s.WriteByte(',')
	if d, ok := defaultRemark(schema); ok && oneOf.kind == jsonAbsent {
		s.WriteString(" // " + d)
	}
	s.WriteByte('\n')
}

// variantsProperty writes a property that is one of several types, each on its line. A description is told once: above if
// it is not also that of the first variant, else not for the first variant.
func variantsProperty(s *strings.Builder, name string, schema jsonValue, indent string) {
	variants, description := schema.get("oneOf").items, schema.get("description")
	isAbove := func(v jsonValue) bool {
		d := v.get("description")
		return d.kind == jsonString && description.kind == jsonString && d.text == description.text
	}
	above := description.kind == jsonString && (len(variants) == 0 || !isAbove(variants[0]))
	if above {
		s.WriteString(indent + "// " + description.text + "\n")
	}
	if d, ok := defaultRemark(schema); ok {
		s.WriteString(indent + "// " + d + "\n")
	}
	s.WriteString(indent + name + ":\n")
	for i, v := range variants {
		s.WriteString(indent + " | ")
		nullableType(s, v, indent+"   ")
		var remarks []string
		if d := v.get("description"); d.kind == jsonString && !isAbove(v) && !(i == 0 && above) {
			remarks = append(remarks, d.text)
		}
		if d, ok := defaultRemark(v); ok {
			remarks = append(remarks, d)
		}
		trailing(s, remarks)
		s.WriteByte('\n')
	}
	s.WriteString(indent + ",\n")
}

// nullableType writes the schema's type, with null if it is nullable and does not say so itself.
func nullableType(s *strings.Builder, schema jsonValue, indent string) {
	from := s.Len()
	typeScript(s, schema, indent)
	if schema.get("nullable").kind == jsonTrue && !strings.Contains(s.String()[from:], "null") {
		s.WriteString(" | null")
	}
}

// defaultRemark tells the default: strings in quotes, but those of an enum without, all else as JSON.
func defaultRemark(schema jsonValue) (string, bool) {
	d := schema.get("default")
	switch {
	case d.kind == jsonAbsent:
		return "", false
	case d.kind != jsonString:
		return "default: " + d.String(), true
	case isEnum(schema):
		return "default: " + d.text, true
	}
	return `default: "` + d.text + `"`, true
}

func isEnum(schema jsonValue) bool { return len(schema.get("enum").items) > 0 }

func trailing(s *strings.Builder, remarks []string) {
	if remarks != nil {
		s.WriteString(" // " + strings.Join(remarks, " "))
	}
}

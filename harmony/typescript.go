// JSON schemas as TypeScript, in the form of the models' training.
//
// It is a lossy language: type, enum of strings, oneOf, nullable, default, title, description and
// examples are rendered, all else is any or dropped. Its oddities are preserved, because the model
// was trained on them: nested objects' descriptions are repeated, multi-line descriptions are not
// all comments, nothing is escaped.

package harmony

import (
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// Keywords that resolve.go adds to a schema; the library has no equivalent.
const (
	grouped = "(grouped)" // the type of items is in parentheses
	orNull  = "(or null)" // null is one of the values, regardless of other mentions of null
	record  = "(record)"  // the type of an object's members, which have any names
)

// typeScript writes the type of the schema. Lines after the first are indented by indent.
func typeScript(s *strings.Builder, schema *jsondoc.Value, indent string) {
	if variants := schema.Member("oneOf"); variants.Kind == jsondoc.Array {
		for _, v := range variants.Items {
			s.WriteString("\n" + indent + " | ")
			nullableType(s, v, indent+"   ")
			var remarks []string
			if d := v.Member("description"); d.Kind == jsondoc.String {
				remarks = append(remarks, d.Text)
			}
			if d := v.Member("default"); d.Kind == jsondoc.String && !isEnum(v) {
				remarks = append(remarks, `default: "`+d.Text+`"`)
			} else if d.Kind != jsondoc.Absent {
				remarks = append(remarks, "default: "+d.String())
			}
			writeRemarks(s, remarks)
		}
		return
	}
	switch ty := schema.Member("type"); ty.Kind {
	case jsondoc.Array:
		s.WriteString(typeUnion(ty.Items))
	case jsondoc.String:
		namedType(s, ty.Text, schema, indent)
	default:
		s.WriteString("any")
	}
}

func typeUnion(types []*jsondoc.Value) string {
	var names []string
	for _, ty := range types {
		if ty.Kind != jsondoc.String {
			continue
		}
		name := ty.Text
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

func namedType(s *strings.Builder, name string, schema *jsondoc.Value, indent string) {
	switch name {
	case "object":
		if v := schema.Get(record); v != nil {
			s.WriteString("Record<string, ")
			nullableType(s, v, indent)
			if v.Get("oneOf") != nil { // the last variant's remark ends with its line
				s.WriteString("\n" + indent)
			}
			s.WriteString(">")
			return
		}
		objectType(s, schema, indent)
	case "string":
		var values []string
		for _, v := range schema.Member("enum").Items {
			if v.Kind == jsondoc.String {
				values = append(values, `"`+v.Text+`"`)
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
		items := schema.Member("items")
		if items.Kind == jsondoc.Absent {
			s.WriteString("Array<any>")
			return
		}
		if items.Get(grouped) == nil {
			typeScript(s, items, indent)
			s.WriteString("[]")
			return
		}
		s.WriteString("(")
		nullableType(s, items, indent)
		if items.Get("oneOf") != nil { // the last variant's remark ends with its line
			s.WriteString("\n" + indent)
		}
		s.WriteString(")[]")
	default:
		s.WriteString("any")
	}
}

func objectType(s *strings.Builder, schema *jsondoc.Value, indent string) {
	if d := schema.Member("description"); d.Kind == jsondoc.String {
		s.WriteString(indent + "// " + d.Text + "\n")
	}
	s.WriteString("{\n")
	required := map[string]bool{}
	for _, r := range schema.Member("required").Items {
		if r.Kind == jsondoc.String {
			required[r.Text] = true
		}
	}
	for _, p := range schema.Member("properties").Members {
		name := p.Name
		if !required[name] {
			name += "?"
		}
		property(s, name, p.Value, indent)
	}
	s.WriteString(indent + "}")
}

func property(s *strings.Builder, name string, schema *jsondoc.Value, indent string) {
	comment := indent + "// "
	oneOf, description := schema.Member("oneOf"), schema.Member("description")
	if title := schema.Member("title"); title.Kind == jsondoc.String {
		s.WriteString(comment + title.Text + "\n" + indent + "//\n")
	}
	if description.Kind == jsondoc.String && oneOf.Kind == jsondoc.Absent {
		s.WriteString(comment + description.Text + "\n")
	}
	if examples := schema.Member("examples"); len(examples.Items) > 0 {
		s.WriteString(comment + "Examples:\n")
		for _, e := range examples.Items {
			if e.Kind == jsondoc.String {
				s.WriteString(comment + `- "` + e.Text + "\"\n")
			}
		}
	}
	if oneOf.Kind == jsondoc.Array {
		variantsProperty(s, name, schema, indent)
		return
	}
	s.WriteString(indent + name + ": ")
	nullableType(s, schema, indent+"    ")
	s.WriteByte(',')
	if d, ok := defaultRemark(schema); ok && oneOf.Kind == jsondoc.Absent {
		s.WriteString(" // " + d)
	}
	s.WriteByte('\n')
}

// variantsProperty writes a property with several types, one per line. A description is written
// once: above unless it equals the first variant's, otherwise not for the first variant.
func variantsProperty(s *strings.Builder, name string, schema *jsondoc.Value, indent string) {
	variants, description := schema.Member("oneOf").Items, schema.Member("description")
	isAbove := func(v *jsondoc.Value) bool {
		d := v.Member("description")
		return d.Kind == jsondoc.String && description.Kind == jsondoc.String &&
			d.Text == description.Text
	}
	above := description.Kind == jsondoc.String && (len(variants) == 0 || !isAbove(variants[0]))
	if above {
		s.WriteString(indent + "// " + description.Text + "\n")
	}
	if d, ok := defaultRemark(schema); ok {
		s.WriteString(indent + "// " + d + "\n")
	}
	s.WriteString(indent + name + ":\n")
	for i, v := range variants {
		s.WriteString(indent + " | ")
		nullableType(s, v, indent+"   ")
		var remarks []string
		if d := v.Member("description"); d.Kind == jsondoc.String && !isAbove(v) &&
			!(i == 0 && above) {
			remarks = append(remarks, d.Text)
		}
		if d, ok := defaultRemark(v); ok {
			remarks = append(remarks, d)
		}
		writeRemarks(s, remarks)
		s.WriteByte('\n')
	}
	s.WriteString(indent + ",\n")
}

// nullableType writes the schema's type, with null if it is nullable and does not mention null.
func nullableType(s *strings.Builder, schema *jsondoc.Value, indent string) {
	from := s.Len()
	typeScript(s, schema, indent)
	if schema.Get(orNull) != nil ||
		schema.Member("nullable").Truth && !strings.Contains(s.String()[from:], "null") {
		s.WriteString(" | null")
	}
}

// defaultRemark writes the default: strings in quotes (without them for an enum), all else as JSON.
func defaultRemark(schema *jsondoc.Value) (string, bool) {
	d := schema.Member("default")
	switch {
	case d.Kind == jsondoc.Absent:
		return "", false
	case d.Kind != jsondoc.String:
		return "default: " + d.String(), true
	case isEnum(schema):
		return "default: " + d.Text, true
	}
	return `default: "` + d.Text + `"`, true
}

func isEnum(schema *jsondoc.Value) bool { return len(schema.Member("enum").Items) > 0 }

func writeRemarks(s *strings.Builder, remarks []string) {
	if remarks != nil {
		s.WriteString(" // " + strings.Join(remarks, " "))
	}
}

// Keywords with values that no JSON Schema has, as generators write them: null for one that is not
// set, an unknown type, a number as text, an empty list; or with values that exclude all others.
//
// What must stay true: a schema that is not strict loses only these keywords, and they are named.

package schema

import (
	"slices"
	"strconv"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// Keywords by their values: a schema, a list of them, or schemas by name.
var (
	oneSchema = []string{"items", "additionalItems", "additionalProperties", "propertyNames",
		"contains", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
	schemaList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaMap  = []string{"properties", "patternProperties", "dependentSchemas", "dependencies",
		"$defs", "definitions"}
)

// remainders are keywords about what others do not name.
var remainders = map[string][]string{
	"properties":        {"additionalProperties", "unevaluatedProperties"},
	"patternProperties": {"additionalProperties", "unevaluatedProperties"},
	"prefixItems":       {"items", "unevaluatedItems"}}

func isSchema(v *jsondoc.Value) bool { return v.Kind == jsondoc.Object || v.Kind == jsondoc.Bool }

// isValid tells whether a keyword that has no schemas has a value that is read.
func isValid(keyword string, v *jsondoc.Value) bool {
	switch keyword {
	case "type":
		_, _, reason := typesIn(v)
		return reason == ""
	case "enum":
		return len(v.Items) > 0
	case "required":
		return v.Kind == jsondoc.Bool || isNames(v)
	case "dependentRequired":
		return v.Kind == jsondoc.Object && !slices.ContainsFunc(v.Members,
			func(m jsondoc.Member) bool { return !isNames(m.Value) })
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
		"minContains", "maxContains":
		_, ok := countIn(keyword, v)
		return ok
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		r := rational(v.Text)
		return v.Kind == jsondoc.Bool || v.Kind == jsondoc.Number && r != nil &&
			(keyword != "multipleOf" || r.Sign() > 0)
	case "pattern", "$ref":
		return v.Kind == jsondoc.String
	}
	return true
}

// excludesAll reports a keyword with which no value is valid: values of a type that the schema
// excludes, a negation of everything, no additional properties although one is required.
func excludesAll(d *jsondoc.Value, keyword string, v *jsondoc.Value) bool {
	values := v.Items
	switch keyword {
	case "const":
		values = []*jsondoc.Value{v}
	case "additionalProperties":
		named := d.Member("properties")
		isMissing := func(n *jsondoc.Value) bool { return named.Get(n.Text) == nil }
		return v.Kind == jsondoc.Bool && !v.Truth && d.Get("patternProperties") == nil &&
			isNames(d.Member("required")) && slices.ContainsFunc(d.Get("required").Items, isMissing)
	case "enum":
	default:
		return keyword == "not" && isTrue(v)
	}
	types, _, reason := typesIn(d.Member("type"))
	return reason == "" && !slices.ContainsFunc(values, func(v *jsondoc.Value) bool {
		return types&(1<<v.Kind) != 0
	})
}

func isNames(v *jsondoc.Value) bool {
	return v.Kind == jsondoc.Array && !slices.ContainsFunc(v.Items, func(n *jsondoc.Value) bool {
		return n.Kind != jsondoc.String
	})
}

// dropInvalid marks the invalid keywords of a schema and of those in it as not enforced. A named
// schema that is none becomes one that accepts everything, so that its name stays.
func (r *rounds) dropInvalid(relaxed map[*jsondoc.Value]map[string]bool, d *jsondoc.Value,
	path string) {
	drop := func(path, keyword string) {
		r.dropped = append(r.dropped, &UnsupportedError{Path: path, Keyword: keyword,
			Reason: "has an invalid value"})
	}
	for i, m := range d.Members {
		v, place, ok, keyword := m.Value, path+"/"+escape(m.Name), true, m.Name
		switch {
		case slices.Contains(schemaMap, m.Name):
			ok = v.Kind == jsondoc.Object
			for k, named := range v.Members {
				inner := place + "/" + escape(named.Name)
				if !isSchema(named.Value) && (m.Name != "dependencies" ||
					!isNames(named.Value) && named.Value.Kind != jsondoc.String) {
					drop(inner, "schema")
					v.Members[k].Value = objectValue()
				}
				r.dropInvalid(relaxed, v.Members[k].Value, inner)
			}
		case slices.Contains(schemaList, m.Name), m.Name == "items" && v.Kind == jsondoc.Array:
			if ok = len(v.Items) > 0 || m.Name == "items"; m.Name == "items" {
				keyword = "prefixItems" // see listedItems
			}
			for k, item := range v.Items {
				ok = ok && isSchema(item)
				r.dropInvalid(relaxed, item, place+"/"+strconv.Itoa(k))
			}
		case slices.Contains(oneSchema, m.Name):
			ok = isSchema(v) && !excludesAll(d, m.Name, v)
			r.dropInvalid(relaxed, v, place)
		default:
			ok = isValid(m.Name, v) && !excludesAll(d, m.Name, v)
		}
		if !ok {
			drop(path, m.Name)
			for _, related := range append(remainders[keyword], keyword) {
				relaxKeyword(relaxed, d, related)
			}
			if keyword == "oneOf" { // it counts as an anyOf
				d.Members[i].Value = &jsondoc.Value{Kind: jsondoc.Array,
					Items: []*jsondoc.Value{objectValue()}}
			}
		}
	}
}

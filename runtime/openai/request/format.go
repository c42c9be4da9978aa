// The requested format of the answer, under any of its names: OpenAI's, Anthropic's, vLLM's,
// llama.cpp's, Ollama's, SGLang's and TGI's. Every dialect reads all of them.
//
// It applies to the answer only; reasoning and calls stay free. What must stay true: every answer
// that is not cut off has the accepted format, or the client learns which parts are not enforced
// (relaxed); every member of a format is read or refused by its name; an answer has one format.

package request

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

// format is one format. If Final is nil it is free text.
type format struct {
	Final   *grammar.Grammar
	section string     // of the developer message: the schema, as the model was trained to read it
	Wire    TextFormat // echoed by the Responses API
	relaxed []string   // schemas that are not enforced, and why
}

// TextFormat is text.format of the Responses API. Name, Description, Schema and Strict are
// json_schema's.
type TextFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// freeText is the format of an unconstrained answer.
var freeText = format{Wire: TextFormat{Type: "text"}}

// ApplyTo makes the session enforce the format and describe it to the model.
func (f format) ApplyTo(r *session.Request) { r.Final, r.Formats = f.Final, f.section }

// Kinds of formats with a type, by where the schema and its name are.
const (
	nestedForm = "nested" // under json_schema, as in chat completions
	flatForm   = "flat"   // next to the type
	freeForm   = "free"   // as flatForm, and it needs no name
	schemaForm = "schema" // as freeForm, or only a schema, or the word json
)

// readFormat reads a format in one of the forms that clients use.
func readFormat(v fields.Value, form string) format {
	if v.Kind() == jsondoc.String && form == schemaForm {
		switch v.Text() {
		case "json":
			return format{Final: jsonschema.AnyObject(), Wire: freeText.Wire}
		case "text", "":
		default:
			v.MustBe(`"json" or a schema`)
		}
		return freeText
	}
	types := []string{"text", "json_object", "json_schema"}
	kind := v.WithRaw(nil)
	if v.Kind() == jsondoc.Object {
		kind = v.Object().Get("type")
	}
	word := kind.Kind() == jsondoc.String && slices.Contains(types, kind.Text())
	if form == schemaForm && !word {
		return guidedField{v, schemaForm}.read()
	}
	o := v.Object()
	if o == nil || !slices.ContainsFunc(o.Members(),
		func(m jsondoc.Part) bool { return o.Has(m.Name) }) {
		return freeText
	}
	return namedFormat(o, form)
}

// namedFormat reads a format with a type. The nested and the flat form are always both accepted.
func namedFormat(o *fields.Object, form string) format {
	const nested = "json_schema"
	inner, members := o, []string{"name", "description", "schema", "strict"}
	if o.Has(nested) {
		inner = o.Object(nested)
		allowOnly(inner, members)
		members = []string{nested}
	}
	f := freeText
	switch kind := o.Text("type"); kind {
	case "text":
		members = nil
	case "json_object":
		f = format{Final: jsonschema.AnyObject(), Wire: TextFormat{Type: kind}}
		if inner.Has("schema") {
			f = schemaFormat(inner, true)
			f.Wire = TextFormat{Type: kind}
		}
	case "json_schema":
		if form == nestedForm && !o.Has("schema") && !o.Need(nested) {
			return freeText
		}
		f = schemaFormat(inner, form == freeForm || form == schemaForm)
	default:
		o.Get("type").MustBe("text, json_object or json_schema")
	}
	allowOnly(o, append(members, "type"))
	return f
}

// allowOnly refuses unknown members of a format.
func allowOnly(o *fields.Object, names []string) {
	if o == nil {
		return
	}
	for _, m := range o.Members() {
		if v := o.Get(m.Name); v.Kind() != jsondoc.Null && !slices.Contains(names, m.Name) {
			v.Unsupported(v.Path, "remove it, or use a JSON schema or a grammar")
		}
	}
}

// schemaFormat reads name, description, schema and strict. An unsupported schema is refused if
// strict. Otherwise its supported parts are enforced or, if there are none, any JSON. free tells
// that the schema needs no name.
func schemaFormat(o *fields.Object, free bool) format {
	f := format{Wire: TextFormat{Type: "json_schema", Name: o.Text("name"),
		Description: o.Text("description")}}
	if free && f.Wire.Name == "" {
		f.Wire.Name = "response"
	}
	if (free || o.Need("name")) && !formatName(f.Wire.Name) {
		o.Get("name").MustBe("1 to 64 letters, digits, _ or -")
	}
	if o.Has("strict") {
		f.Wire.Strict = new(o.Flag("strict"))
	}
	v := o.Get("schema")
	if !o.Need("schema") {
		return f
	}
	if v.Kind() != jsondoc.Object {
		v.WrongType("an object")
		return f
	}
	f.Wire.Schema, f.section = v.Raw, formatSection(f.Wire.Name, f.Wire.Description, v.Raw)
	var err error
	if o.Flag("strict") {
		f.Final, err = jsonschema.CompileWithin(v.Ctx(), v.Raw, false)
	} else {
		f.Final, f.relaxed, err = relaxedAt(v, v.Raw)
	}
	if err != nil {
		v.AddFault(schemaFault(v, err))
	}
	return f
}

// relaxedAt compiles the enforceable part of a schema, and names the rest with the value's path.
func relaxedAt(v fields.Value, schema json.RawMessage) (_ *grammar.Grammar, relaxed []string,
	err error) {
	compiled, missing, err := jsonschema.RelaxedWithin(v.Ctx(), schema, false)
	for _, l := range missing {
		relaxed = append(relaxed, v.Path+": "+l)
	}
	return compiled, relaxed, err
}

func schemaFault(v fields.Value, err error) *fields.Fault {
	f := fields.Invalid(v.Path, "%s is not supported: %v", v.Path, err)
	f.Code = "invalid_json_schema"
	return f
}

func formatName(s string) bool {
	return len(s) <= 64 && ToolName(s) && !strings.ContainsAny(s, ".:/")
}

// formatSection describes a schema to the model in Harmony's form.
func formatSection(name, description string, schema json.RawMessage) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Response Formats\n\n## %s\n\n", name)
	if description != "" {
		b.WriteString("// " + strings.ReplaceAll(description, "\n", "\n// ") + "\n")
	}
	if err := json.Compact(&b, schema); err != nil {
		return "" // not JSON: the grammar refuses it
	}
	return b.String()
}

// Compile waits for a slot (see jsonschema.AcquireSlot) and calls do.
func Compile(ctx context.Context, do func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	done, err := jsonschema.AcquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return do()
}

// constraintFields are the names of a format and the kind of each value (see constrain). With
// member, the value is that member of an object that has other members too.
var constraintFields = []struct{ name, member, kind string }{{"response_format", "", nestedForm},
	{"text", "format", flatForm}, {"format", "", schemaForm}, {"output_format", "", freeForm},
	{"output_config", "format", freeForm}, {"structured_outputs", "", "structured"},
	{"guided_json", "", "json"}, {"json_schema", "", "json"}, {"response_schema", "", "json"},
	{"guided_json_object", "", "json_object"}, {"guided_regex", "", "regex"},
	{"regex", "", "regex"}, {"regex_pattern", "", "regex"}, {"guided_choice", "", "choice"},
	{"guided_grammar", "", "grammar"}, {"grammar", "", "grammar"}, {"ebnf", "", "grammar"},
	{"grammar_string", "", "grammar"}, {"guided_structural_tag", "", ""},
	{"structural_tag", "", ""}, {"guided_whitespace_pattern", "", ""},
	{"guided_decoding", "", ""}, {"grammar_triggers", "", ""}, {"extra_body", "", "more"},
	{"nvext", "", "more"}, {"sampling_params", "", "more"}}

// guidedMembers are the members of vLLM's structured_outputs. The last two request the only
// behaviour here: no white space is written, and there is no fallback.
var guidedMembers = []string{"json", "json_object", "regex", "choice", "grammar",
	"disable_any_whitespace", "disable_fallback"}

// Constraints returns a row for each of constraintFields. Those in documented get its line as their
// documentation.
func (d *Draft) Constraints(documented ...string) (rows []fields.Parameter) {
	for _, c := range constraintFields {
		line := c.name
		if i := slices.IndexFunc(documented, func(l string) bool {
			return strings.HasPrefix(l, c.name+" ")
		}); i >= 0 {
			line = documented[i]
		}
		row := fields.Row(line, func(o *fields.Object, name string) {
			v := o.Get(name)
			if c.member != "" && v.Kind() != jsondoc.Null {
				v = v.Object().Get(c.member)
			}
			d.constrain(v, c.kind)
		})
		switch {
		case c.name == "text":
			row = row.WithMembers("format", "verbosity")
		case c.kind == "more":
			var names []string
			for _, c := range constraintFields {
				names = append(names, c.name)
			}
			row = row.WithMembers(names...)
		}
		rows = append(rows, row)
	}
	return rows
}

// constrain sets the answer's format from a value.
func (d *Draft) constrain(v fields.Value, kind string) {
	unset := kind == "json_object" && string(bytes.TrimSpace(v.Raw)) == "false"
	unset = unset || kind == "grammar" && string(v.Raw) == `""` // llama.cpp's clients send it
	if unset || v.Kind() == jsondoc.Null {
		return
	}
	var f format
	switch kind {
	case nestedForm, flatForm, freeForm, schemaForm:
		f = readFormat(v, kind)
	case "structured":
		o := v.Object()
		allowOnly(o, guidedMembers)
		for _, kind := range guidedMembers[:5] {
			d.constrain(o.Get(kind), kind)
		}
		return
	case "more":
		fields.Read(v.Object(), d.Constraints())
		return
	default:
		f = guidedField{v, kind}.read()
	}
	if f.Final != nil {
		d.formats++
	}
	switch {
	case d.formats > 1 && f.Final != nil:
		v.Invalid(": the answer can have one format only, and the request names another")
	case d.formats == 0 || f.Final != nil:
		d.Format, d.Relaxed = f, f.relaxed
	}
}

// guidedField is a value of one kind: json, schema, which is one that is not strict, regex, choice,
// grammar, json_object, or "" for an unsupported one.
type guidedField struct {
	value fields.Value
	kind  string
}

// read compiles the field. It returns no grammar after a fault.
func (g guidedField) read() format {
	v := g.value
	f := freeText
	var err error
	switch g.kind {
	case "json", "schema":
		schema := v.Raw
		if v.Kind() == jsondoc.String { // as a text
			schema = json.RawMessage(v.Text())
		}
		if g.kind == "schema" {
			f.Final, f.relaxed, err = relaxedAt(v, schema)
		} else {
			f.Final, err = jsonschema.CompileWithin(v.Ctx(), schema, false)
		}
		if err != nil {
			v.AddFault(schemaFault(v, err))
			return freeText
		}
		f.section = formatSection("response", "", schema)
		return f
	case "json_object":
		if string(bytes.TrimSpace(v.Raw)) != "true" {
			v.WrongType("a boolean")
		}
		f.Final = jsonschema.AnyObject()
	case "regex":
		f.Final, err = Compile(v.Ctx(), func() (*grammar.Grammar, error) {
			return grammar.Regex(v.Text())
		})
	case "choice":
		texts := fields.TextsOf(v.List())
		f.Final, err = Compile(v.Ctx(), func() (*grammar.Grammar, error) {
			return grammar.TextChoice(texts)
		})
	case "grammar":
		if v.Kind() == jsondoc.Object { // TGI's
			return readTyped(v.Object())
		}
		f.Final, err = Compile(v.Ctx(), func() (*grammar.Grammar, error) {
			return grammar.Rules(v.Text())
		})
	default:
		v.Unsupported(v.Path, "use a JSON schema, a grammar, a regular expression or a choice")
	}
	if err != nil {
		v.Invalid(" is not supported: %v", err)
		return freeText
	}
	return f
}

// readTyped reads TGI's grammar: a type and its value.
func readTyped(o *fields.Object) format {
	allowOnly(o, []string{"type", "value"})
	switch kind := o.Text("type"); kind {
	case "json", "regex":
		if o.Need("value") {
			return guidedField{o.Get("value"), kind}.read()
		}
	default:
		o.Get("type").MustBe("json or regex")
	}
	return freeText
}

// The format of the answer that a request asks for: response_format, text.format and vLLM's guided_
// fields.
//
// It applies to the answer only; reasoning and calls stay free. What must stay true: every answer
// that is not cut off has the accepted format, or the client is told that the format is not
// enforced (relaxed).

package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/session"
)

// format is one format. If final is nil it is free text.
type format struct {
	Final   *grammar.Grammar
	section string     // of the developer message: the schema, as the model was trained to read it
	Wire    TextFormat // what the Responses API echoes
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

// freeText is the format of an answer that is to have none.
var freeText = format{Wire: TextFormat{Type: "text"}}

// FormatBy reads the format that v, which is response_format or text.format, asks for. nested names
// the member that holds the schema's description; "" is v itself.
func (d *Draft) FormatBy(v Value, nested string) {
	if v.Kind() == jsondoc.Null {
		return
	}
	if d.Format = namedFormat(v.Object(), nested); d.Format.Final != nil {
		d.formats++
	}
}

// SchemaFormat is the format that a schema asks for.
func SchemaFormat(schema Value) (f format) {
	f.Final, f.section = guidedField{schema, "json"}.read()
	return f
}

// Into makes the session enforce the format and puts it into the instructions.
func (f format) Into(r *session.Request) {
	r.Final = f.Final
	r.Instructions = JoinParagraphs(r.Instructions, f.section)
}

// shown is the event as the client gets it. If the answer has a format, commentary before it is
// shown as reasoning: clients parse the whole text of the answer.
func (f format) shown(e session.Event) session.Event {
	if c, ok := e.(session.Commentary); ok && f.Final != nil {
		return session.Reasoning(c)
	}
	return e
}

func namedFormat(o *Object, nested string) format {
	switch kind := o.Text("type"); kind {
	case "text", "":
	case "json_object":
		return format{Final: jsonschema.AnyObject(), Wire: TextFormat{Type: kind}}
	case "json_schema":
		if nested == "" {
			return schemaFormat(o)
		}
		if !o.Need(nested) {
			return freeText
		}
		return schemaFormat(o.Object(nested))
	default:
		o.Get("type").Must("text, json_object or json_schema")
	}
	return freeText
}

// schemaFormat reads name, description, schema and strict. An unsupported schema is refused if
// strict. Otherwise the rest of it is enforced or, if nothing is left, any JSON.
func schemaFormat(o *Object) format {
	f := format{Wire: TextFormat{Type: "json_schema", Name: o.Text("name"),
		Description: o.Text("description")}}
	if o.Need("name") && !formatName(f.Wire.Name) {
		o.Get("name").Must("1 to 64 letters, digits, _ or -")
	}
	if o.Has("strict") {
		f.Wire.Strict = new(o.Flag("strict"))
	}
	v := o.Get("schema")
	if !o.Need("schema") {
		return f
	}
	if v.Kind() != jsondoc.Object {
		v.Wrong("an object")
		return f
	}
	f.Wire.Schema, f.section = v.Raw, formatSection(f.Wire.Name, f.Wire.Description, v.Raw)
	var held *grammar.Grammar
	var less []string
	var err error
	if o.Flag("strict") {
		held, err = jsonschema.CompileWithin(v.c.ctx, v.Raw, false)
	} else {
		held, less, err = jsonschema.RelaxedWithin(v.c.ctx, v.Raw, false)
	}
	var beyond *jsonschema.UnsupportedError
	switch {
	case err == nil:
		f.Final = held
		for _, l := range less {
			f.relaxed = append(f.relaxed, v.Path+": "+l)
		}
	case errors.As(err, &beyond) && !o.Flag("strict"):
		f.Final, f.relaxed = anyJSON(v.Raw), []string{v.Path + ": " + err.Error()}
	default:
		v.c.add(schemaFault(v, err))
	}
	return f
}

// anyJSON stands in for a schema that is not supported: an object if the schema's type says so,
// else any JSON.
func anyJSON(schema json.RawMessage) *grammar.Grammar {
	var root struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(schema, &root) == nil && string(root.Type) == `"object"` {
		return jsonschema.AnyObject()
	}
	return jsonschema.AnyJSON()
}

func schemaFault(v Value, err error) *Fault {
	f := Invalid(v.Path, "%s is not supported: %v", v.Path, err)
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

// Compile waits for its turn (see jsonschema.Compiling) and compiles.
func Compile(ctx context.Context, what func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	done, err := jsonschema.Compiling(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return what()
}

type guidedField struct {
	value Value
	kind  string // json, regex, choice, grammar, json_object, or one that is not supported
}

// guidedKinds are vLLM's fields guided_KIND, and their types; those without a type are refused.
var guidedKinds = []struct{ kind, of string }{{"json", "any"}, {"json_object", "boolean"},
	{"regex", "string"}, {"choice", "strings"}, {"grammar", "string"}, {"structural_tag", ""},
	{"whitespace_pattern", ""}}

// guided are these fields, and structured_outputs, which has the same in its newer form.
func (d *Draft) guided() (rows []Parameter) {
	for _, g := range guidedKinds {
		rows = append(rows, Row(strings.TrimSpace("guided_"+g.kind+" "+g.of),
			func(o *Object, name string) { d.hold(guidedField{o.Get(name), g.kind}) }))
	}
	return append(rows, Row("structured_outputs object", func(o *Object, name string) {
		newer := o.Object(name)
		for _, g := range guidedKinds {
			d.hold(guidedField{newer.Get(g.kind), g.kind})
		}
	}))
}

// hold holds the answer to a field that asks for something.
func (d *Draft) hold(g guidedField) {
	off := g.kind == "json_object" && string(bytes.TrimSpace(g.value.Raw)) == "false"
	if off || g.value.Kind() == jsondoc.Null {
		return
	}
	if d.formats++; d.formats > 1 {
		g.value.Invalid(": the answer can have one format only, and the request names another")
		return
	}
	d.Format.Final, d.Format.section = g.read()
}

// read compiles the field. It returns nil after a complaint.
func (g guidedField) read() (final *grammar.Grammar, section string) {
	v := g.value
	var held *grammar.Grammar
	var err error
	switch g.kind {
	case "json":
		schema := v.Raw
		if v.Kind() == jsondoc.String { // as a text
			schema = json.RawMessage(v.Text())
		}
		if held, err = jsonschema.CompileWithin(v.c.ctx, schema, false); err != nil {
			v.c.add(schemaFault(v, err))
			return nil, ""
		}
		return held, formatSection("response", "", schema)
	case "json_object":
		if string(bytes.TrimSpace(v.Raw)) != "true" {
			v.Wrong("a boolean")
		}
		return jsonschema.AnyObject(), ""
	case "regex":
		held, err = Compile(v.c.ctx, func() (*grammar.Grammar, error) {
			return grammar.Regex(v.Text())
		})
	case "choice":
		texts := TextsOf(v.List())
		held, err = Compile(v.c.ctx, func() (*grammar.Grammar, error) {
			return grammar.TextChoice(texts)
		})
	case "grammar":
		held, err = Compile(v.c.ctx, func() (*grammar.Grammar, error) {
			return grammar.Rules(v.Text())
		})
	default: // structural_tag and whitespace_pattern
		v.Unsupported(v.Path, "use a JSON schema, a grammar, a regular expression or a choice")
		return nil, ""
	}
	if err != nil {
		v.Invalid(" is not supported: %v", err)
		return nil, ""
	}
	return held, ""
}

// The format of the answer that a request asks for: response_format, text.format and vLLM's guided_
// fields.
//
// It applies to the answer only; reasoning and calls stay free. What must stay true: every answer
// that is not cut off has the accepted format, or the client is told that the format is not
// enforced (relaxed).

package openai

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

// answerFormat is one format. If final is nil it is free text.
type answerFormat struct {
	final   *grammar.Grammar
	section string     // of the developer message: the schema, as the model was trained to read it
	wire    textFormat // what the Responses API echoes
	relaxed []string   // schemas that are not enforced, and why
}

// textFormat is text.format of the Responses API. Name, Description, Schema and Strict are
// json_schema's.
type textFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// readFormat reads v, which is response_format or text.format, and the guided_ fields of o. nested
// names the member that holds the schema's description; "" is v itself.
func readFormat(o *object, v value, nested string) answerFormat {
	f := answerFormat{wire: textFormat{Type: "text"}}
	if v.Kind() != jsondoc.Null {
		f = namedFormat(v.object(), nested)
	}
	given := 0
	if f.final != nil {
		given = 1
	}
	for _, g := range guidedFields(o) {
		if given++; given > 1 {
			g.value.invalid(": the answer can have one format only, and the request names another")
			break
		}
		f.final, f.section = g.read()
	}
	return f
}

// formatBy is the format that a schema asks for.
func formatBy(schema value) (f answerFormat) {
	f.final, f.section = guidedField{schema, "json"}.read()
	return f
}

// into makes the session enforce the format and puts it into the instructions.
func (f answerFormat) into(r *session.Request) {
	r.Final = f.final
	r.Instructions = joinParagraphs(r.Instructions, f.section)
}

// shown is the event as the client gets it. If the answer has a format, commentary before it is
// shown as reasoning: clients parse the whole text of the answer.
func (f answerFormat) shown(e session.Event) session.Event {
	if c, ok := e.(session.Commentary); ok && f.final != nil {
		return session.Reasoning(c)
	}
	return e
}

func namedFormat(o *object, nested string) answerFormat {
	free := answerFormat{wire: textFormat{Type: "text"}}
	switch kind := o.text("type"); kind {
	case "text", "":
	case "json_object":
		return answerFormat{final: jsonschema.AnyObject(), wire: textFormat{Type: kind}}
	case "json_schema":
		if nested == "" {
			return schemaFormat(o)
		}
		if !o.need(nested) {
			return free
		}
		return schemaFormat(o.object(nested))
	default:
		o.get("type").must("text, json_object or json_schema")
	}
	return free
}

// schemaFormat reads name, description, schema and strict. An unsupported schema is refused if
// strict. Otherwise the rest of it is enforced or, if nothing is left, any JSON.
func schemaFormat(o *object) answerFormat {
	f := answerFormat{wire: textFormat{Type: "json_schema", Name: o.text("name"),
		Description: o.text("description")}}
	if o.need("name") && !formatName(f.wire.Name) {
		o.get("name").must("1 to 64 letters, digits, _ or -")
	}
	if o.has("strict") {
		f.wire.Strict = new(o.flag("strict"))
	}
	v := o.get("schema")
	if !o.need("schema") {
		return f
	}
	if v.Kind() != jsondoc.Object {
		v.wrong("an object")
		return f
	}
	f.wire.Schema, f.section = v.Raw, formatSection(f.wire.Name, f.wire.Description, v.Raw)
	var held *grammar.Grammar
	var less []string
	var err error
	if o.flag("strict") {
		held, err = jsonschema.CompileWithin(v.c.ctx, v.Raw, false)
	} else {
		held, less, err = jsonschema.RelaxedWithin(v.c.ctx, v.Raw, false)
	}
	var beyond *jsonschema.UnsupportedError
	switch {
	case err == nil:
		f.final = held
		for _, l := range less {
			f.relaxed = append(f.relaxed, v.Path+": "+l)
		}
	case errors.As(err, &beyond) && !o.flag("strict"):
		f.final, f.relaxed = anyJSON(v.Raw), []string{v.Path + ": " + err.Error()}
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

func schemaFault(v value, err error) *fault {
	f := invalid(v.Path, "%s is not supported: %v", v.Path, err)
	f.code = "invalid_json_schema"
	return f
}

func formatName(s string) bool {
	return len(s) <= 64 && toolName(s) && !strings.ContainsAny(s, ".:/")
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

// compile waits for its turn (see jsonschema.Compiling) and compiles.
func compile(ctx context.Context, what func() (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	done, err := jsonschema.Compiling(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return what()
}

type guidedField struct {
	value value
	kind  string // json, regex, choice, grammar, json_object, or one that is not supported
}

// guidedFields lists those of a request: guided_KIND, and KIND in structured_outputs, which is the
// newer form.
func guidedFields(o *object) []guidedField {
	var list []guidedField
	newer := o.object("structured_outputs")
	for _, kind := range []string{"json", "json_object", "regex", "choice", "grammar",
		"structural_tag", "whitespace_pattern"} {
		for _, v := range []value{o.get("guided_" + kind), newer.get(kind)} {
			if off := kind == "json_object" &&
				string(bytes.TrimSpace(v.Raw)) == "false"; v.Kind() != jsondoc.Null && !off {
				list = append(list, guidedField{v, kind})
			}
		}
	}
	return list
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
			schema = json.RawMessage(v.text())
		}
		if held, err = jsonschema.CompileWithin(v.c.ctx, schema, false); err != nil {
			v.c.add(schemaFault(v, err))
			return nil, ""
		}
		return held, formatSection("response", "", schema)
	case "json_object":
		if string(bytes.TrimSpace(v.Raw)) != "true" {
			v.wrong("a boolean")
		}
		return jsonschema.AnyObject(), ""
	case "regex":
		held, err = compile(v.c.ctx, func() (*grammar.Grammar,
			error) {
			return grammar.Regex(v.text())
		})
	case "choice":
		texts := textsOf(v.list())
		held, err = compile(v.c.ctx, func() (*grammar.Grammar, error) {
			return grammar.TextChoice(texts)
		})
	case "grammar":
		held, err = compile(v.c.ctx, func() (*grammar.Grammar,
			error) {
			return grammar.Rules(v.text())
		})
	default: // structural_tag and whitespace_pattern
		v.unsupported(v.Path, "use a JSON schema, a grammar, a regular expression or a choice")
		return nil, ""
	}
	if err != nil {
		v.invalid(" is not supported: %v", err)
		return nil, ""
	}
	return held, ""
}

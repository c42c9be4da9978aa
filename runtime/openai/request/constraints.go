// The fields that constrain an answer: OpenAI's, Anthropic's, vLLM's, llama.cpp's, Ollama's,
// SGLang's and TGI's. Every dialect reads all of them.
//
// What must stay true: none of these fields is ever ignored. Each is read, or refused by its name;
// an answer has one format only.

package request

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// constraintFields are the fields, and the kind of each value (see constrain). With member, the
// value is that member of an object that has other members too.
var constraintFields = []struct{ name, member, kind string }{{"response_format", "", "nested"},
	{"text", "format", "flat"}, {"format", "", "schema"}, {"output_format", "", "free"},
	{"output_config", "format", "free"}, {"structured_outputs", "", "structured"},
	{"guided_json", "", "json"}, {"json_schema", "", "json"}, {"response_schema", "", "json"},
	{"guided_json_object", "", "json_object"}, {"guided_regex", "", "regex"},
	{"regex", "", "regex"}, {"regex_pattern", "", "regex"}, {"guided_choice", "", "choice"},
	{"guided_grammar", "", "grammar"}, {"grammar", "", "grammar"}, {"ebnf", "", "grammar"},
	{"grammar_string", "", "grammar"}, {"guided_structural_tag", "", ""},
	{"structural_tag", "", ""}, {"guided_whitespace_pattern", "", ""},
	{"guided_decoding", "", ""}, {"grammar_triggers", "", ""}, {"extra_body", "", "more"},
	{"nvext", "", "more"}, {"sampling_params", "", "more"}}

// guidedMembers are the members of vLLM's structured_outputs. The last two ask for what always
// holds: no white space is written, and there is no fallback.
var guidedMembers = []string{"json", "json_object", "regex", "choice", "grammar",
	"disable_any_whitespace", "disable_fallback"}

// Constraints returns the rows of these fields. The given ones are documented by their lines.
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
	case "nested":
		f = readFormat(v, nestedForm)
	case "flat":
		f = readFormat(v, flatForm)
	case "free":
		f = readFormat(v, freeForm)
	case "schema":
		f = readFormat(v, schemaForm)
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

// guidedField is a value of one kind: json, regex, choice, grammar, json_object, or "" for an
// unsupported one.
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
	case "json":
		schema := v.Raw
		if v.Kind() == jsondoc.String { // as a text
			schema = json.RawMessage(v.Text())
		}
		if f.Final, err = jsonschema.CompileWithin(v.Ctx(), schema, false); err != nil {
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

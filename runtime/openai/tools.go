// Tools and tool_choice of both APIs: functions, custom tools, whose input is a text of the
// client's own form, and namespaces of tools.
//
// What must stay true: a call that the client requires is enforced by the grammar of the turn; a
// strict function whose parameters are not supported is refused, with their path in the request; a
// custom tool's input is never read as JSON, neither by the model nor on the way to the client, and
// its format is enforced exactly or refused with its line; a tool comes back under the name and the
// namespace that its client gave it.

package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/session"
)

// function is a tool the client runs. Without parameters it takes none.
type function struct {
	functionTool
	custom     bool             // its call is a text
	input      *grammar.Grammar // of that text; nil: any
	space, own string           // its namespace, and its name there
}

// functionTool is a function as the Responses API echoes it.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

func (f function) strict() bool { return f.Strict != nil && *f.Strict }

// offer is what a request says about tools. ignored are the types of tools that this server cannot
// offer: clients such as Codex send those along with the functions they need, so they are no fault.
type offer struct {
	functions []function
	listed    []*object // all tools of the request
	tools     int       // that were listed
	choice    toolChoice
	hosted    *hostedChoice // a built-in tool is chosen
	allowed   []wantedTool  // types, and labels of servers, of allowed_tools; nil: all
	ignored   []string

	toolsEcho  []any // what is offered: OpenAI's fields of functions, others as they came
	choiceEcho any   // tool_choice, where it is not echoed as choice
}

// toolChoice says whether the model may, must or must not call; in JSON it has the form of the
// Responses API.
type toolChoice struct {
	mode grammar.ToolChoice
	name string // with grammar.Named

	custom bool // the tool with this name is a custom one
}

func (c toolChoice) MarshalJSON() ([]byte, error) {
	switch c.mode {
	case grammar.None:
		return marshal("none")
	case grammar.Required:
		return marshal("required")
	case grammar.Named:
		kind := "function"
		if c.custom {
			kind = "custom"
		}
		return marshal(namedTool{kind, c.name})
	}
	return marshal("auto")
}

type allowedTools struct {
	Type  string `json:"type"` // allowed_tools
	Mode  string `json:"mode"`
	Tools []any  `json:"tools"`
}

type namedTool struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

const mostFunctions = 4096

func readOffer(o *object) offer {
	of := offer{toolsEcho: []any{}}
	for _, v := range of.list(o, "tools") {
		t := v.object()
		kind := t.text("type")
		inner := t.inner(kind)
		echo := any(v.Raw)
		switch kind {
		case "function":
			f := readFunction(inner)
			of.functions, echo = append(of.functions, f), f.functionTool
		case "custom":
			of.functions = append(of.functions, readCustom(inner))
		case "namespace":
			of.readNamespace(t)
		case "":
			t.get("type").missing()
		default:
			of.ignored = append(of.ignored, kind)
		}
		of.listed, of.toolsEcho = append(of.listed, t), append(of.toolsEcho, echo)
	}
	of.choose(o)
	return of
}

// list is the tools in a member, none if there are too many together with those before.
func (of *offer) list(o *object, name string) []value {
	if !o.has(name) {
		return nil
	}
	v := o.get(name)
	if of.tools += v.Count(mostFunctions + 1); of.tools > mostFunctions {
		v.invalid(" is too long, a request has at most %d tools", mostFunctions)
		return nil
	}
	return v.list()
}

// into makes the session's request offer the same.
func (of offer) into(r *session.Request) {
	r.ToolChoice, r.ToolName = of.choice.mode, of.choice.name
	for _, f := range of.functions {
		d := harmony.ToolDescription{Name: f.Name, Parameters: f.Parameters}
		if f.Description != nil {
			d.Description = *f.Description
		}
		r.Functions = append(r.Functions, d)
		if f.custom {
			if r.Texts == nil {
				r.Texts = map[string]*grammar.Grammar{}
			}
			r.Texts[f.Name] = f.input
		}
		if f.strict() {
			r.Strict = append(r.Strict, f.Name)
		}
	}
}

func readFunction(o *object) function { return readFunctionWith(o, "parameters") }

// readFunctionWith reads a function whose parameters have this name.
func readFunctionWith(o *object, parameters string) function {
	f := function{functionTool: functionTool{Type: "function", Name: o.text("name")}}
	f.checkName(o)
	if o.has("description") {
		f.Description = new(o.text("description"))
	}
	if o.has("strict") {
		f.Strict = new(o.flag("strict"))
	}
	v := o.get(parameters)
	switch v.Kind() {
	case jsondoc.Null:
		return f
	case jsondoc.Object:
	default:
		v.wrong("an object")
		return f
	}
	f.Parameters = v.Raw
	if _, err := jsondoc.Parse(v.Raw, jsondoc.Serde); err != nil { // as the renderer reads it
		o.complain(invalid(v.Path, "the parameters of the function %q cannot be rendered, arrays "+
			"and objects in them may be nested %d deep: %v", f.Name, jsondoc.Serde.Depth, err))
		return f
	}
	if f.strict() {
		if _, err := jsonschema.CompileWithin(o.ctx(), v.Raw, true); err != nil {
			fault := invalid(v.Path, "the parameters of the strict function %q are not "+
				"supported: %v", f.Name, err)
			fault.code = "invalid_function_parameters"
			o.complain(fault)
		}
	}
	return f
}

func (f function) checkName(o *object) {
	if !toolName(f.Name) {
		o.get("name").must("1 to 128 letters, digits, or any of _-.:/")
	}
}

// choose reads tool_choice: auto, none, required, a function, or a list of allowed tools.
func (of *offer) choose(o *object) {
	if !o.has("tool_choice") {
		return
	}
	v := o.get("tool_choice")
	if v.Kind() == jsondoc.String {
		of.mode(v, v.text())
		return
	}
	c := v.object()
	switch kind := c.text("type"); kind {
	case "function", "custom":
		c = c.inner(kind)
		of.name(v, spacedName(c.text("namespace"), c.text("name")))
		of.choice.custom = kind == "custom"
	case "allowed_tools":
		of.allow(v, c.inner("allowed_tools"))
	case "":
		c.get("type").missing()
	default:
		of.chooseHosted(o, c, kind)
	}
}

// allow leaves out the functions that are not among the allowed tools.
func (of *offer) allow(v value, c *object) {
	names := map[string]bool{}
	echo := allowedTools{Type: "allowed_tools", Mode: cmp.Or(c.text("mode"), "auto"),
		Tools: []any{}}
	of.allowed, of.choiceEcho = []wantedTool{}, &echo
	for _, v := range c.list("tools") {
		t := v.object()
		kind := t.text("type")
		of.allowed = append(of.allowed, wantedTool{asked: kind, label: t.text("server_label")})
		inner := t.inner(kind)
		names[spacedName(inner.text("namespace"), inner.text("name"))] = true
		if t.has("function") {
			name := t.object("function").text("name")
			echo.Tools = append(echo.Tools, namedTool{"function", name})
		} else {
			echo.Tools = append(echo.Tools, v.Raw)
		}
	}
	of.functions = slices.DeleteFunc(of.functions, func(f function) bool { return !names[f.Name] })
	if c.has("mode") {
		of.mode(v, c.text("mode"))
	}
}

func (of *offer) name(v value, name string) {
	of.choice = toolChoice{mode: grammar.Named, name: name}
	if !slices.ContainsFunc(of.functions, func(f function) bool { return f.Name == name }) {
		v.invalid(" names the function %q, which is not among the tools", name)
	}
}

func (of *offer) mode(v value, mode string) {
	switch mode {
	case "auto":
	case "none":
		of.choice.mode, of.functions = grammar.None, nil
	case "required":
		of.choice.mode = grammar.Required
	default:
		v.complain(invalid(v.Path,
			`tool_choice is %q, it must be "auto", "none", "required" or an object`, mode))
	}
}

// shownTool is how the client knows a function that the model calls by another name or form.
type shownTool struct {
	custom      bool
	space, name string
}

func readCustom(o *object) function {
	f := function{custom: true, functionTool: functionTool{Name: o.text("name"),
		Parameters: json.RawMessage(`{"type":"string"}`)}}
	f.checkName(o)
	about := o.text("description")
	switch format := o.object("format"); format.text("type") {
	case "", "text":
		about = joinParagraphs(about, "The input is plain text, not JSON.")
	case "grammar":
		format = format.inner("grammar")
		syntax, definition := format.text("syntax"), format.text("definition")
		about = joinParagraphs(about, "The input is plain text, not JSON. It has this form ("+
			syntax+"):", definition)
		var err error
		switch syntax {
		case "lark":
			f.input, err = compile(o.ctx(), func() (*grammar.Grammar, error) {
				return grammar.Rules(definition)
			})
		case "regex":
			f.input, err = compile(o.ctx(), func() (*grammar.Grammar, error) {
				return grammar.Regex(definition)
			})
		default:
			format.get("syntax").must("lark or regex")
		}
		if err != nil {
			fault := invalid(format.at("definition"), "%s is not supported: %v",
				format.at("definition"), err)
			fault.code = "invalid_grammar"
			format.complain(fault)
		}
	default:
		format.get("type").must("text or grammar")
	}
	f.Description = &about
	return f
}

// readNamespace adds the tools of a namespace under names of their own.
func (of *offer) readNamespace(o *object) {
	space := o.text("name")
	if !toolName(space) {
		o.get("name").invalid(" is %q, which is not a name", space)
	}
	for _, v := range of.list(o, "tools") {
		t := v.object()
		var f function
		switch kind := t.text("type"); kind {
		case "function":
			f = readFunction(t)
		case "custom":
			f = readCustom(t)
		default:
			of.ignored = append(of.ignored, kind)
			continue
		}
		f.space, f.own, f.Name = space, f.Name, spacedName(space, f.Name)
		f.checkName(t)
		of.functions = append(of.functions, f)
	}
}

// shown are the tools that the client knows by another name or form than the model.
func (of offer) shown() map[string]shownTool {
	names := map[string]shownTool{}
	for _, f := range of.functions {
		if f.custom || f.space != "" {
			shown := shownTool{f.custom, f.space, f.Name}
			if f.space != "" {
				shown.name = f.own
			}
			names[f.Name] = shown
		}
	}
	return names
}

// runnable is the arguments of a call of a function without parameters: clients parse them as JSON.
func runnable(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	return arguments
}

// asInput is the arguments of a call as the object that clients expect.
func asInput(arguments string) json.RawMessage {
	raw := json.RawMessage(arguments)
	if json.Valid(raw) && (jsondoc.Field{Raw: raw}).Kind() == jsondoc.Object {
		return raw
	}
	wrapped, _ := marshal(map[string]string{"arguments": arguments}) // strings can be written
	return wrapped
}

// Package tools reads the tools of a request, in every dialect: functions, custom tools, whose
// input is text of the client's own form, namespaces of tools, and tool_choice. It also has the
// tools that this process runs.
//
// What must stay true: a call that the client requires is enforced by the grammar of the turn; a
// strict function with unsupported parameters is refused, with their path in the request; a custom
// tool's input is never read as JSON, neither by the model nor on the way to the client; its format
// is enforced exactly or refused with its line; a tool's call names the tool and namespace
// as the client did.
package tools

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

// Function is a tool that the client runs. Without parameters it takes none.
type Function struct {
	functionTool
	custom           bool             // its call is text
	input            *grammar.Grammar // of that text; nil: any
	space, localName string           // its namespace, and its name there
	item             string           // the type of its calls' items; "": a function's
	deferred         bool             // offered once a search has found it
}

// functionTool is a function as the Responses API echoes it.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

func (f Function) strict() bool { return f.Strict != nil && *f.Strict }

// Offer is the tools of a request. Ignored are items of the input whose tools have a fault, and
// types of tools in items that are not there any more.
type Offer struct {
	Functions []Function
	listed    []*fields.Object // all tools of the request
	tools     int              // number of listed tools
	history   bool             // an item of the input is being read
	api       string           // "": chat completions
	finds     bool             // a search among tools is offered
	findsAll  bool             // by the server: its deferred tools are all offered
	Choice    toolChoice
	Hosted    *HostedChoice // a built-in tool is chosen
	allowed   []Requested   // types, and labels of servers, of allowed_tools; nil: all
	Ignored   []string

	ToolsEcho  []any // the offered tools: OpenAI's fields of functions, others unchanged
	ChoiceEcho any   // tool_choice, if its echo is not Choice
}

// toolChoice says whether the model may, must or must not call; its JSON is that of the Responses
// API.
type toolChoice struct {
	mode grammar.ToolChoice
	name string // with grammar.Named

	custom bool // the tool with this name is a custom one
}

func (c toolChoice) MarshalJSON() ([]byte, error) {
	switch c.mode {
	case grammar.None:
		return answer.Marshal("none")
	case grammar.Required:
		return answer.Marshal("required")
	case grammar.Named:
		kind := "function"
		if c.custom {
			kind = "custom"
		}
		return answer.Marshal(namedTool{kind, c.name})
	}
	return answer.Marshal("auto")
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

const maxFunctions = 4096

// deferLoading is the member of tools that only a search offers.
const deferLoading = "defer_loading"

// Read reads tools and tool_choice. Items of the input may offer more, or repeat some; the first of
// a name is used. Items are history: one with a fault offers nothing.
func Read(o *fields.Object, api string, items ...*fields.Object) Offer {
	offer := Offer{ToolsEcho: []any{}, api: api}
	offer.read(o)
	if offer.finds {
		offer.dropDeferred(func(string) bool { return false })
	}
	first := len(offer.ToolsEcho)
	offer.history = true
	for _, item := range items {
		previous := offer
		if item.Value().Try(func() { offer.read(item) }) != nil {
			offer = previous
			offer.Ignored = append(offer.Ignored, item.Text("type"))
		}
	}
	offer.ToolsEcho = offer.ToolsEcho[:first]
	seen := map[string]bool{}
	offer.Functions = slices.DeleteFunc(offer.Functions, func(f Function) bool {
		repeated := len(items) > 0 && seen[f.Name]
		seen[f.Name] = true
		return repeated
	})
	offer.choose(o)
	return offer
}

// ReadAnthropic reads the tools of a request of Anthropic's API. names are those that results
// of a search among tools have.
func ReadAnthropic(o *fields.Object, names []string) Offer {
	offer := Offer{api: Messages}
	for _, v := range offer.List(o, "tools") {
		t := v.Object()
		switch kind := t.Text("type"); kind {
		case "", "custom":
			f := ReadFunctionWith(t, "input_schema")
			f.deferred = t.Flag(deferLoading)
			offer.Functions = append(offer.Functions, f)
		default:
			offer.readTyped(t, kind)
		}
		offer.listed, offer.ToolsEcho = append(offer.listed, t), append(offer.ToolsEcho, v.Raw)
	}
	offer.dropDeferred(func(name string) bool { return slices.Contains(names, name) })
	return offer
}

// NameAny chooses the tool with this name: a function, or one that this process runs.
func (offer *Offer) NameAny(v fields.Value, name string) {
	for _, t := range offer.listed {
		typ := t.Text("type")
		if handlingOf(typ).runs != "" && cmp.Or(t.Text("name"), withoutDate(typ)) == name {
			offer.Hosted = &HostedChoice{typ: typ}
			return
		}
	}
	offer.Name(v, name)
}

func (offer *Offer) read(o *fields.Object) {
	for _, v := range offer.List(o, "tools") {
		t := v.Object()
		kind := t.Text("type")
		inner := t.Inner(kind)
		echo := any(v.Raw)
		switch kind {
		case "function":
			f := ReadFunction(inner)
			f.deferred = t.Flag(deferLoading)
			offer.Functions, echo = append(offer.Functions, f), f.functionTool
		case "custom":
			f := readCustom(inner)
			f.deferred = t.Flag(deferLoading)
			offer.Functions = append(offer.Functions, f)
		case "namespace":
			offer.readNamespace(t)
		case "":
			t.Get("type").Missing()
		default:
			offer.readTyped(t, kind)
		}
		offer.listed, offer.ToolsEcho = append(offer.listed, t), append(offer.ToolsEcho, echo)
	}
}

// List returns the tools in a member, or none if the request has too many.
func (offer *Offer) List(o *fields.Object, name string) []fields.Value {
	if !o.Has(name) {
		return nil
	}
	v := o.Get(name)
	if offer.tools += v.Count(maxFunctions + 1); offer.tools > maxFunctions {
		v.Invalid(" is too long, a request has at most %d tools", maxFunctions)
		return nil
	}
	return v.List()
}

// ApplyTo adds the tools and the choice to the session's request.
func (offer Offer) ApplyTo(r *session.Request) {
	r.ToolChoice, r.ToolName = offer.Choice.mode, offer.Choice.name
	for _, f := range offer.Functions {
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

func ReadFunction(o *fields.Object) Function { return ReadFunctionWith(o, "parameters") }

func ReadFunctionWith(o *fields.Object, parameters string) Function {
	f := Function{functionTool: functionTool{Type: "function", Name: o.Text("name")}}
	f.checkName(o)
	if o.Has("description") {
		f.Description = new(o.Text("description"))
	}
	if o.Has("strict") {
		f.Strict = new(o.Flag("strict"))
	}
	f.readParameters(o, parameters)
	return f
}

func (f *Function) readParameters(o *fields.Object, member string) {
	v := o.Get(member)
	switch v.Kind() {
	case jsondoc.Null:
		return
	case jsondoc.Object:
	default:
		v.WrongType("an object")
		return
	}
	f.Parameters = v.Raw
	if _, err := jsondoc.Parse(v.Raw, jsondoc.Serde); err != nil { // as the renderer reads it
		o.AddFault(fields.Invalid(v.Path, "the parameters of the function %q cannot be rendered, "+
			"arrays and objects in them may be nested %d deep: %v", f.Name, jsondoc.Serde.Depth,
			err))
		return
	}
	if f.strict() {
		if _, err := jsonschema.CompileWithin(o.Ctx(), v.Raw, true); err != nil {
			fault := fields.Invalid(v.Path, "the parameters of the strict function %q are not "+
				"supported: %v", f.Name, err)
			fault.Code = "invalid_function_parameters"
			o.AddFault(fault)
		}
	}
}

func (f Function) checkName(o *fields.Object) {
	if !request.ToolName(f.Name) {
		o.Get("name").MustBe("1 to 128 letters, digits, or any of _-.:/")
	}
}

// choose reads tool_choice: auto, none, required, a function, or a list of allowed tools.
func (offer *Offer) choose(o *fields.Object) {
	if !o.Has("tool_choice") {
		return
	}
	v := o.Get("tool_choice")
	if v.Kind() == jsondoc.String {
		offer.Mode(v, v.Text())
		return
	}
	c := v.Object()
	switch kind := c.Text("type"); kind {
	case "function", "custom":
		c = c.Inner(kind)
		offer.Name(v, request.SpacedName(c.Text("namespace"), c.Text("name")))
		offer.Choice.custom = kind == "custom"
	case "allowed_tools":
		offer.allow(v, c.Inner("allowed_tools"))
	case "":
		c.Get("type").Missing()
	default:
		if slices.ContainsFunc(offer.Functions, func(f Function) bool {
			return f.item == kind+"_call"
		}) {
			offer.Name(v, kind)
			offer.ChoiceEcho = v.Raw
			return
		}
		offer.chooseHosted(o, c, kind)
	}
}

// allow drops the functions that are not among the allowed tools.
func (offer *Offer) allow(v fields.Value, c *fields.Object) {
	names := map[string]bool{}
	echo := allowedTools{Type: "allowed_tools", Mode: cmp.Or(c.Text("mode"), "auto"),
		Tools: []any{}}
	offer.allowed, offer.ChoiceEcho = []Requested{}, &echo
	for _, v := range c.List("tools") {
		t := v.Object()
		kind := t.Text("type")
		offer.allowed = append(offer.allowed, Requested{typ: kind, Label: t.Text("server_label")})
		if kind == MCP && t.Has("name") {
			t.Get("name").Unsupported("the name of an MCP server's tool",
				"send it in allowed_tools of the mcp tool")
		}
		inner := t.Inner(kind)
		names[request.SpacedName(inner.Text("namespace"), cmp.Or(inner.Text("name"), kind))] = true
		if t.Has("function") {
			name := t.Object("function").Text("name")
			echo.Tools = append(echo.Tools, namedTool{"function", name})
		} else {
			echo.Tools = append(echo.Tools, v.Raw)
		}
	}
	unnamed := func(f Function) bool { return !names[f.Name] }
	offer.Functions = slices.DeleteFunc(offer.Functions, unnamed)
	if c.Has("mode") {
		offer.Mode(v, c.Text("mode"))
	}
}

func (offer *Offer) Name(v fields.Value, name string) {
	offer.Choice = toolChoice{mode: grammar.Named, name: name}
	if !slices.ContainsFunc(offer.Functions, func(f Function) bool { return f.Name == name }) {
		v.Invalid(" names the function %q, which is not among the tools", name)
	}
}

// Mode chooses whether the model may call.
func (offer *Offer) Mode(v fields.Value, mode string) {
	switch mode {
	case "auto":
	case "none":
		offer.Choice.mode, offer.Functions = grammar.None, nil
	case "required":
		offer.Choice.mode = grammar.Required
	default:
		v.AddFault(fields.Invalid(v.Path,
			`tool_choice is %q, it must be "auto", "none", "required" or an object`, mode))
	}
}

// ClientName is the client's name of a function that the model calls by another name or form.
type ClientName struct {
	Custom      bool
	Space, Name string
	Item        string // the type of its calls' items, of a tool that is no function to the client
}

func readCustom(o *fields.Object) Function {
	f := Function{custom: true, functionTool: functionTool{Name: o.Text("name"),
		Parameters: json.RawMessage(`{"type":"string"}`)}}
	f.checkName(o)
	about := o.Text("description")
	switch format := o.Object("format"); format.Text("type") {
	case "", "text":
		about = request.JoinParagraphs(about, "The input is plain text, not JSON.")
	case "grammar":
		format = format.Inner("grammar")
		syntax, definition := format.Text("syntax"), format.Text("definition")
		about = request.JoinParagraphs(about,
			"The input is plain text, not JSON. It has this form ("+
				syntax+"):", definition)
		var err error
		switch syntax {
		case "lark":
			f.input, err = request.Compile(o.Ctx(), func() (*grammar.Grammar, error) {
				return grammar.Rules(definition)
			})
		case "regex":
			f.input, err = request.Compile(o.Ctx(), func() (*grammar.Grammar, error) {
				return grammar.Regex(definition)
			})
		default:
			format.Get("syntax").MustBe("lark or regex")
		}
		if err != nil {
			fault := fields.Invalid(format.PathOf("definition"), "%s is not supported: %v",
				format.PathOf("definition"), err)
			fault.Code = "invalid_grammar"
			format.AddFault(fault)
		}
	default:
		format.Get("type").MustBe("text or grammar")
	}
	f.Description = &about
	return f
}

// readNamespace adds the tools of a namespace, prefixed with it.
func (offer *Offer) readNamespace(o *fields.Object) {
	space := o.Text("name")
	if !request.ToolName(space) {
		o.Get("name").Invalid(" is %q, which is not a name", space)
	}
	about := o.Text("description")
	for _, v := range offer.List(o, "tools") {
		t := v.Object()
		var f Function
		switch kind := t.Text("type"); kind {
		case "function":
			f = ReadFunction(t)
		case "custom":
			f = readCustom(t)
		default:
			offer.refuse(t, kind, handling{refused: offerFunction})
			continue
		}
		f.space, f.localName, f.Name = space, f.Name, request.SpacedName(space, f.Name)
		f.checkName(t)
		f.deferred = t.Flag(deferLoading)
		if about != "" && !f.deferred { // the model reads it with the first tool that it has
			if f.Description != nil {
				about = request.JoinParagraphs(about, *f.Description)
			}
			f.Description, about = new(about), ""
		}
		offer.Functions = append(offer.Functions, f)
	}
}

// ClientNames maps the model's names to the client's for the functions that differ.
func (offer Offer) ClientNames() map[string]ClientName {
	names := map[string]ClientName{}
	for _, f := range offer.Functions {
		if f.custom || f.space != "" || f.item != "" {
			name := ClientName{f.custom, f.space, f.Name, f.item}
			if f.space != "" {
				name.Name = f.localName
			}
			names[f.Name] = name
		}
	}
	return names
}

// RunnableArguments returns a call's arguments as JSON, which clients expect even without
// parameters.
func RunnableArguments(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	return arguments
}

// InputObject is the arguments of a call as the object that clients expect.
func InputObject(arguments string) json.RawMessage {
	raw := json.RawMessage(arguments)
	if json.Valid(raw) && (jsondoc.Field{Raw: raw}).Kind() == jsondoc.Object {
		return raw
	}
	wrapped, _ := answer.Marshal(
		map[string]string{"arguments": arguments}) // strings cannot fail
	return wrapped
}

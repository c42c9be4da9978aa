// Tools and tool_choice of both APIs.
//
// What must stay true: a call that the client requires is enforced by the grammar of the turn. A
// strict function whose parameters are not supported is refused, with their path in the request.

package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
)

// function is a tool the client runs.
type function struct {
	name        string
	description *string
	parameters  json.RawMessage // nil: takes none
	strict      *bool

	custom     bool             // its call is a text
	input      *grammar.Grammar // of that text; nil: any
	space, own string           // its namespace, and its name there
}

// offer is what a request says about tools. ignored are the types of tools that this server cannot
// offer: clients such as Codex send those along with the functions they need, so they are no fault.
type offer struct {
	functions []function
	tools     int // that were listed
	choice    toolChoice
	hosted    *hostedChoice // a built-in tool is chosen
	ignored   []string
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

const mostFunctions = 4096

// readOffer reads tools and tool_choice.
func readOffer(o *object) offer {
	var of offer
	for _, v := range of.listed(o, "tools") {
		t := v.object()
		kind := t.text("type")
		inner := t
		if t.has(kind) { // chat completions nest, responses do not
			inner = t.object(kind)
		}
		switch kind {
		case "function":
			of.functions = append(of.functions, readFunction(inner))
		case "custom":
			of.functions = append(of.functions, readCustom(inner))
		case "namespace":
			of.readNamespace(t)
		case "":
			t.get("type").missing()
		default:
			of.ignored = append(of.ignored, kind)
		}
	}
	of.choose(o)
	return of
}

// listed are the tools in a member, none if there are too many together with those before.
func (of *offer) listed(o *object, name string) []value {
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
		d := harmony.ToolDescription{Name: f.name, Parameters: f.parameters}
		if f.description != nil {
			d.Description = *f.description
		}
		r.Functions = append(r.Functions, d)
		if f.custom {
			if r.Texts == nil {
				r.Texts = map[string]*grammar.Grammar{}
			}
			r.Texts[f.name] = f.input
		}
		if f.strict != nil && *f.strict {
			r.Strict = append(r.Strict, f.name)
		}
	}
}

func readFunction(o *object) function { return readFunctionWith(o, "parameters") }

// readFunctionWith reads a function whose parameters have this name.
func readFunctionWith(o *object, parameters string) function {
	f := function{name: o.text("name")}
	f.checkName(o)
	if o.has("description") {
		d := o.text("description")
		f.description = &d
	}
	if o.has("strict") {
		s := o.boolean("strict", false)
		f.strict = &s
	}
	if o.has(parameters) {
		v := o.get(parameters)
		if v.Kind() != jsondoc.Object {
			v.wrong("an object")
			return f
		}
		f.parameters = v.Raw
		if _, err := jsondoc.Parse(v.Raw, jsondoc.Serde); err != nil { // as the renderer reads it
			o.complain(invalid(v.Path, "the parameters of the function %q cannot be rendered, "+
				"arrays and objects in them may be nested %d deep: %v", f.name,
				jsondoc.Serde.Depth, err))
			return f
		}
		if f.strict != nil && *f.strict {
			if _, err := grammar.ArgumentsWithin(o.c.context(), v.Raw); err != nil {
				fault := invalid(v.Path, "the parameters of the strict function %q are not "+
					"supported: %v", f.name, err)
				fault.code = "invalid_function_parameters"
				o.complain(fault)
			}
		}
	}
	return f
}

func (f function) checkName(o *object) {
	if !toolName(f.name) {
		o.get("name").must("1 to 128 letters, digits, or any of _-.:/")
	}
}

// readCall adds an earlier call of a tool to the conversation. o has its name and its arguments,
// which custom tools call input.
func readCall(talk *conversation, o *object, id string) {
	name := spacedName(o.text("namespace"), o.text("name"))
	if !toolName(name) {
		o.get("name").invalid(" is %q, which is not a tool name", name)
	}
	if o.has("input") {
		talk.Messages = append(talk.Messages, session.TextCall(id, name, o.text("input")))
		return
	}
	talk.Messages = append(talk.Messages, session.FunctionCall(id, name, o.text("arguments")))
}

// toolName tells whether a name can stand in a Harmony header as one word.
func toolName(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9',
			strings.ContainsRune("_-.:/", r):
		default:
			return false
		}
	}
	return true
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
		if c.has(kind) { // chat completions nest, responses do not
			c = c.object(kind)
		}
		of.name(v, spacedName(c.text("namespace"), c.text("name")))
		of.choice.custom = kind == "custom"
	case "allowed_tools":
		if c.has("allowed_tools") {
			c = c.object("allowed_tools")
		}
		names := map[string]bool{}
		for _, t := range c.list("tools") {
			tool := t.object()
			if kind := tool.text("type"); tool.has(kind) {
				tool = tool.object(kind)
			}
			names[spacedName(tool.text("namespace"), tool.text("name"))] = true
		}
		of.functions = slices.DeleteFunc(of.functions,
			func(f function) bool { return !names[f.name] })
		if c.has("mode") {
			of.mode(v, c.text("mode"))
		}
	case "":
		c.get("type").missing()
	default:
		of.chooseHosted(o, c, kind)
	}
}

// name chooses a function.
func (of *offer) name(v value, name string) {
	of.choice = toolChoice{mode: grammar.Named, name: name}
	if !slices.ContainsFunc(of.functions, func(f function) bool { return f.name == name }) {
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
		v.c.add(invalid(v.Path,
			`tool_choice is %q, it must be "auto", "none", "required" or an object`, mode))
	}
}

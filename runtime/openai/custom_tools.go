// Custom tools, whose input is a text of the client's own form, and namespaces of tools.
//
// What must stay true: a custom tool's input is never read as JSON, neither by the model nor on the
// way to the client; a format is enforced exactly or refused with its line; a tool comes back under
// the name and the namespace that its client gave it.

package openai

import (
	"encoding/json"

	"github.com/ossrun/ossrun/runtime/grammar"
)

// shownTool is how the client knows a function that the model calls by another name or form.
type shownTool struct {
	custom      bool
	space, name string
}

// readCustom reads a custom tool of either API.
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
			f.input, err = o.c.compile(func() (*grammar.Grammar, error) {
				return grammar.Rules(definition)
			})
		case "regex":
			f.input, err = o.c.compile(func() (*grammar.Grammar, error) {
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

// spacedName is what the model calls a tool of a namespace.
func spacedName(space, name string) string {
	if space == "" {
		return name
	}
	return space + "_" + name
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

// tool_choice that names a built-in tool: {"type":"web_search"}, {"type":"code_interpreter"},
// {"type":"mcp","server_label":...,"name":...}.
//
// What must stay true: the model reads of every tool that the request offers, and its first call is
// of the chosen one; a choice that cannot be kept is refused.

package openai

import (
	"context"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
)

// hostedChoice is the tool that is chosen.
type hostedChoice struct {
	asked string // the type in the request
	label string // mcp: of the server
	name  string // mcp: of its tool; "": any
}

func (h *hostedChoice) kind() string { return builtinKinds[h.asked] }

func (h *hostedChoice) is(w wantedTool) bool {
	return h.kind() == w.kind && (w.kind != ToolMCP || h.label == w.label)
}

// chooseHosted reads a choice of this kind.
func (of *offer) chooseHosted(o, c *object, kind string) {
	h := &hostedChoice{asked: kind, label: c.text("server_label"), name: c.text("name")}
	if kind == "mcp" && h.label == "" {
		c.get("server_label").missing()
	}
	named := fmt.Sprintf("the tool %q", kind)
	if kind == "mcp" {
		named = fmt.Sprintf("the MCP server %q", h.label)
	}
	switch h.kind() {
	case "":
	case ToolBrowser:
		of.choiceEcho = map[string]string{"type": "web_search_preview"} // OpenAI has no other name
	default:
		of.choiceEcho = c.raw
	}
	for _, t := range of.listed {
		w := wantedTool{asked: t.text("type"), label: t.text("server_label")}
		w.kind = builtinKinds[w.asked]
		switch {
		case w.kind != "" && h.is(w):
			of.hosted = h
			return
		case w.kind == "" && w.asked == kind:
			o.c.add(unavailableChoice(kind))
			return
		}
	}
	o.c.add(invalid("tool_choice", "tool_choice names %s, which is not among the tools", named))
}

func unavailableChoice(kind string) *fault {
	return unsupported("tool_choice", fmt.Sprintf("tool_choice of type %q", kind),
		"this server has no such tool")
}

// firstTurn starts the first turn of an answer.
type firstTurn func(ctx context.Context, r session.Request) (session.Turn, error)

// begun is a Runner whose first turn is started in another way.
type begun struct {
	session.Runner
	first firstTurn // nil: it was started
}

func (b *begun) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	start := b.Runner.Start
	if b.first != nil {
		start, b.first = b.first, nil
	}
	return start(ctx, r)
}

// chosen begins with a call of the tool that is chosen among those that are open.
func (h *hostedChoice) chosen(runner session.Runner, tools []*openTool) firstTurn {
	return func(ctx context.Context, r session.Request) (session.Turn, error) {
		if r.Only = h.callable(tools, r.Functions); len(r.Only) == 0 {
			return nil, unavailableChoice(h.asked)
		}
		r.ToolChoice = grammar.Required
		return runner.Start(ctx, r)
	}
}

// callable are the recipients of the chosen tool.
func (h *hostedChoice) callable(tools []*openTool, functions []harmony.ToolDescription) (
	names []string) {
	for _, t := range tools {
		switch {
		case !h.is(t.wantedTool):
		case t.kind == ToolBrowser, t.kind == ToolPython:
			names = append(names, t.kind)
		default:
			for _, f := range functions {
				name := harmony.FunctionsNamespace + "." + f.Name
				if t.Runs(name) && !slices.Contains(names, name) &&
					(h.name == "" || listed([]string{h.name}, f.Name)) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

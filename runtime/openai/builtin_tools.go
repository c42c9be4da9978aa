// Built-in tools: those that a request names by their type and this process runs; and a tool_choice
// that names one: {"type":"web_search"}, {"type":"mcp","server_label":...,"name":...}.
//
// What must stay true: a request that names a tool for which there is no back end goes on without
// it, and the client is told; a tool belongs to one turn at a time (kept_tools.go); the first call
// of a chosen tool's turn is of that tool, and a choice that cannot be kept is refused.

package openai

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/session"
)

// The kinds that tools are made of.
const (
	ToolBrowser = "browser"
	ToolPython  = "python"
	ToolMCP     = "mcp"
)

// builtinKinds are the kinds by the types that requests name.
var builtinKinds = map[string]string{
	"web_search": ToolBrowser, "web_search_2025_08_26": ToolBrowser,
	"web_search_preview": ToolBrowser, "web_search_preview_2025_03_11": ToolBrowser,
	"code_interpreter": ToolPython,
	"mcp":              ToolMCP,
}

// offeredTypes are the types of tools that the client runs.
var offeredTypes = []string{"function", "custom", "namespace"}

type wantedTool struct {
	asked     string // its type in the request
	kind      string
	label     string       // mcp: of the server
	allowed   []string     // mcp: its tools that may be called; nil: all
	approval  approvalRule // mcp
	container string       // of python: its id; in a request "": a new one
}

type openTool struct {
	session.Tool
	wantedTool
	functions []harmony.ToolDescription // that it offers
	approved  string                    // id of the call that the client has allowed
	owner     string                    // the response or conversation that left it; "": new
	used      atomic.Bool               // it was called
	clock     *time.Timer               // closes it while it is kept
}

// wanted reads the built-in tools of a request and returns the types that are left out. responses
// tells whether the route can express approvals and containers.
func (k *keptTools) wanted(o *object, of offer, responses bool) (wanted []wantedTool,
	ignored []string) {
	if of.choice.mode == grammar.None {
		return nil, of.ignored
	}
	for _, t := range of.listed {
		w := wantedTool{asked: t.text("type"), label: t.text("server_label"),
			approval: readApproval(t)}
		w.kind = builtinKinds[w.asked]
		switch {
		case slices.Contains(offeredTypes, w.asked) || w.kind != "" && of.allowed != nil &&
			!slices.ContainsFunc(of.allowed, func(a wantedTool) bool {
				return a.asked == w.asked && (a.label == "" || a.label == w.label)
			}):
		case w.kind == "" || k.makes == nil ||
			!responses && (w.approval.others || len(w.approval.always) > 0):
			ignored = append(ignored, w.asked)
		default:
			w.allowed = allowedNames(t)
			if c := t.get("container"); responses && c.Kind() == jsondoc.String {
				w.container = c.text()
			}
			wanted = append(wanted, w)
		}
	}
	if of.choice.mode == grammar.Required && len(of.functions)+len(wanted) == 0 {
		o.complain(invalid("tool_choice", `tool_choice is "required", but the request offers no `+
			"function that could be called"))
	}
	if of.hosted != nil && !slices.ContainsFunc(wanted, of.hosted.is) {
		o.complain(unavailableChoice(of.hosted.asked))
	}
	return wanted, ignored
}

// allowedNames reads allowed_tools of an MCP server: a list, or an object with tool_names.
func allowedNames(t *object) []string {
	v := t.get("allowed_tools")
	switch v.Kind() {
	case jsondoc.Array:
		return append([]string{}, textsOf(v.list())...)
	case jsondoc.Object:
		return append([]string{}, textsOf(v.object().list("tool_names"))...)
	}
	return nil
}

// Offer leaves out what the client does not allow. Servers' tools may carry the server's name in
// front of their own.
func (t *openTool) Offer(r *session.Request) {
	before := len(r.Functions)
	t.Tool.Offer(r)
	if t.allowed == nil {
		return
	}
	added := slices.DeleteFunc(slices.Clone(r.Functions[before:]),
		func(f harmony.ToolDescription) bool { return !listed(t.allowed, f.Name) })
	r.Functions = append(r.Functions[:before:before], added...)
}

// needsApproval tells whether the client is to be asked before this call of a function.
func (t *openTool) needsApproval(id, recipient string) bool {
	function, ok := strings.CutPrefix(recipient, harmony.FunctionsNamespace+".")
	return ok && id != t.approved && t.approval.asks(function)
}

func (t *openTool) Run(ctx context.Context, c session.Call, output func(string)) (
	session.ToolResult, error) {
	if t.needsApproval(c.ID, c.Recipient) {
		return session.ToolResult{}, session.ErrNeedsApproval
	}
	t.used.Store(true)
	return t.Tool.Run(ctx, c, output)
}

// Citations are those of a tool that has any.
func (t *openTool) Citations(answer string) []session.Citation {
	if c, ok := t.Tool.(session.Citer); ok {
		return c.Citations(answer)
	}
	return nil
}

type toolSettings struct {
	most     int           // calls; 0: the session's own bound
	chosen   *hostedChoice // must be called first; nil: any or none
	approved *session.Call // is run first; nil: none
	before   string        // the owner whose tools it takes over
	// left returns the next owner of the tools, if the turn ends well; nil: there is none
	left func() string
}

func (k *keptTools) start(ctx context.Context, a *answer, runner session.Runner,
	r session.Request, wanted []wantedTool, how toolSettings) (session.Turn, []*openTool, error) {
	open, missing, err := k.open(wanted, how.before)
	if err != nil {
		return nil, nil, err
	}
	if len(missing) > 0 {
		a.ignore(missing)
	}
	var tools []session.Tool
	for _, t := range open {
		if how.approved != nil {
			t.approved = how.approved.ID
		}
		tools = append(tools, t)
	}
	if how.chosen != nil {
		runner = firstBy(runner, how.chosen.chosen(runner, open))
	}
	turn, err := session.StartWithTools(ctx, runner, r, tools,
		session.ToolLimits{Calls: how.most})
	if err != nil {
		k.release(open, "")
		return nil, nil, err
	}
	return session.AtEnd(turn, func(d session.Done) { // the tools are handed on or closed
		owner := ""
		switch {
		case how.left == nil:
			closeTools(open)
			return
		case d.Finish != session.FinishError && d.Finish != session.FinishCancelled:
			if owner = how.left(); owner != "" {
				k.pass(how.before, owner)
			}
		}
		k.release(open, owner)
	}), open, nil
}

// toolOf is the tool that runs calls of this recipient, nil if the client does.
func toolOf(tools []*openTool, recipient string) *openTool {
	for _, t := range tools {
		if t.Runs(recipient) {
			return t
		}
	}
	return nil
}

// startQuietly is the starter of chat completions with built-in tools.
func (k *keptTools) startQuietly(wanted []wantedTool, chosen *hostedChoice) starter {
	return func(ctx context.Context, a *answer, r session.Request) (session.Turn, error) {
		turn, open, err := k.start(ctx, a, a.runner, r, wanted, toolSettings{chosen: chosen})
		if err != nil {
			return nil, err
		}
		return quietly(turn, open), nil
	}
}

// quietly hides the calls that this process runs: chat completions cannot express them. The
// client's own calls are numbered as if there were no others.
func quietly(turn session.Turn, tools []*openTool) session.Turn {
	numbers := map[int]int{} // the number of a call in the turn to the client's number
	return session.Each(turn, func(e session.Event) (_ session.Event, shown bool) {
		switch x := e.(type) {
		case session.CallStart:
			if toolOf(tools, x.Recipient) != nil {
				return nil, false
			}
			numbers[x.Index] = len(numbers)
			x.Index = numbers[x.Index]
			return x, true
		case session.CallArguments:
			x.Index, shown = numbers[x.Index]
			return x, shown
		case session.CallEnd:
			x.Index, shown = numbers[x.Index]
			return x, shown
		case session.ToolOutput, session.ToolEnd:
			return nil, false
		}
		return e, true
	})
}

type hostedChoice struct {
	asked string // the type in the request
	label string // mcp: of the server
	name  string // mcp: of its tool; "": any
}

func (h *hostedChoice) kind() string { return builtinKinds[h.asked] }

func (h *hostedChoice) is(w wantedTool) bool {
	return h.kind() == w.kind && (w.kind != ToolMCP || h.label == w.label)
}

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
		of.choiceEcho = c.value().Raw
	}
	for _, t := range of.listed {
		w := wantedTool{asked: t.text("type"), label: t.text("server_label")}
		w.kind = builtinKinds[w.asked]
		switch {
		case w.kind != "" && h.is(w):
			of.hosted = h
			return
		case w.kind == "" && w.asked == kind:
			o.complain(unavailableChoice(kind))
			return
		}
	}
	o.complain(invalid("tool_choice", "tool_choice names %s, which is not among the tools", named))
}

func unavailableChoice(kind string) *fault {
	return unsupported("tool_choice", fmt.Sprintf("tool_choice of type %q", kind),
		"this server has no such tool")
}

type firstTurn func(ctx context.Context, r session.Request) (session.Turn, error)

// firstBy is a runner whose first turn is started in another way.
func firstBy(runner session.Runner, start firstTurn) session.Runner {
	return session.Starts(runner, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		now := start
		start = runner.Start
		return now(ctx, r)
	})
}

func (h *hostedChoice) chosen(runner session.Runner, tools []*openTool) firstTurn {
	return func(ctx context.Context, r session.Request) (session.Turn, error) {
		if r.Only = h.callable(tools, r.Functions); len(r.Only) == 0 {
			return nil, unavailableChoice(h.asked)
		}
		r.ToolChoice = grammar.Required
		return runner.Start(ctx, r)
	}
}

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

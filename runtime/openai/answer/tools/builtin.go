// Built-in tools: those that a request names by their type and this process runs; and a tool_choice
// that names one: {"type":"web_search"}, {"type":"mcp","server_label":...,"name":...}.
//
// What must stay true: a requested tool without a back end is refused, but for those of types.go; a
// tool belongs to one turn at a time (pool.go); the first call of a chosen tool's turn is of that
// tool, and an impossible choice is refused.

package tools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

// The kinds of tools.
const (
	Browser = "browser"
	Python  = "python"
	MCP     = "mcp"
)

// Requested is a built-in tool that a request names.
type Requested struct {
	typ       string // its type in the request
	Kind      string
	Label     string       // mcp: of the server
	path      string       // mcp: in the request
	allowed   []string     // mcp: its tools that may be called; nil: all
	approval  approvalRule // mcp
	cannotAsk bool         // the route cannot ask for approval
	web       web          // of a browser
	Container string       // of python: its id; in a request "": a new one
	client    string       // its owner
}

// Tool is a built-in tool of a turn.
type Tool struct {
	session.Tool
	Requested
	Approved string      // id of the call that the client has allowed
	owner    string      // the response or conversation that left it; "": new
	used     atomic.Bool // it was called
	clock    *time.Timer // closes it while it is kept
}

// ReadRequested reads the built-in tools of a request and returns the types that it goes on
// without. responses tells whether the route supports approvals and containers.
func (k *Pool) ReadRequested(o *fields.Object, offer *Offer, responses bool) (list []Requested,
	ignored []string) {
	if offer.Choice.mode == grammar.None {
		return nil, offer.Ignored
	}
	ignored = offer.Ignored
	for i, t := range offer.listed {
		w := Requested{typ: t.Text("type"), Label: t.Text("server_label"),
			approval: readApproval(t)}
		w.Kind = handlingOf(w.typ).runs
		w.allowed = allowedNames(t)
		switch {
		case w.Kind == "" || offer.allowed != nil &&
			!slices.ContainsFunc(offer.allowed, func(a Requested) bool {
				return a.typ == w.typ && (a.Label == "" || a.Label == w.Label)
			}):
		case !k.has(w):
			if i < len(offer.ToolsEcho) { // else an item of the input has it, which is history
				if !w.mayGo(len(offer.Functions)) || offer.Hosted != nil &&
					offer.Hosted.matches(w) {
					t.Value().AddFault(w.missing())
				}
				offer.ToolsEcho[i] = nil
			}
			ignored = append(ignored, w.typ)
		case !responses && w.Kind == MCP && !w.approval.unset && w.approval.needsAny():
			t.Get("require_approval").Unsupported("approval of calls on this route",
				`send require_approval "never", or use /v1/responses`)
		default:
			w.path, w.cannotAsk = t.Value().Path, !responses
			if w.Kind == Browser {
				w.web = readWeb(t, w.typ)
				same := func(w Requested) bool { return w.Kind == Browser }
				if b := slices.IndexFunc(list, same); b >= 0 {
					list[b].web = list[b].web.and(w.web) // one browser has the pages
					continue
				}
			}
			if c := t.Get("container"); responses && c.Kind() == jsondoc.String {
				w.Container = c.Text()
			}
			list = append(list, w)
		}
	}
	offer.ToolsEcho = slices.DeleteFunc(offer.ToolsEcho, func(e any) bool { return e == nil })
	if offer.Choice.mode == grammar.Required && len(offer.Functions)+len(list) == 0 {
		o.AddFault(fields.Invalid("tool_choice",
			`tool_choice is "required", but the request offers no `+
				"function that could be called"))
	}
	if offer.Hosted != nil && !slices.ContainsFunc(list, offer.Hosted.matches) {
		o.AddFault(unavailableChoice(offer.Hosted.typ))
	}
	return list, ignored
}

// web is what a request's search may reach: nothing live, and some domains only.
type web struct {
	offline     bool
	only, never []string
	results     int // of a search; 0: as many as usual
	// calls of each of the browser's functions; without a limit math.MaxInt
	searches, fetches int
	fetch             bool // the client asked for fetched pages
}

const noSearch = -1

// readWeb reads external_web_access, and domains in OpenAI's place and in Anthropic's. A tool that
// fetches does not search, but one that searches opens what it has found.
func readWeb(t *fields.Object, typ string) (w web) {
	most := t.Integer("max_uses", 1, math.MaxInt32, math.MaxInt)
	if w.searches, w.fetches = most, math.MaxInt; withoutDate(typ) == webFetch {
		w.searches, w.fetches, w.fetch = noSearch, most, true
	}
	w.offline = t.Has("external_web_access") && !t.Flag("external_web_access")
	w.results = map[string]int{"low": 5, "high": 20}[t.Text("search_context_size")]
	for _, o := range []*fields.Object{t, t.Object("filters")} {
		if only := fields.TextsOf(o.List("allowed_domains")); len(only) > 0 {
			for i, domain := range only { // in one form, since two lists are compared
				if _, rest, has := strings.Cut(domain, "://"); has {
					domain = rest
				}
				only[i] = strings.TrimSuffix(strings.ToLower(domain), "/")
			}
			w.only = only
		}
		w.never = append(w.never, fields.TextsOf(o.List("blocked_domains"))...)
	}
	return w
}

// and is what both tools of a request allow; the calls are those of each.
func (w web) and(second web) web {
	w.offline = w.offline || second.offline
	w.never, w.results = slices.Concat(w.never, second.never), max(w.results, second.results)
	w.searches, w.fetches = max(w.searches, second.searches), min(w.fetches, second.fetches)
	w.fetch = w.fetch || second.fetch
	if w.only == nil || second.only == nil {
		w.only = append(w.only, second.only...)
		return w
	}
	both := []string{}
	for _, lists := range [][2][]string{{w.only, second.only}, {second.only, w.only}} {
		for _, domain := range lists[0] {
			if slices.ContainsFunc(lists[1], func(wider string) bool {
				return domain == wider || strings.HasSuffix(domain, "."+wider) ||
					strings.HasPrefix(domain, wider+"/")
			}) && !slices.Contains(both, domain) {
				both = append(both, domain)
			}
		}
	}
	w.only = both
	return w
}

var ErrMaxUses = errors.New("this request allows no more calls of this tool; answer now")

// spend counts a call of a browser, and refuses one that the request does not allow.
func (t *Tool) spend(recipient string) error {
	remaining := &t.web.searches
	switch {
	case t.Kind != Browser || recipient == "browser.find":
		return nil
	case recipient == "browser.open":
		remaining = &t.web.fetches
	case *remaining == noSearch:
		return errors.New("this request allows no search; open a page by its URL")
	}
	if *remaining == 0 {
		return ErrMaxUses
	}
	*remaining--
	return nil
}

// limitWeb limits a browser's next calls, and reports whether it can: an MCP server's cannot.
func (t *Tool) limitWeb() (can bool) {
	l, can := t.Tool.(interface {
		Limit(offline bool, only, never []string, results int)
	})
	if can {
		l.Limit(t.web.offline, t.web.only, t.web.never, t.web.results)
	}
	return can || !t.web.offline && t.web.only == nil && t.web.never == nil
}

// mayGo tells whether a request with so many functions may go on without the tool.
func (w Requested) mayGo(functions int) bool { return w.Kind != MCP && functions > 0 }

// missing is the fault of a tool without a back end.
func (w Requested) missing() *fields.Fault {
	if w.Kind == MCP {
		return fields.Refusal(http.StatusBadRequest, "tools", "mcp_server_unavailable",
			fmt.Sprintf("the MCP server %q cannot be used: this server's mcp.json does not name "+
				"it, or it does not answer", fields.Brief(w.Label)))
	}
	if w.web.offline || w.web.only != nil || w.web.never != nil {
		return fields.Unsupported("tools", "a limited tool of type "+w.typ,
			"its browser is an MCP server's or none; start the server with --tools browser")
	}
	return fields.Unsupported("tools", "a tool of type "+w.typ,
		"start the server with --tools "+w.Kind)
}

// Fetches tells that pages which the tool opens are fetched ones to the client.
func (t *Tool) Fetches() bool { return t.web.fetch }

// Citations are those of a tool that has any.
func (t *Tool) Citations(answer string) []session.Citation {
	if c, ok := t.Tool.(session.Citer); ok {
		return c.Citations(answer)
	}
	return nil
}

// ApprovedCall is a call that the client has allowed; Name is the server's own name of the tool.
type ApprovedCall struct {
	Label, Name   string
	ID, Arguments string
}

// start begins with the call, as if the model had just made it.
func (a *ApprovedCall) start(tools []*Tool) FirstStart {
	return func(_ context.Context, r session.Request) (session.Turn, error) {
		callable := (&HostedChoice{typ: MCP, label: a.Label, name: a.Name}).callable(tools,
			r.Functions)
		if len(callable) == 0 {
			return nil, fields.Invalid("tools", "the approved call needs its server: send the mcp "+
				"tool of %q that offers %q again", a.Label, a.Name)
		}
		call := session.Call{ID: a.ID, Arguments: a.Arguments, Recipient: callable[0],
			Name: strings.TrimPrefix(callable[0], harmony.FunctionsNamespace+".")}
		done := session.Done{Finish: session.FinishToolCalls}
		return session.Finished(session.Result{Calls: []session.Call{call}, Done: done},
			session.CallStart{ID: call.ID, Name: call.Name, Recipient: call.Recipient},
			session.CallArguments{Text: call.Arguments},
			session.CallEnd{Arguments: call.Arguments}, done), nil
	}
}

// Settings are how the tools of a turn are used.
type Settings struct {
	MaxCalls    int           // calls; 0: the session's own bound
	Chosen      *HostedChoice // must be called first; nil: any or none
	Approved    *ApprovedCall // is run first; nil: none
	OwnerBefore string        // the owner whose tools it takes over
	// NextOwner returns the next owner of the tools, if the turn ends well; nil: they are closed
	NextOwner func() string
}

func (k *Pool) Start(ctx context.Context, a *answer.Answer, runner session.Runner,
	r session.Request, requested []Requested, how Settings) (session.Turn, []*Tool, error) {
	if err := claim(a.Exchange, requested); err != nil {
		return nil, nil, err
	}
	open, missing, err := k.Open(requested, how.OwnerBefore)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range missing {
		if !w.mayGo(len(r.Functions)) {
			k.Release(open, "")
			return nil, nil, w.missing()
		}
		a.Ignore([]string{w.typ})
	}
	var tools []session.Tool
	for _, t := range open {
		if how.Approved != nil {
			t.Approved = how.Approved.ID
		}
		tools = append(tools, t)
	}
	if how.Approved != nil {
		runner = WithFirstTurn(runner, how.Approved.start(open))
	}
	if how.Chosen != nil {
		runner = WithFirstTurn(runner, how.Chosen.startChosen(runner, open))
	}
	turn, err := session.StartWithTools(ctx, runner, r, tools, session.ToolOptions{
		Calls: how.MaxCalls, Approve: func(_ context.Context, c session.Call) error {
			t := ByRecipient(open, c.Recipient)
			if t.NeedsApproval(c.ID, c.Recipient) {
				return session.ErrNeedsApproval
			}
			t.used.Store(true)
			return t.spend(c.Recipient)
		}})
	if err != nil {
		k.Release(open, "")
		return nil, nil, err
	}
	return session.OnDone(turn, func(d session.Done) { // the tools are handed on or closed
		owner := ""
		switch {
		case how.NextOwner == nil:
			closeTools(open)
			return
		case d.Finish != session.FinishError && d.Finish != session.FinishCancelled:
			if owner = how.NextOwner(); owner != "" {
				k.reassign(how.OwnerBefore, owner)
			}
		}
		k.Release(open, owner)
	}), open, nil
}

// ByRecipient is the tool that runs calls of this recipient, nil if the client does.
func ByRecipient(tools []*Tool, recipient string) *Tool {
	for _, t := range tools {
		if t.Runs(recipient) {
			return t
		}
	}
	return nil
}

// StartHidden is the starter of chat completions with built-in tools.
func (k *Pool) StartHidden(requested []Requested, chosen *HostedChoice) answer.Starter {
	return func(ctx context.Context, a *answer.Answer, r session.Request) (session.Turn, error) {
		turn, open, err := k.Start(ctx, a, a.Runner, r, requested, Settings{Chosen: chosen})
		if err != nil {
			return nil, err
		}
		return hideCalls(turn, open), nil
	}
}

// hideCalls hides the calls that this process runs: chat completions cannot express them. The
// client's own calls are numbered without them.
func hideCalls(turn session.Turn, tools []*Tool) session.Turn {
	numbers := map[int]int{} // a call's number in the turn to the client's number
	return session.MapEvents(turn, func(e session.Event) (_ session.Event, shown bool) {
		switch x := e.(type) {
		case session.CallStart:
			if ByRecipient(tools, x.Recipient) != nil {
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

// HostedChoice is a tool_choice that names a built-in tool.
type HostedChoice struct {
	typ   string // the type in the request
	label string // mcp: of the server
	name  string // mcp: of its tool; "": any
}

func (h *HostedChoice) kind() string { return handlingOf(h.typ).runs }

func (h *HostedChoice) matches(w Requested) bool {
	return h.kind() == w.Kind && (w.Kind != MCP || h.label == w.Label)
}

func (offer *Offer) chooseHosted(o, c *fields.Object, kind string) {
	h := &HostedChoice{typ: kind, label: c.Text("server_label"), name: c.Text("name")}
	if kind == "mcp" && h.label == "" {
		c.Get("server_label").Missing()
	}
	named := fmt.Sprintf("the tool %q", kind)
	if kind == "mcp" {
		named = fmt.Sprintf("the MCP server %q", h.label)
	}
	switch h.kind() {
	case "":
	case Browser:
		offer.ChoiceEcho = map[string]string{"type": "web_search_preview"} // OpenAI's only name
	default:
		offer.ChoiceEcho = c.Value().Raw
	}
	for _, t := range offer.listed {
		w := Requested{typ: t.Text("type"), Label: t.Text("server_label")}
		w.Kind = handlingOf(w.typ).runs
		switch {
		case w.Kind != "" && h.matches(w):
			offer.Hosted = h
			return
		case w.Kind == "" && w.typ == kind:
			o.AddFault(unavailableChoice(kind))
			return
		}
	}
	o.AddFault(fields.Invalid("tool_choice", "tool_choice names %s, which is not among the tools",
		named))
}

func unavailableChoice(kind string) *fields.Fault {
	return fields.Unsupported("tool_choice", fmt.Sprintf("tool_choice of type %q", kind),
		"this server has no such tool")
}

// FirstStart starts the first turn of several.
type FirstStart func(ctx context.Context, r session.Request) (session.Turn, error)

// WithFirstTurn is a runner whose first turn is started by start.
func WithFirstTurn(runner session.Runner, start FirstStart) session.Runner {
	return session.WithStart(runner, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		now := start
		start = runner.Start
		return now(ctx, r)
	})
}

func (h *HostedChoice) startChosen(runner session.Runner, tools []*Tool) FirstStart {
	return func(ctx context.Context, r session.Request) (session.Turn, error) {
		if r.Only = h.callable(tools, r.Functions); len(r.Only) == 0 {
			if h.name != "" {
				return nil, fields.Unsupported("tool_choice", fmt.Sprintf(
					"tool_choice of the tool %q of the MCP server %q", h.name, h.label),
					"this server has no such tool, or allowed_tools leaves it out")
			}
			return nil, unavailableChoice(h.typ)
		}
		r.ToolChoice = grammar.Required
		return runner.Start(ctx, r)
	}
}

func (h *HostedChoice) callable(tools []*Tool, functions []harmony.ToolDescription) (
	names []string) {
	for _, t := range tools {
		switch {
		case !h.matches(t.Requested):
		case t.Kind == Browser && withoutDate(h.typ) == webFetch:
			names = append(names, "browser.open")
		case t.Kind == Browser:
			names = append(names, "browser.search")
		case t.Kind == Python:
			names = append(names, t.Kind)
		default:
			for _, f := range functions {
				name := harmony.FunctionsNamespace + "." + f.Name
				if t.Runs(name) && !slices.Contains(names, name) &&
					(h.name == "" || t.ServerName(name) == h.name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// claim makes tools the client's, or refuses those that its key may not use.
func claim(e *answer.Exchange, requested []Requested) error {
	for i := range requested {
		w := &requested[i]
		if w.client = e.Client; !e.Key.MayUseTool(w.Kind) {
			return fields.Refusal(http.StatusForbidden, "tools", "tool_not_allowed",
				"this key may not use the tool "+w.typ)
		}
	}
	return nil
}

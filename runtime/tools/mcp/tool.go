// The servers' tools in one conversation.

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/browser"
)

// Tool is the servers' tools, for one conversation.
type Tool struct {
	servers         *Servers
	browser, python *source   // nil: not replaced by a server, or not wanted
	sources         []*source // of the tools
	functions       func(server string) bool

	busy        sync.Mutex // held for one call or one listing, which may take minutes
	joined      int        // how many of servers.tools this conversation has seen
	connections map[*source]*connection
	failures    map[*source]int // since the last successful call

	mu        sync.Mutex // guards the fields below; never held while waiting
	tools     []*tool
	allowed   []string         // the servers' own names; nil: all
	lazy      bool             // tools are described on request only
	offered   map[string]*tool // by function
	described []*tool
	pages     map[int]citedPage // of a browser, by cursor
}

type citedPage struct{ url, title string }

// Tool makes a new conversation's tool: the servers that replace the wanted built-in tools, and the
// functions of servers that functions accepts by name; nil if there are none.
func (s *Servers) Tool(browse, python bool, functions func(server string) bool) *Tool {
	t := &Tool{servers: s, offered: map[string]*tool{}, connections: map[*source]*connection{},
		failures: map[*source]int{}, pages: map[int]citedPage{}, functions: functions}
	s.mu.Lock()
	defer s.mu.Unlock()
	if browse {
		t.browser = s.browser
	}
	if python {
		t.python = s.python
	}
	t.addNewTools(false)
	pending := slices.ContainsFunc(s.pending,
		func(from *source) bool { return functions(from.label) })
	if t.browser == nil && t.python == nil && len(t.tools) == 0 && !pending {
		return nil
	}
	return t
}

// addNewTools adds the tools of servers that connected since the last call. A client of the port
// has not seen them, so onlyTrusted leaves out those that need approval. servers.mu is held.
func (t *Tool) addNewTools(onlyTrusted bool) {
	if t.joined == len(t.servers.tools) {
		return
	}
	for _, one := range t.servers.tools[t.joined:] {
		if t.functions(one.source.label) && !(onlyTrusted && one.source.needsApproval()) {
			t.tools = append(t.tools, one)
			if !slices.Contains(t.sources, one.source) {
				t.sources = append(t.sources, one.source)
			}
		}
	}
	t.joined = len(t.servers.tools)
	t.chooseLazy()
}

// chooseLazy decides whether all tools together take too much of the context; t.mu is held.
func (t *Tool) chooseLazy() {
	if t.servers.o.Context == nil {
		return
	}
	var all []harmony.ToolDescription
	for _, one := range t.permitted(t.tools) {
		all = append(all, one.description)
	}
	context := t.servers.o.Context()
	n, _ := countTokens(all) // describe has checked that each can be rendered
	t.lazy = context > 0 && n > context/10
}

// relistTimeout limits how long listing again may delay a turn.
const relistTimeout = 5 * time.Second

// relist lists again the tools of servers that announced changes. If a server then fails to list
// them, its old tools stay. t.busy is held.
func (t *Tool) relist() {
	t.servers.mu.Lock()
	t.mu.Lock()
	t.addNewTools(!t.servers.o.Interactive)
	t.mu.Unlock()
	t.servers.mu.Unlock()
	for _, from := range t.sources {
		if t.connections[from] == nil {
			t.servers.claimConnection(from, t.connections, true)
		}
		c := t.connections[from]
		if c == nil || c.isDone() || !c.changed.Swap(false) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), relistTimeout)
		list, err := listTools(ctx, c)
		cancel()
		if err == nil {
			t.replace(from, list)
		}
	}
}

func (t *Tool) replace(from *source, list []*sdk.Tool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	isOld := func(one *tool) bool { return one.source == from }
	t.tools = slices.DeleteFunc(slices.Clone(t.tools), isOld)
	tools, _ := describeAll(from, list, t.tools) // notes are given at the start only
	t.tools = append(t.tools, tools...)
	described := t.described
	t.described = slices.DeleteFunc(slices.Clone(described), isOld)
	for _, one := range tools {
		if slices.ContainsFunc(described, func(old *tool) bool {
			return isOld(old) && old.name == one.name
		}) {
			t.described = append(t.described, one)
		}
	}
	t.chooseLazy()
}

// describeTool is the function with which the model asks for a tool's description.
const describeTool = "describe_tool"

// Offer adds the servers' functions; a caller's function of the same name wins. During a call no
// server is asked for its tools.
func (t *Tool) Offer(r *session.Request) {
	if t.busy.TryLock() {
		t.relist()
		t.busy.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Browser = r.Browser || t.browser != nil
	r.Python = r.Python || t.python != nil
	list := t.tools
	if t.lazy {
		list = t.described
	}
	clear(t.offered)
	callers := r.Functions
	r.Functions = slices.Clip(r.Functions)
	isTaken := func(name string) bool {
		return slices.ContainsFunc(callers, func(f harmony.ToolDescription) bool {
			return f.Name == name
		})
	}
	for _, one := range t.permitted(list) {
		if !isTaken(one.description.Name) {
			r.Functions = append(r.Functions, one.description)
			t.offered[one.description.Name] = one
		}
	}
	if t.lazy && !isTaken(describeTool) {
		r.Functions = append(r.Functions, t.directory())
		t.offered[describeTool] = nil
	}
}

// directory is the function that describes the others.
func (t *Tool) directory() harmony.ToolDescription {
	var text strings.Builder
	text.WriteString("Makes one of these functions callable and shows its parameters:")
	for _, one := range t.permitted(t.tools) {
		line, _, _ := strings.Cut(strings.TrimSpace(one.description.Description), "\n")
		fmt.Fprintf(&text, "\n%s: %s", one.description.Name, truncate(line, 80, "..."))
	}
	return harmony.ToolDescription{Name: describeTool, Description: text.String(),
		Parameters: json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}`)}
}

func (t *Tool) Runs(recipient string) bool {
	_, ok := t.tool(recipient)
	return ok
}

// tool returns the tool that runs the calls of a recipient, nil for describeTool.
func (t *Tool) tool(recipient string) (one *tool, ok bool) {
	space, name, _ := strings.Cut(recipient, ".")
	switch recipient {
	case "python":
		return &tool{source: t.python, name: "python"}, t.python != nil
	case "browser.search", "browser.open", "browser.find":
		return &tool{source: t.browser, name: name}, t.browser != nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one, ok = t.offered[name]
	return one, ok && space == harmony.FunctionsNamespace
}

// resolve returns a call's tool, nil for describeTool, and the arguments as its server reads them.
// An approved tool is never replaced by one that took its function.
func (t *Tool) resolve(c session.Call) (one *tool, arguments object, err error) {
	one, ok := t.tool(c.Recipient)
	switch {
	case ok && one == nil:
		return nil, nil, nil
	case !ok || c.Tool != "" && (one.source.label != c.Server || one.name != c.Tool):
		return nil, nil, fmt.Errorf("there is no function %s",
			strings.TrimPrefix(c.Recipient, harmony.FunctionsNamespace+"."))
	case c.Recipient == "python":
		code, _ := json.Marshal(c.Arguments)
		return one, object{"code": code}, nil
	}
	if err = json.Unmarshal([]byte(c.Arguments), &arguments); err != nil {
		err = fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	return one, arguments, err
}

// Resolve names the server and the tool of a call, whatever its arguments are.
func (t *Tool) Resolve(c session.Call) (session.Call, error) {
	one, _, err := t.resolve(c)
	if one != nil {
		c.Server, c.Tool = one.source.label, one.name
	}
	return c, err
}

// Run makes a call, within the time limit of Options.
func (t *Tool) Run(ctx context.Context, c session.Call, output func(string)) (session.ToolResult,
	error) {
	t.busy.Lock()
	defer t.busy.Unlock()
	one, arguments, err := t.resolve(c)
	switch {
	case err != nil:
		return session.ToolResult{}, err
	case one == nil:
		return t.describe(c.Arguments)
	}
	result, err := t.call(ctx, one.source, one.name, arguments, output)
	if page := display.FindStringSubmatch(result.Text); one.source == t.browser && page != nil {
		cursor, _ := strconv.Atoi(page[1])
		t.mu.Lock()
		t.pages[cursor] = citedPage{page[3], page[2]}
		t.mu.Unlock()
		result.Sources = []session.Source{{URL: page[3], Title: page[2]}}
	}
	return result, err
}

// display matches the head of a page in a browser's result: [4] Title (https://example.com/page).
var display = regexp.MustCompile(`^\[(\d{1,6})\] (.*) \((https?://[^\s)]+)\)\n`)

// Citations finds the marks of pages that a server's browser has shown.
func (t *Tool) Citations(answer string) []session.Citation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return browser.Cite(answer, func(cursor, _ int) session.Source {
		return session.Source{URL: t.pages[cursor].url, Title: t.pages[cursor].title}
	})
}

// describe makes a tool callable from the next step of the turn on.
func (t *Tool) describe(arguments string) (session.ToolResult, error) {
	var request struct{ Name string }
	_ = json.Unmarshal([]byte(arguments), &request) // an empty name matches no tool
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.permitted(t.tools) {
		if one.description.Name != strings.TrimPrefix(request.Name, "functions.") {
			continue
		}
		if !slices.Contains(t.described, one) {
			t.described = append(t.described, one)
		}
		return session.ToolResult{Title: "describes " + one.description.Name,
			Text: fmt.Sprintf("functions.%s can be called now.\n%s\nParameters: %s",
				one.description.Name, one.description.Description, one.description.Parameters)}, nil
	}
	return session.ToolResult{}, fmt.Errorf("there is no function %q; describe_tool lists them",
		request.Name)
}

// maxFailures is how many failures in a row stop the use of a server.
const maxFailures = 2

// call connects to the server if it has to, and calls its tool.
func (t *Tool) call(ctx context.Context, from *source, name string,
	arguments object, output func(string)) (session.ToolResult, error) {
	var none session.ToolResult
	bounded, cancel := context.WithTimeout(ctx, t.servers.o.Time)
	defer cancel()
	for attempt := 0; ; attempt++ {
		conn, err := t.connectionTo(bounded, from)
		if err != nil {
			return none, err
		}
		result, err := callTool(bounded, conn, name, arguments, output)
		if err == nil {
			t.failures[from] = 0
			return convertResult(from.label+": "+name, result)
		}
		refused := refusalMessage(err)
		switch {
		case ctx.Err() != nil:
			return none, ctx.Err()
		case bounded.Err() != nil:
			return none, fmt.Errorf("the server %s did not answer within %v", from.label,
				t.servers.o.Time)
		case refused != "" && (attempt > 0 || !conn.hasLostSession(bounded)):
			return none, fmt.Errorf("the server %s: %s", from.label, refused)
		}
		t.disconnect(from)
		if attempt == 0 && (refused != "" || errors.Is(err, syscall.ECONNREFUSED)) {
			continue // the server restarted and the call was not executed
		}
		return none, fmt.Errorf("the server %s ended during the call, which may or may not have "+
			"been carried out (%s)%s", from.label, reason(err), t.nextAttempt(from))
	}
}

// hasLostSession tells that the server has lost the session: whatever its error was, it refuses to
// list its tools too.
func (c *connection) hasLostSession(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	_, err := await(ctx, func() (any, error) { return c.ListTools(ctx, nil) })
	return err != nil && ctx.Err() == nil
}

// callTool returns when ctx ends, even if the server hangs.
func callTool(ctx context.Context, c *connection, name string,
	arguments object, output func(string)) (*sdk.CallToolResult, error) {
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	token, end := c.start(output)
	defer end()
	params.SetProgressToken(token)
	return await(ctx, func() (*sdk.CallToolResult, error) { return c.CallTool(ctx, params) })
}

// connectionTo returns the conversation's connection to a server, reconnecting if it has ended.
func (t *Tool) connectionTo(ctx context.Context, from *source) (*connection, error) {
	if t.connections[from] == nil {
		t.servers.claimConnection(from, t.connections, false)
	}
	if c := t.connections[from]; c != nil && !c.isDone() {
		return c, nil
	}
	t.disconnect(from)
	if t.failures[from] >= maxFailures {
		t.failures[from]-- // the next call tries again: the server may be back
		return nil, fmt.Errorf("the server %s has failed %d times in a row, so this call was not "+
			"made", from.label, maxFailures)
	}
	c, err := from.connect(ctx)
	if err != nil {
		t.failures[from]++
		return nil, fmt.Errorf("the server %s cannot be reached: %w%s", from.label, err,
			t.nextAttempt(from))
	}
	t.connections[from] = c
	return c, nil
}

func (t *Tool) disconnect(from *source) {
	if c := t.connections[from]; c != nil {
		c.close()
		delete(t.connections, from)
		t.failures[from]++
	}
}

// nextAttempt says what the next call will do.
func (t *Tool) nextAttempt(from *source) string {
	if t.failures[from] >= maxFailures {
		return "; do without it"
	}
	return "; the next call starts it again"
}

// maxResult limits the bytes read of a result; the session shows the model less.
const maxResult = 1 << 20

func convertResult(title string, r *sdk.CallToolResult) (session.ToolResult, error) {
	var parts []string
	for _, content := range r.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[an image, %s, %d bytes: it cannot be shown]",
				c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[a sound, %s, %d bytes: it cannot be played]",
				c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, strings.TrimSpace(cmp.Or(c.Title, c.Name)+" "+c.URI+" "+
				c.Description))
		case *sdk.EmbeddedResource:
			if c.Resource != nil {
				parts = append(parts, cmp.Or(c.Resource.Text, c.Resource.URI))
			}
		}
	}
	text := strings.Join(parts, "\n")
	if len(text) > maxResult {
		text = fmt.Sprintf("%s\n[%d of %d bytes are shown]", text[:maxResult], maxResult,
			len(text))
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	result := session.ToolResult{Text: text, Title: title}
	if r.IsError {
		result.Text = ""
		return result, errors.New(cmp.Or(text, "the tool failed and does not say why"))
	}
	return result, nil
}

// Close ends the conversation's sessions.
func (t *Tool) Close() error {
	t.busy.Lock()
	defer t.busy.Unlock()
	closeAll(t.connections)
	return nil
}

func closeAll(list map[*source]*connection) {
	var all sync.WaitGroup
	for _, c := range list {
		all.Go(c.close)
	}
	all.Wait()
	clear(list)
}

// The output items of calls, the client's and those that this process runs: web_search_call,
// code_interpreter_call, mcp_call and mcp_list_tools, with their events.
//
// What must stay true: an item is added when its call begins, and done once, when the call has
// returned or the turn has ended without it.

package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

// toolItem begins the items of the tools that this process runs.
type toolItem struct {
	itemHead
	Status string `json:"status"`
}

func (i *toolItem) state() *string { return &i.Status }

func newToolItem(prefix, kind string) toolItem {
	return toolItem{itemHead{answer.NewID(prefix), kind}, "in_progress"}
}

type webSearchItem struct {
	toolItem
	Action  searchAction   `json:"action"`
	Results []searchResult `json:"results,omitempty"` // only if the client asks for them
}

type searchResult struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// searchAction is the action of a browser's call: search, open_page or find_in_page.
type searchAction struct {
	Type    string   `json:"type"`
	Query   string   `json:"query,omitempty"`
	Queries []string `json:"queries,omitempty"`
	URL     *string  `json:"url,omitempty"`
	Pattern *string  `json:"pattern,omitempty"`
	Sources []any    `json:"sources,omitempty"` // of a search, only if the client asks for them
}

type codeItem struct {
	toolItem
	ContainerID string    `json:"container_id"`
	Code        string    `json:"code"`
	Outputs     []codeLog `json:"outputs"` // null unless the client asks for them
}

type codeLog struct {
	Type string `json:"type"` // logs
	Logs string `json:"logs"`
}

type mcpCallItem struct {
	toolItem
	ServerLabel string    `json:"server_label"`
	Name        string    `json:"name"`
	Arguments   string    `json:"arguments"`
	Output      *string   `json:"output"`
	Error       *mcpError `json:"error"`
	ApprovalID  *string   `json:"approval_request_id"`
}

type mcpError struct {
	Type    string        `json:"type"` // mcp_tool_execution_error
	Content []contentPart `json:"content"`
}

type mcpListItem struct {
	itemHead
	ServerLabel string    `json:"server_label"`
	Tools       []mcpTool `json:"tools"`
}

type mcpTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// toolCall is a call and its item. The item of a search or of client_items.go is nil until the
// arguments are complete, since it contains them.
type toolCall struct {
	session.CallStart
	item          outputItem
	index         int         // in the response's output
	tool          *tools.Tool // nil: the client runs it
	needsApproval bool        // it asks for approval and is not run
}

func (c *composer) listTools() {
	for _, t := range c.tools {
		if t.Kind != tools.MCP {
			continue
		}
		item := &mcpListItem{itemHead: itemHead{answer.NewID("mcpl_"), "mcp_list_tools"},
			ServerLabel: t.Label, Tools: []mcpTool{}}
		c.openItem(item)
		c.send("response.mcp_list_tools.in_progress", c.inItem())
		for _, f := range t.Tools() {
			schema := f.Parameters
			if len(schema) == 0 {
				schema = json.RawMessage(`{"type":"object"}`)
			}
			item.Tools = append(item.Tools, mcpTool{Name: f.Name, Description: f.Description,
				InputSchema: schema})
		}
		c.send("response.mcp_list_tools.completed", c.inItem())
		c.closeItem("completed")
	}
}

func (c *composer) startCall(e session.CallStart) {
	call := &toolCall{CallStart: e, tool: tools.ByRecipient(c.tools, e.Recipient)}
	if c.calls == nil {
		c.calls = map[int]*toolCall{}
	}
	c.calls[e.Index] = call
	switch t := call.tool; {
	case t == nil && c.names[e.Name].Item != "":
		c.closeItem("completed")
		return // its item has the whole call
	case t == nil:
		call.item = c.callItem(e)
		c.add(call)
		return
	case t.NeedsApproval(e.ID, e.Recipient):
		call.needsApproval = true
	case t.Kind == tools.Python:
		call.item = &codeItem{toolItem: newToolItem("ci_", "code_interpreter_call"),
			ContainerID: t.Container}
	case t.Kind == tools.MCP:
		item := &mcpCallItem{toolItem: newToolItem("mcp_", "mcp_call"), ServerLabel: t.Label,
			Name: t.ServerName(e.Recipient)}
		if e.ID == t.Approved {
			item.ApprovalID = new(approvalID(e.ID))
		}
		call.item = item
	}
	if call.item == nil {
		c.closeItem("completed")
		return
	}
	c.add(call)
	c.sendState(call, "in_progress")
}

func (c *composer) callItem(e session.CallStart) *callItem {
	name, ok := c.names[e.Name]
	if !ok {
		name.Name = e.Name
	}
	item := &callItem{CallID: e.ID, Namespace: name.Space, Name: name.Name, Status: "in_progress"}
	if name.Custom {
		item.itemHead, item.Input = itemHead{c.repeatableID("ctc_"), "custom_tool_call"},
			new(string)
	} else {
		item.itemHead, item.Arguments = itemHead{c.repeatableID("fc_"), "function_call"},
			new(string)
	}
	return item
}

func (c *composer) add(call *toolCall) {
	c.openItem(call.item)
	call.index = *c.index()
}

func (c *composer) sendState(call *toolCall, state string) {
	c.send("response."+call.item.head().Type+"."+state, c.callEvent(call))
}

func (c *composer) setState(call *toolCall, status string) {
	setStatus(call, status)
	c.sendState(call, status)
}

func setStatus(call *toolCall, status string) {
	*call.item.(interface{ state() *string }).state() = status
}

// argumentsOf returns the field of an item that holds a call's arguments, nil if it has none, and
// the kind of its events.
func argumentsOf(item outputItem) (text *string, kind string) {
	switch item := item.(type) {
	case *callItem:
		if item.Input != nil {
			return item.Input, "response.custom_tool_call_input"
		}
		return item.Arguments, "response.function_call_arguments"
	case *codeItem:
		return &item.Code, "response.code_interpreter_call_code"
	case *mcpCallItem:
		return &item.Arguments, "response.mcp_call_arguments"
	}
	return nil, ""
}

func (c *composer) writeArguments(call *toolCall, text string) {
	if all, kind := argumentsOf(call.item); all != nil {
		*all += text
		e := c.callEvent(call)
		e.Delta = &text
		c.send(kind+".delta", e)
	}
}

// endCall is called with the complete arguments. A tool call then begins to run.
func (c *composer) endCall(call *toolCall, arguments string) {
	if call.needsApproval {
		c.askApproval(call, arguments)
		return
	}
	if kind := c.names[call.Name].Item; call.tool == nil && kind != "" {
		delete(c.calls, call.Index)
		item := c.newClientItem(kind, call.CallStart, arguments)
		c.openItem(item)
		item.Status = "completed"
		c.closeItem("completed")
		return
	}
	if item, ok := call.item.(*callItem); ok && item.Input == nil {
		arguments = tools.RunnableArguments(arguments)
	}
	if all, _ := argumentsOf(call.item); all != nil {
		if n := len(*all); n < len(arguments) {
			c.writeArguments(call, arguments[n:])
		}
		*all = arguments
	}
	switch item := call.item.(type) {
	case *callItem:
		delete(c.calls, call.Index)
		c.closeItem("completed")
		return
	case *codeItem:
		done := c.callEvent(call)
		done.Code = &item.Code
		c.send("response.code_interpreter_call_code.done", done)
		c.setState(call, "interpreting")
	case *mcpCallItem:
		item.Arguments = tools.RunnableArguments(arguments)
		done := c.callEvent(call)
		done.Arguments = &item.Arguments
		c.send("response.mcp_call_arguments.done", done)
	default:
		call.item = &webSearchItem{toolItem: newToolItem("ws_", "web_search_call"),
			Action: actionOf(call.Recipient, arguments)}
		c.add(call)
		c.sendState(call, "in_progress")
		c.setState(call, "searching")
	}
	c.open = nil // the item is done when the tool has returned
}

// actionOf is the action of a browser's call, in OpenAI's words.
func actionOf(recipient, arguments string) searchAction {
	var a struct {
		Query, Pattern string
		ID             any
	}
	_ = json.Unmarshal([]byte(arguments), &a) // missing members stay empty
	page := ""
	if s, ok := a.ID.(string); ok {
		page = s
	}
	switch recipient {
	case "browser.open":
		return searchAction{Type: "open_page", URL: &page}
	case "browser.find":
		return searchAction{Type: "find_in_page", URL: &page, Pattern: &a.Pattern}
	}
	return searchAction{Type: "search", Query: a.Query, Queries: []string{a.Query}}
}

func (c *composer) endTool(call *toolCall, e session.ToolEnd) {
	status, last := "completed", "completed"
	if e.Err != nil {
		status = "failed"
	}
	switch item := call.item.(type) {
	case *codeItem:
		if slices.Contains(c.include, codeOutputs) {
			text := e.Result.Text
			if e.Err != nil {
				text += fmt.Sprintln(e.Err)
			}
			item.Outputs = []codeLog{{"logs", text}}
		}
	case *webSearchItem:
		for _, s := range e.Result.Sources {
			if slices.Contains(c.include, searchSources) && item.Action.Type == "search" {
				item.Action.Sources = append(item.Action.Sources,
					map[string]string{"type": "url", "url": s.URL})
			}
			if slices.Contains(c.include, searchResults) {
				item.Results = append(item.Results, searchResult{s.URL, s.Title})
			}
		}
	case *mcpCallItem:
		last = status
		if e.Err != nil {
			item.Error = &mcpError{"mcp_tool_execution_error",
				[]contentPart{{Type: "text", Text: e.Err.Error()}}}
		} else {
			item.Output = &e.Result.Text
		}
	}
	setStatus(call, status)
	c.sendState(call, last)
	c.doneTool(call)
}

func (c *composer) doneTool(call *toolCall) {
	c.send("response.output_item.done", streamEvent{OutputIndex: &call.index, Item: call.item})
}

// dropTools closes the items of calls that have not returned.
func (c *composer) dropTools() {
	for _, call := range c.calls {
		switch call.item.(type) {
		case nil, *callItem:
			continue // a search without its arguments has no item yet
		case *webSearchItem:
			setStatus(call, "failed")
		default:
			setStatus(call, "incomplete")
		}
		if c.open == call.item {
			c.open = nil
		}
		c.doneTool(call)
	}
	c.calls = nil
}

func (c *composer) callEvent(call *toolCall) streamEvent {
	return streamEvent{ItemID: call.item.head().ID, OutputIndex: &call.index}
}

// cite adds the sources of the answer to its message, which is open.
func (c *composer) cite(citations []session.Citation) {
	if m, ok := c.open.(*messageItem); !ok || m.Phase != "final_answer" {
		return
	}
	for _, s := range citations {
		if s.Start < c.answerOffset {
			continue
		}
		n := len(c.annotations)
		a := annotation{Type: "url_citation", StartIndex: s.Start - c.answerOffset,
			EndIndex: s.End - c.answerOffset, URL: s.URL, Title: s.Title}
		c.annotations = append(c.annotations, a)
		e := c.inPart()
		e.AnnotationIndex, e.Annotation = &n, &a
		c.send("response.output_text.annotation.added", e)
	}
}

// readCode adds an earlier call of the interpreter to the conversation, as the model made it.
func readCode(conv *request.Conversation, o *fields.Object) {
	var printed strings.Builder
	for _, v := range o.List("outputs") {
		printed.WriteString(v.Object().Text("logs"))
	}
	if !o.Has("outputs") {
		printed.WriteString("[the output was not kept]")
	}
	conv.BuiltinCall(o.Text("id"), "python", o.Text("code"), printed.String())
}

// readSearch adds an earlier call of the browser; false: the item has no action. Its result is not
// in the item.
func readSearch(conv *request.Conversation, o *fields.Object) bool {
	action := o.Object("action")
	name, arguments := "browser.search", map[string]string{}
	switch kind := action.Text("type"); kind {
	case "open_page":
		name, arguments["id"] = "browser.open", action.Text("url")
	case "find_in_page":
		name, arguments["pattern"] = "browser.find", action.Text("pattern")
	default:
		query := action.Text("query")
		for _, v := range action.List("queries") {
			query = cmp.Or(query, v.Text())
		}
		if query == "" {
			return false
		}
		arguments["query"] = query
	}
	text, _ := answer.Marshal(arguments) // strings cannot fail
	result := "[what it returned was not kept]"
	if o.Text("status") == "failed" {
		result = "Error: the call failed"
	}
	conv.BuiltinCall(o.Text("id"), name, string(text), result)
	return true
}

// readServerCall adds a call of an MCP server's tool under the model's name for it.
func readServerCall(conv *request.Conversation, o *fields.Object, id string) string {
	if o.Text("name") == "" {
		o.Get("name").Missing()
	}
	return conv.Call(session.FunctionCall, id,
		session.ServerFunction(o.Text("server_label"), o.Text("name")), o.Text("arguments"))
}

func readServerResult(conv *request.Conversation, o *fields.Object, id string) {
	output := request.Content(o, "output", true)
	if e := o.Object("error"); e != nil {
		output = "Error: " + texts(e.List("content")) + e.Text("message")
	}
	conv.Result(id, "", output)
}

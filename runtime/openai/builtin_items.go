// The output items of calls that this process runs: web_search_call, code_interpreter_call,
// mcp_call and mcp_list_tools, with their events.
//
// What must stay true: an item is added when its call begins, and done once, when the call has
// returned or the turn has ended without it.

package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
)

type webSearchItem struct {
	ID     string       `json:"id"`
	Type   string       `json:"type"` // web_search_call
	Status string       `json:"status"`
	Action searchAction `json:"action"`
}

// searchAction is what a call of the browser does: search, open_page or find_in_page.
type searchAction struct {
	Type    string   `json:"type"`
	Query   string   `json:"query,omitempty"`
	Queries []string `json:"queries,omitempty"`
	URL     *string  `json:"url,omitempty"`
	Pattern *string  `json:"pattern,omitempty"`
}

type codeItem struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"` // code_interpreter_call
	Status      string    `json:"status"`
	ContainerID string    `json:"container_id"`
	Code        string    `json:"code"`
	Outputs     []codeLog `json:"outputs"` // null unless the client asks for them
}

type codeLog struct {
	Type string `json:"type"` // logs
	Logs string `json:"logs"`
}

type mcpCallItem struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"` // mcp_call
	Status      string    `json:"status"`
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
	ID          string    `json:"id"`
	Type        string    `json:"type"` // mcp_list_tools
	ServerLabel string    `json:"server_label"`
	Tools       []mcpTool `json:"tools"`
	Error       *string   `json:"error"`
}

type mcpTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Annotations *struct{}       `json:"annotations"`
}

func (i *webSearchItem) itemID() string { return i.ID }
func (i *codeItem) itemID() string      { return i.ID }
func (i *mcpCallItem) itemID() string   { return i.ID }
func (i *mcpListItem) itemID() string   { return i.ID }

// toolCall is a call that this process runs, and its item. The item of a search is nil until the
// arguments are whole, since it says what is searched for.
type toolCall struct {
	item      outputItem
	at        int // in the response's output
	tool      *openTool
	id, name  string
	recipient string
	asks      bool // it asks for approval and is not run
}

// listTools adds an item for each MCP server with the tools that it offers.
func (c *composer) listTools() {
	for _, t := range c.tools {
		if t.kind != ToolMCP {
			continue
		}
		item := &mcpListItem{ID: newID("mcpl_"), Type: "mcp_list_tools", ServerLabel: t.label,
			Tools: []mcpTool{}}
		c.begin(item)
		c.send("response.mcp_list_tools.in_progress", c.inItem())
		for _, f := range t.functions {
			schema := f.Parameters
			if len(schema) == 0 {
				schema = json.RawMessage(`{"type":"object"}`)
			}
			item.Tools = append(item.Tools, mcpTool{Name: f.Name, Description: f.Description,
				InputSchema: schema})
		}
		c.send("response.mcp_list_tools.completed", c.inItem())
		c.close("completed")
	}
}

// toolEvent handles the events of a call that this process runs; false: it is the client's.
func (c *composer) toolEvent(e session.Event) bool {
	switch e := e.(type) {
	case session.CallStart:
		t := toolOf(c.tools, e.Recipient)
		if t == nil {
			return false
		}
		c.startTool(e, t)
	case session.CallArguments:
		call := c.calls[e.Index]
		if call == nil {
			return false
		}
		c.toolArguments(call, e.Text)
	case session.CallEnd:
		call := c.calls[e.Index]
		if call == nil {
			return false
		}
		c.runTool(call, e.Arguments)
	case session.ToolEnd:
		if call := c.calls[e.Index]; call != nil {
			delete(c.calls, e.Index)
			c.endTool(call, e)
		}
	case session.ToolOutput:
	default:
		return false
	}
	return true
}

func (c *composer) startTool(e session.CallStart, t *openTool) {
	call := &toolCall{tool: t, id: e.ID, name: e.Name, recipient: e.Recipient,
		asks: t.needsApproval(e.ID, e.Recipient)}
	if c.calls == nil {
		c.calls = map[int]*toolCall{}
	}
	c.calls[e.Index] = call
	switch {
	case call.asks:
		c.close("completed")
		return
	case t.kind == ToolPython:
		call.item = &codeItem{ID: newID("ci_"), Type: "code_interpreter_call",
			Status: "in_progress", ContainerID: t.container}
	case t.kind == ToolMCP:
		item := &mcpCallItem{ID: newID("mcp_"), Type: "mcp_call", Status: "in_progress",
			ServerLabel: t.label, Name: e.Name}
		if e.ID == t.approved {
			id := approvalID(e.ID)
			item.ApprovalID = &id
		}
		call.item = item
	default:
		c.close("completed")
		return
	}
	c.addTool(call)
	c.send("response."+kindOf(call.item)+".in_progress", c.inItem())
}

func (c *composer) addTool(call *toolCall) {
	c.begin(call.item)
	call.at = *c.index()
}

func kindOf(item outputItem) string {
	switch item.(type) {
	case *webSearchItem:
		return "web_search_call"
	case *codeItem:
		return "code_interpreter_call"
	}
	return "mcp_call"
}

func (c *composer) toolArguments(call *toolCall, text string) {
	if call.item == nil {
		return
	}
	e := c.ofCall(call)
	e.Delta = &text
	switch item := call.item.(type) {
	case *codeItem:
		item.Code += text
		c.send("response.code_interpreter_call_code.delta", e)
	case *mcpCallItem:
		item.Arguments += text
		c.send("response.mcp_call_arguments.delta", e)
	}
}

// runTool is called when the arguments are whole and the call begins to run.
func (c *composer) runTool(call *toolCall, arguments string) {
	if call.asks {
		c.askApproval(call, arguments)
		return
	}
	switch item := call.item.(type) {
	case *codeItem:
		if n := len(item.Code); n < len(arguments) {
			c.toolArguments(call, arguments[n:])
		}
		item.Code = arguments
		done := c.ofCall(call)
		done.Code = &item.Code
		c.send("response.code_interpreter_call_code.done", done)
		item.Status = "interpreting"
		c.send("response.code_interpreter_call.interpreting", c.ofCall(call))
	case *mcpCallItem:
		if n := len(item.Arguments); n < len(arguments) {
			c.toolArguments(call, arguments[n:])
		}
		item.Arguments = runnable(arguments)
		done := c.ofCall(call)
		done.Arguments = &item.Arguments
		c.send("response.mcp_call_arguments.done", done)
	default:
		search := &webSearchItem{ID: newID("ws_"), Type: "web_search_call", Status: "in_progress",
			Action: actionOf(call.recipient, arguments)}
		call.item = search
		c.addTool(call)
		c.send("response.web_search_call.in_progress", c.ofCall(call))
		search.Status = "searching"
		c.send("response.web_search_call.searching", c.ofCall(call))
	}
	c.open = nil // the item is done when the tool has returned
}

// actionOf is what a call of the browser does, in OpenAI's words.
func actionOf(recipient, arguments string) searchAction {
	var a struct {
		Query, Pattern string
		ID             any
	}
	_ = json.Unmarshal([]byte(arguments), &a) // what is missing stays empty
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

// endTool closes the item of a call that has returned.
func (c *composer) endTool(call *toolCall, e session.ToolEnd) {
	if call.asks {
		return
	}
	status, last := "completed", "completed"
	if e.Err != nil {
		status = "failed"
	}
	switch item := call.item.(type) {
	case *codeItem:
		item.Status = status
		if c.outputs {
			text := e.Result.Text
			if e.Err != nil {
				text += fmt.Sprintln(e.Err)
			}
			item.Outputs = []codeLog{{"logs", text}}
		}
	case *mcpCallItem:
		item.Status = status
		last = status
		if e.Err != nil {
			item.Error = &mcpError{"mcp_tool_execution_error",
				[]contentPart{{Type: "text", Text: e.Err.Error()}}}
		} else {
			item.Output = &e.Result.Text
		}
	case *webSearchItem:
		item.Status = status
	}
	c.send("response."+kindOf(call.item)+"."+last, c.ofCall(call))
	c.doneTool(call)
}

func (c *composer) doneTool(call *toolCall) {
	c.send("response.output_item.done", streamEvent{OutputIndex: &call.at, Item: call.item})
}

// dropTools closes the items of calls that have not returned.
func (c *composer) dropTools() {
	for _, call := range c.calls {
		switch item := call.item.(type) {
		case nil:
			continue // a search whose arguments are not whole has no item yet
		case *codeItem:
			item.Status = "incomplete"
		case *mcpCallItem:
			item.Status = "incomplete"
		case *webSearchItem:
			item.Status = "failed"
		}
		if c.open == call.item {
			c.open = nil
		}
		c.doneTool(call)
	}
	c.calls = nil
}

func (c *composer) ofCall(call *toolCall) streamEvent {
	return streamEvent{ItemID: call.item.itemID(), OutputIndex: &call.at}
}

// cite adds the sources of the answer to its message, which is open.
func (c *composer) cite(citations []session.Citation) {
	if m, ok := c.open.(*messageItem); !ok || m.Phase != "final_answer" {
		return
	}
	for _, s := range citations {
		if s.Start < c.before {
			continue
		}
		n := len(c.annotations)
		a := annotation{Type: "url_citation", StartIndex: s.Start - c.before,
			EndIndex: s.End - c.before, URL: s.URL, Title: s.Title}
		c.annotations = append(c.annotations, a)
		e := c.inPart()
		e.AnnotationIndex, e.Annotation = &n, &a
		c.send("response.output_text.annotation.added", e)
	}
}

// readCode adds an earlier call of the interpreter to the conversation, as the model made it.
func readCode(talk *conversation, o *object) {
	var printed strings.Builder
	for _, v := range o.list("outputs") {
		printed.WriteString(v.object().text("logs"))
	}
	if !o.has("outputs") {
		printed.WriteString("[the output was not kept]")
	}
	talk.toolCall(o.text("id"), "python", o.text("code"), printed.String())
}

// readSearch adds an earlier call of the browser; false: the item does not say what it was. The
// item does not hold what the call returned.
func readSearch(talk *conversation, o *object) bool {
	action := o.object("action")
	name, arguments := "browser.search", map[string]string{}
	switch kind := action.text("type"); kind {
	case "open_page":
		name, arguments["id"] = "browser.open", action.text("url")
	case "find_in_page":
		name, arguments["pattern"] = "browser.find", action.text("pattern")
	default:
		query := action.text("query")
		for _, v := range action.list("queries") {
			query = cmp.Or(query, v.text())
		}
		if query == "" {
			return false
		}
		arguments["query"] = query
	}
	text, _ := marshal(arguments) // strings can be written
	found := "[what it returned was not kept]"
	if o.text("status") == "failed" {
		found = "Error: the call failed"
	}
	talk.toolCall(o.text("id"), name, string(text), found)
	return true
}

// toolCall adds an earlier call of a built-in tool and what it returned, as the model made it.
func (c *conversation) toolCall(id, recipient, text, returned string) {
	call := harmony.Text(harmony.RoleAssistant, text).WithChannel(harmony.ChannelAnalysis).
		WithRecipient(recipient).WithContentType("code")
	result := harmony.Text(harmony.RoleTool, returned).WithChannel(harmony.ChannelAnalysis).
		WithRecipient("assistant")
	result.Name = recipient
	c.Messages = append(c.Messages, session.Message{CallID: id, Message: call},
		session.Message{CallID: id, Message: result})
}

// readServerCall adds an earlier call of an MCP server's tool.
func readServerCall(talk *conversation, o *object) {
	id := o.text("id")
	readCall(talk, o, id)
	output := o.text("output")
	if e := o.object("error"); e != nil {
		output = "Error: " + texts(e.list("content")) + e.text("message")
	}
	talk.result(id, o.text("name"), output)
}

// A client's conversation as session messages, built message by message.
//
// What must stay true: no message is lost; the instructions that open a conversation become one
// developer message together with the tools, which is the form the model was trained on; a tool's
// result has the name of its call, and the model never reads one without a call. A user may speak
// while calls wait. A call of an unknown tool is read together with its result, or not at all.

package request

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

// MessagesOf returns the messages of a request, at least one.
func MessagesOf(o *fields.Object) []fields.Value {
	if !o.Need("messages") {
		return nil
	}
	list := o.Get("messages").Messages()
	if len(list) == 0 && o.Fault() == nil {
		o.Get("messages").Invalid(" is empty: at least one message is needed")
	}
	return list
}

// Conversation grows by appending.
type Conversation struct {
	Lead     []string // system and developer texts before everything else
	Messages []session.Message
	// Unmatched is the id of a result without a call, "" if there is none
	Unmatched string `json:"-"`

	open    openCalls
	indexed int // messages that are in open already

	foreign map[string]foreignCall // by call id
}

// Last is the newest message, nil if there is none.
func (c *Conversation) Last() *session.Message {
	if len(c.Messages) == 0 {
		return nil
	}
	return &c.Messages[len(c.Messages)-1]
}

// Instructions is the lead as one text, after first.
func (c *Conversation) Instructions(first string) string {
	return JoinParagraphs(append([]string{first}, c.Lead...)...)
}

// Developer adds an instruction: to the lead before the first message, in its place afterwards.
func (c *Conversation) Developer(text string) {
	if len(c.Messages) == 0 {
		c.Lead = append(c.Lead, text)
		return
	}
	c.Messages = append(c.Messages, session.Developer(text))
}

// Add appends the message for a text, unless it is empty.
func (c *Conversation) Add(message func(text string) session.Message, text string) {
	if text != "" {
		c.Messages = append(c.Messages, message(text))
	}
}

func (c *Conversation) Replace(messages []session.Message) {
	c.Messages, c.open, c.indexed = messages, openCalls{}, 0
}

// Calls returns the items of a message's list that may become separate messages.
func (c *Conversation) Calls(v fields.Value) []fields.Value {
	return v.MessagesAfter(len(c.Messages))
}

// ReadAnswer adds an answer of the assistant: its text, which is a preamble before tool_calls, and
// those; objects: their arguments are no text.
func (c *Conversation) ReadAnswer(m *fields.Object, text string, objects bool) {
	var calls []fields.Value
	if m.Has("tool_calls") {
		calls = c.Calls(m.Get("tool_calls"))
	}
	if len(calls) == 0 {
		c.Add(session.AssistantAnswer, text)
		return
	}
	c.Add(session.AssistantCommentary, text)
	for _, v := range calls {
		call := v.Object()
		f := call.Object("function")
		if f == nil { // a custom tool's call
			f = call.Object("custom")
		}
		switch id, kind := call.Text("id"), call.Text("type"); {
		case f != nil:
			c.ReadCall(f, id, objects)
		case kind != "" && id != "" && m.IsPast():
			c.AddForeign(id, kind, call)
		default:
			call.Get("function").Missing()
		}
	}
}

// ReadMessage adds a message of one of roles; assistant reads one of the assistant.
func (c *Conversation) ReadMessage(m *fields.Object, roles string, assistant func()) {
	if m == nil {
		return
	}
	switch v := m.Get("content"); m.Text("role") {
	case "system", "developer":
		c.Developer(Content(m, "content", false))
	case "user":
		if v.Kind() == jsondoc.Null || v.Kind() == jsondoc.Array && v.Count(1) == 0 {
			v.Missing()
		}
		c.Messages = append(c.Messages, session.User(Content(m, "content", false)))
	case "assistant":
		assistant()
	case "":
		m.Get("role").Missing()
		c.Stray(m)
	default:
		m.Get("role").MustBe("one of " + roles)
		c.Stray(m)
	}
}

// Stray adds a message of an unknown role.
func (c *Conversation) Stray(m *fields.Object) {
	text := Content(m, "content", true)
	if v := m.Get("role"); text != "" && v.Kind() == jsondoc.String && v.Text() != "" {
		text = "[" + v.Text() + "] " + text
	}
	c.Add(session.User, text)
}

// Call adds an earlier call and returns its id; a call without one gets one.
func (c *Conversation) Call(form func(id, name, text string) session.Message, id, name,
	text string) string {
	if id == "" {
		id = fmt.Sprint("call_", len(c.Messages))
		c.open.addBare(id)
	}
	if !ToolName(name) { // it becomes a word of a header
		name = "unknown"
	}
	c.Messages = append(c.Messages, form(id, name, text))
	return id
}

// ReadCall is Call for a function. o has its name and its arguments, which Anthropic and custom
// tools call input; object tells that they are no text.
func (c *Conversation) ReadCall(o *fields.Object, id string, object bool) {
	name := SpacedName(o.Text("namespace"), o.Text("name"))
	if !ToolName(name) {
		o.Get("name").Invalid(" is %q, which is not a tool name", name)
	}
	form, arguments := session.FunctionCall, o.Get("arguments")
	if o.Has("input") {
		arguments = o.Get("input")
		if !object {
			form = session.TextCall
		}
	}
	text := string(arguments.Raw)
	switch kind := arguments.Kind(); {
	case object && kind != jsondoc.Object:
		arguments.WrongType("an object")
	case !object && kind > jsondoc.Null && kind != jsondoc.String:
		arguments.WrongType("a string")
	}
	switch arguments.Kind() {
	case jsondoc.Null:
		text = "{}"
	case jsondoc.String:
		text = arguments.Text()
	}
	c.Call(form, id, name, text)
}

// Result adds a tool's result to the call that it belongs to, by its id, or by name and order. A
// result without a call gets one.
func (c *Conversation) Result(id, name, output string) {
	if call, ok := c.foreign[id]; ok {
		delete(c.foreign, id)
		form := session.FunctionCall
		if call.text {
			form = session.TextCall
		}
		id = c.Call(form, id, call.name, call.arguments)
	}
	c.index()
	call, ok := c.open.take(id, name)
	if !ok {
		c.Unmatched = cmp.Or(c.Unmatched, id)
		call.id = c.Call(session.FunctionCall, id, name, "{}")
		call.name, _ = strings.CutPrefix(c.Last().Recipient, "functions.")
	}
	c.Messages = append(c.Messages, session.FunctionResult(call.id, call.name, output))
	c.indexed = len(c.Messages)
}

// index adds new calls of functions to the open ones, and removes those that have their results.
func (c *Conversation) index() {
	for _, m := range c.Messages[c.indexed:] {
		if name, ok := strings.CutPrefix(m.Recipient, "functions."); ok {
			c.open.add(functionCall{m.CallID, name})
		} else if name, ok := strings.CutPrefix(m.Name, "functions."); ok {
			c.open.take(m.CallID, name)
		}
	}
	c.indexed = len(c.Messages)
}

// foreignCall is a call of an unknown tool.
type foreignCall struct {
	name, arguments string
	text            bool // its argument is no JSON
}

// argumentMembers are the members of calls that may hold arguments.
var argumentMembers = []string{"input", "arguments", "action", "operation", "queries", "code"}

// AddForeign records an earlier call of an unknown tool until its result is read. kind is the
// tool's name if the call has none.
func (c *Conversation) AddForeign(id, kind string, o *fields.Object) {
	call := foreignCall{name: kind, arguments: "{}"}
	if name := o.Get("name"); name.Kind() == jsondoc.String && ToolName(name.Text()) {
		call.name = name.Text()
	}
	for _, name := range argumentMembers {
		if v := o.Get(name); v.Kind() == jsondoc.String {
			call.arguments = v.Text()
			break
		} else if v.Kind() != jsondoc.Null {
			call.arguments = string(v.Raw)
			break
		}
	}
	c.Await(id, call.name, call.arguments, false)
}

// Await records an earlier call until its result is read; text tells that its argument is no JSON.
func (c *Conversation) Await(id, name, argument string, text bool) {
	if c.foreign == nil {
		c.foreign = map[string]foreignCall{}
	}
	c.foreign[id] = foreignCall{name, argument, text}
}

// BuiltinCall adds an earlier call of a built-in tool with its result, as the model made it.
func (c *Conversation) BuiltinCall(id, recipient, text, returned string) {
	delete(c.foreign, id)
	call := harmony.Text(harmony.RoleAssistant, text).WithChannel(harmony.ChannelAnalysis).
		WithRecipient(recipient).WithContentType("code")
	result := harmony.Text(harmony.RoleTool, returned).WithChannel(harmony.ChannelAnalysis).
		WithRecipient("assistant")
	result.Name = recipient
	c.Messages = append(c.Messages, session.Message{CallID: id, Message: call},
		session.Message{CallID: id, Message: result})
}

// IsAwaited tells that a foreign call waits for its result.
func (c *Conversation) IsAwaited(id string) bool {
	_, ok := c.foreign[id]
	return ok
}

// ToolName tells whether a name is valid as one word of a Harmony header.
func ToolName(s string) bool {
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

// SpacedName is the model's name for a tool of a namespace. A deferred tool is in one of its name.
func SpacedName(space, name string) string {
	if space == "" || space == name {
		return name
	}
	return space + "_" + name
}

type functionCall struct{ id, name string }

// openCalls are calls without results, oldest first, indexed by the properties in a result.
type openCalls struct {
	calls []functionCall
	done  []bool
	bare  map[string]bool    // ids that the client did not send
	byKey map[openCall][]int // indexes in calls
}

// openCall is an id, a name, or empty; bare: of calls without an id.
type openCall struct {
	id, name string
	bare     bool
}

func (c *openCalls) addBare(id string) {
	if c.bare == nil {
		c.bare = map[string]bool{}
	}
	c.bare[id] = true
}

func (c *openCalls) add(call functionCall) {
	if c.byKey == nil {
		c.byKey = map[openCall][]int{}
	}
	keys := []openCall{{}, {name: call.name}, {id: call.id}}
	if c.bare[call.id] {
		keys = append(keys, openCall{bare: true}, openCall{name: call.name, bare: true})
	}
	for _, key := range keys {
		c.byKey[key] = append(c.byKey[key], len(c.calls))
	}
	c.calls, c.done = append(c.calls, call), append(c.done, false)
}

// take returns the oldest open call that a result may belong to, and removes it. A client may
// invent a result's id, which no call had: then name and order decide. A second result of an id
// belongs to the same call.
func (c *openCalls) take(id, name string) (call functionCall, ok bool) {
	keys := []openCall{{name: name}}
	if _, exists := c.byKey[openCall{id: id}]; id != "" && exists {
		keys = []openCall{{id: id}}
	} else if id != "" {
		keys = []openCall{{name: name, bare: true}, {bare: true}}
	}
	for _, key := range keys {
		list := c.byKey[key]
		for ; len(list) > 1 && c.done[list[0]]; list = list[1:] {
		}
		if len(list) == 0 {
			continue
		}
		c.byKey[key] = list
		if call := list[0]; key.id != "" || !c.done[call] {
			c.done[call] = true
			return c.calls[call], true
		}
	}
	return functionCall{}, false
}

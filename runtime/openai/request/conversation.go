// A client's conversation as session messages, built message by message.
//
// What must stay true: no message is lost; the instructions that open a conversation become one
// developer message together with the tools, which is the form the model was trained on; a tool's
// result has the name of its call. The model never reads a result without a call, nor a user's
// message while a call still waits for its result: OpenAI and Anthropic refuse both. In responses a
// result may follow the user's message, but it must not be missing. A call of an unknown tool is
// read together with its result, or not at all.

package request

import (
	"strings"

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

	names      map[string]string // of called functions, by call id
	namedUntil int               // messages that are in names already

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

// FunctionOf returns the name of the function that the conversation calls under an id.
func (c *Conversation) FunctionOf(id string) (name string, ok bool) {
	if c.names == nil {
		c.names = map[string]string{}
	}
	for _, m := range c.Messages[c.namedUntil:] {
		if name, ok := strings.CutPrefix(m.Recipient, "functions."); ok {
			c.names[m.CallID] = name
		}
	}
	c.namedUntil = len(c.Messages)
	name, ok = c.names[id]
	return name, ok
}

// Replace replaces all messages.
func (c *Conversation) Replace(messages []session.Message) {
	c.Messages, c.names, c.namedUntil = messages, nil, 0
}

// Calls returns the items of a message's list that may become separate messages.
func (c *Conversation) Calls(v fields.Value) []fields.Value {
	return v.MessagesAfter(len(c.Messages))
}

// Result adds a tool's result; name is used only if the call is not part of the conversation.
func (c *Conversation) Result(id, name, output string) {
	c.addForeign(id)
	if called, ok := c.FunctionOf(id); ok {
		name = called
	}
	if !ToolName(name) { // it becomes a word of a header
		name = "unknown"
	}
	c.Messages = append(c.Messages, session.FunctionResult(id, name, output))
}

// foreignCall is a call of an unknown tool.
type foreignCall struct{ name, arguments string }

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
	if c.foreign == nil {
		c.foreign = map[string]foreignCall{}
	}
	c.foreign[id] = call
}

// IsAwaited tells that a foreign call waits for its result.
func (c *Conversation) IsAwaited(id string) bool {
	_, ok := c.foreign[id]
	return ok
}

// addForeign adds a foreign call when its result is read.
func (c *Conversation) addForeign(id string) {
	call, ok := c.foreign[id]
	if !ok {
		return
	}
	delete(c.foreign, id)
	if !ToolName(call.name) {
		call.name = "unknown"
	}
	c.Messages = append(c.Messages, session.FunctionCall(id, call.name, call.arguments))
}

// ReadCall adds an earlier call of a tool to the conversation. o has its name and its arguments,
// which custom tools call input.
func ReadCall(conv *Conversation, o *fields.Object, id string) {
	name := SpacedName(o.Text("namespace"), o.Text("name"))
	if !ToolName(name) && o.IsPast() {
		name = "unknown" // from another server, which allows more
	}
	if !ToolName(name) {
		o.Get("name").Invalid(" is %q, which is not a tool name", name)
	}
	if o.Has("input") {
		conv.Messages = append(conv.Messages, session.TextCall(id, name, o.Text("input")))
		return
	}
	conv.Messages = append(conv.Messages, session.FunctionCall(id, name, o.Text("arguments")))
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

// SpacedName is the model's name for a tool of a namespace.
func SpacedName(space, name string) string {
	if space == "" {
		return name
	}
	return space + "_" + name
}

// Ledger tracks calls and their results.
type Ledger struct {
	called   []string
	Open     map[string]bool // by call id: whether it waits for a result
	waiting  int             // number of calls that wait
	required int             // number of calls before the user's last message
	reported bool            // the fault of a waiting call was reported

	Function, Path string // the last deprecated function_call, and its id
}

// Call adds a call that waits for its result.
func (l *Ledger) Call(id string) {
	if l.Open == nil {
		l.Open = map[string]bool{}
	}
	if !l.Open[id] {
		l.waiting++
	}
	l.called, l.Open[id] = append(l.called, id), true
}

// Answer marks the call as answered and tells whether it exists.
func (l *Ledger) Answer(id string) bool {
	open, ok := l.Open[id]
	if open {
		l.Open[id] = false
		l.waiting--
	}
	return ok
}

func (l *Ledger) unanswered(calls []string) (ids []string) {
	if l.waiting == 0 {
		return nil
	}
	for _, id := range calls {
		if l.Open[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// Waiting returns why a user message is not allowed yet, "" if all calls have their results. It
// reports this once.
func (l *Ledger) Waiting() string {
	if l.reported {
		return ""
	}
	ids := l.unanswered(l.called)
	if len(ids) == 0 {
		return ""
	}
	l.reported = true
	return "each call must be followed by its result: none was found for " +
		strings.Join(ids, ", ")
}

// UserSpeaks marks the calls so far, whose results Overdue then requires.
func (l *Ledger) UserSpeaks() { l.required = len(l.called) }

// Overdue is the fault, in OpenAI's words, of a call without a result before the user's last
// message.
func (l *Ledger) Overdue() *fields.Fault {
	ids := l.unanswered(l.called[:l.required])
	if len(ids) == 0 {
		return nil
	}
	return fields.Invalid("input", "No tool output found for function call %s.", ids[0])
}

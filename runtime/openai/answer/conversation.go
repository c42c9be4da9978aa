// A client's conversation in the session's words, built message by message.
//
// What must stay true: no message is lost; the instructions that open a conversation become one
// developer message together with the tools, which is the form the model was trained on; a tool's
// result carries the name of the call it answers. The model never reads a result that answers
// nothing, nor a user who speaks while a call still waits for its result: OpenAI and Anthropic
// refuse both. In responses a result may come after the user has spoken, but it must come.

package answer

import (
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// MessagesOf are the messages of a request, of which there must be one.
func MessagesOf(o *Object) []Value {
	if !o.Need("messages") {
		return nil
	}
	list := o.Get("messages").Messages()
	if len(list) == 0 && o.c.first == nil {
		o.Get("messages").Invalid(" is empty: at least one message is needed")
	}
	return list
}

// Conversation grows by appending.
type Conversation struct {
	Lead     []string // system and developer texts before everything else
	Messages []session.Message

	names map[string]string // of the functions that were called, by the calls' ids
	named int               // messages that are in names already

	foreign map[string]foreignCall // by their ids
}

// Last is the newest message, nil if there is none.
func (c *Conversation) Last() *session.Message {
	if len(c.Messages) == 0 {
		return nil
	}
	return &c.Messages[len(c.Messages)-1]
}

// Instructions is the lead as one text, with first in front.
func (c *Conversation) Instructions(first string) string {
	return JoinParagraphs(append([]string{first}, c.Lead...)...)
}

// Developer adds an instruction: to the lead while nothing else has been said, in its place
// afterwards.
func (c *Conversation) Developer(text string) {
	if len(c.Messages) == 0 {
		c.Lead = append(c.Lead, text)
		return
	}
	c.Messages = append(c.Messages, session.Developer(text))
}

// Add adds a text, if there is one, as the message that is made of it.
func (c *Conversation) Add(message func(text string) session.Message, text string) {
	if text != "" {
		c.Messages = append(c.Messages, message(text))
	}
}

// Called is the name of the function that the conversation calls under an id.
func (c *Conversation) Called(id string) (name string, ok bool) {
	if c.names == nil {
		c.names = map[string]string{}
	}
	for _, m := range c.Messages[c.named:] {
		if name, ok := strings.CutPrefix(m.Recipient, "functions."); ok {
			c.names[m.CallID] = name
		}
	}
	c.named = len(c.Messages)
	name, ok = c.names[id]
	return name, ok
}

// Replace puts other messages in the place of all.
func (c *Conversation) Replace(messages []session.Message) {
	c.Messages, c.names, c.named = messages, nil, 0
}

// Calls are the items of a message's list that may become messages of their own.
func (c *Conversation) Calls(v Value) []Value {
	if len(c.Messages)+v.Count(mostMessages+1) > mostMessages {
		v.tooMany(CodeContextLength)
		return nil
	}
	return v.List()
}

// Result adds what a tool returned; name is used only if the call is not part of the conversation.
func (c *Conversation) Result(id, name, output string) {
	c.join(id)
	if called, ok := c.Called(id); ok {
		name = called
	}
	if !ToolName(name) { // it becomes a word of a header
		name = "unknown"
	}
	c.Messages = append(c.Messages, session.FunctionResult(id, name, output))
}

// ReadCall adds an earlier call of a tool to the conversation. o has its name and its arguments,
// which custom tools call input.
func ReadCall(talk *Conversation, o *Object, id string) {
	name := SpacedName(o.Text("namespace"), o.Text("name"))
	if !ToolName(name) && o.Past() {
		name = "unknown" // of another server, which allows more
	}
	if !ToolName(name) {
		o.Get("name").Invalid(" is %q, which is not a tool name", name)
	}
	if o.Has("input") {
		talk.Messages = append(talk.Messages, session.TextCall(id, name, o.Text("input")))
		return
	}
	talk.Messages = append(talk.Messages, session.FunctionCall(id, name, o.Text("arguments")))
}

// ToolName tells whether a name can stand in a Harmony header as one word.
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

// SpacedName is what the model calls a tool of a namespace.
func SpacedName(space, name string) string {
	if space == "" {
		return name
	}
	return space + "_" + name
}

// Ledger holds the calls so far.
type Ledger struct {
	called []string
	Open   map[string]bool // ids of calls: whether they wait for a result
	waits  int             // how many calls wait
	spoken int             // how many calls came before the user's last word
	told   bool            // the complaint that a call waits was made

	Function, Path string // the last deprecated function_call, and its id
}

// Call takes down a call that waits for its result.
func (l *Ledger) Call(id string) {
	if l.Open == nil {
		l.Open = map[string]bool{}
	}
	if !l.Open[id] {
		l.waits++
	}
	l.called, l.Open[id] = append(l.called, id), true
}

// Answer tells whether the id is that of an earlier call.
func (l *Ledger) Answer(id string) bool {
	open, ok := l.Open[id]
	if open {
		l.Open[id] = false
		l.waits--
	}
	return ok
}

// unanswered are those of the calls that wait for their results.
func (l *Ledger) unanswered(calls []string) (ids []string) {
	if l.waits == 0 {
		return nil
	}
	for _, id := range calls {
		if l.Open[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// Waiting says why a user cannot speak yet, "" if all calls have their results. It says so once.
func (l *Ledger) Waiting() string {
	if l.told {
		return ""
	}
	ids := l.unanswered(l.called)
	if len(ids) == 0 {
		return ""
	}
	l.told = true
	return "each call must be followed by its result: none was found for " +
		strings.Join(ids, ", ")
}

// UserSpeaks says that the calls so far must have their results in the end, for overdue.
func (l *Ledger) UserSpeaks() { l.spoken = len(l.called) }

// Overdue complains, in OpenAI's words, about a call that has no result although the user has
// spoken since.
func (l *Ledger) Overdue() *Fault {
	ids := l.unanswered(l.called[:l.spoken])
	if len(ids) == 0 {
		return nil
	}
	return Invalid("input", "No tool output found for function call %s.", ids[0])
}

// A client's conversation in the session's words, built message by message.
//
// What must stay true: no message is lost; the instructions that open a conversation become one
// developer message together with the tools, which is the form the model was trained on; a tool's
// result carries the name of the call it answers. The model never reads a result that answers
// nothing, nor a user who speaks while a call still waits for its result: OpenAI and Anthropic
// refuse both. In responses a result may come after the user has spoken, but it must come.

package openai

import (
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

func messagesOf(o *object) []value {
	if !o.need("messages") {
		return nil
	}
	list := o.get("messages").messages()
	if len(list) == 0 && o.c.first == nil {
		o.get("messages").invalid(" is empty: at least one message is needed")
	}
	return list
}

// conversation grows by appending.
type conversation struct {
	Lead     []string // system and developer texts before everything else
	Messages []session.Message

	names map[string]string // of the functions that were called, by the calls' ids
	named int               // messages that are in names already
}

func (c *conversation) last() *session.Message {
	if len(c.Messages) == 0 {
		return nil
	}
	return &c.Messages[len(c.Messages)-1]
}

// instructions is the lead as one text, with first in front.
func (c *conversation) instructions(first string) string {
	return joinParagraphs(append([]string{first}, c.Lead...)...)
}

// developer adds an instruction: to the lead while nothing else has been said, in its place
// afterwards.
func (c *conversation) developer(text string) {
	if len(c.Messages) == 0 {
		c.Lead = append(c.Lead, text)
		return
	}
	c.Messages = append(c.Messages, session.Developer(text))
}

// add adds a text, if there is one, as the message that is made of it.
func (c *conversation) add(message func(text string) session.Message, text string) {
	if text != "" {
		c.Messages = append(c.Messages, message(text))
	}
}

// called is the name of the function that the conversation calls under an id.
func (c *conversation) called(id string) (name string, ok bool) {
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

// replace puts other messages in the place of all.
func (c *conversation) replace(messages []session.Message) {
	c.Messages, c.names, c.named = messages, nil, 0
}

// calls are the items of a message's list that may become messages of their own.
func (c *conversation) calls(v value) []value {
	if len(c.Messages)+v.Count(mostMessages+1) > mostMessages {
		v.tooMany(codeContextLength)
		return nil
	}
	return v.list()
}

// result adds what a tool returned; name is used only if the call is not part of the conversation.
func (c *conversation) result(id, name, output string) {
	if called, ok := c.called(id); ok {
		name = called
	}
	if !toolName(name) { // it becomes a word of a header
		name = "unknown"
	}
	c.Messages = append(c.Messages, session.FunctionResult(id, name, output))
}

// readCall adds an earlier call of a tool to the conversation. o has its name and its arguments,
// which custom tools call input.
func readCall(talk *conversation, o *object, id string) {
	name := spacedName(o.text("namespace"), o.text("name"))
	if !toolName(name) {
		o.get("name").invalid(" is %q, which is not a tool name", name)
	}
	if o.has("input") {
		talk.Messages = append(talk.Messages, session.TextCall(id, name, o.text("input")))
		return
	}
	talk.Messages = append(talk.Messages, session.FunctionCall(id, name, o.text("arguments")))
}

// toolName tells whether a name can stand in a Harmony header as one word.
func toolName(s string) bool {
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

// spacedName is what the model calls a tool of a namespace.
func spacedName(space, name string) string {
	if space == "" {
		return name
	}
	return space + "_" + name
}

// callLedger holds the calls so far.
type callLedger struct {
	called []string
	open   map[string]bool // ids of calls: whether they wait for a result
	waits  int             // how many calls wait
	spoken int             // how many calls came before the user's last word
	told   bool            // the complaint that a call waits was made

	function, path string // the last deprecated function_call, and its id
}

func (l *callLedger) call(id string) {
	if l.open == nil {
		l.open = map[string]bool{}
	}
	if !l.open[id] {
		l.waits++
	}
	l.called, l.open[id] = append(l.called, id), true
}

// answer tells whether the id is that of an earlier call.
func (l *callLedger) answer(id string) bool {
	open, ok := l.open[id]
	if open {
		l.open[id] = false
		l.waits--
	}
	return ok
}

// unanswered are those of the calls that wait for their results.
func (l *callLedger) unanswered(calls []string) (ids []string) {
	if l.waits == 0 {
		return nil
	}
	for _, id := range calls {
		if l.open[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// waiting says why a user cannot speak yet, "" if all calls have their results. It says so once.
func (l *callLedger) waiting() string {
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

// userSpeaks says that the calls so far must have their results in the end, for overdue.
func (l *callLedger) userSpeaks() { l.spoken = len(l.called) }

// overdue complains, in OpenAI's words, about a call that has no result although the user has
// spoken since.
func (l *callLedger) overdue() *fault {
	ids := l.unanswered(l.called[:l.spoken])
	if len(ids) == 0 {
		return nil
	}
	return invalid("input", "No tool output found for function call %s.", ids[0])
}

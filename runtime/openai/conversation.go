// A client's conversation in the session's words, built message by message.
//
// What must stay true: no message is lost; the instructions that open a conversation become one
// developer message together with the tools, which is the form the model was trained on; a tool's
// result carries the name of the call it answers.

package openai

import (
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// messagesOf is the field messages, of which there must be at least one.
func messagesOf(o *object) []value {
	if !o.has("messages") {
		o.c.add(missing("messages"))
		return nil
	}
	list := o.list("messages")
	if len(list) == 0 && o.c.first == nil {
		o.c.add(invalid("messages", "messages is empty: at least one message is needed"))
	}
	return list
}

// conversation grows by appending.
type conversation struct {
	Lead     []string // system and developer texts before everything else
	Messages []session.Message
}

// last is the last message, nil if there is none.
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
	for _, m := range slices.Backward(c.Messages) {
		if name, ok := strings.CutPrefix(m.Recipient, "functions."); ok && m.CallID == id {
			return name, true
		}
	}
	return "", false
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

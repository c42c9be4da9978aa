// A client's conversation in the session's words, built message by message.
//
// What must stay true: no message is lost; the instructions that open a conversation become one developer message
// together with the tools, which is the form the model was trained on; a tool's result carries the name of the call it
// answers.

package openai

import (
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// conversation grows by appending; a clone shares what it began with.
type conversation struct {
	lead     []string // system and developer texts before everything else
	messages []session.Message
}

func (c *conversation) clone() conversation {
	return conversation{lead: slices.Clip(c.lead), messages: slices.Clip(c.messages)}
}

// instructions is the lead as one text, with first in front.
func (c *conversation) instructions(first string) string {
	return strings.Join(notEmpty(append([]string{first}, c.lead...)), "\n\n")
}

// developer adds an instruction: to the lead while nothing else has been said, in its place afterwards.
func (c *conversation) developer(text string) {
	if len(c.messages) == 0 {
		c.lead = append(c.lead, text)
		return
	}
	c.messages = append(c.messages, session.Developer(text))
}

func (c *conversation) user(text string) { c.messages = append(c.messages, session.User(text)) }

func (c *conversation) reasoning(text string) {
	if text != "" {
		c.messages = append(c.messages, session.AssistantReasoning(text))
	}
}

func (c *conversation) commentary(text string) {
	if text != "" {
		c.messages = append(c.messages, session.AssistantCommentary(text))
	}
}

func (c *conversation) answer(text string) {
	if text != "" {
		c.messages = append(c.messages, session.AssistantAnswer(text))
	}
}

func (c *conversation) call(id, name, arguments string) {
	c.messages = append(c.messages, session.FunctionCall(id, name, arguments))
}

// result adds what a tool returned; name is used only if the call is not part of the conversation.
func (c *conversation) result(id, name, output string) {
	for _, m := range slices.Backward(c.messages) {
		if called, ok := strings.CutPrefix(m.Recipient, "functions."); ok && m.CallID == id {
			name = called
			break
		}
	}
	if !toolName(name) { // it becomes a word of a header
		name = "unknown"
	}
	c.messages = append(c.messages, session.FunctionResult(id, name, output))
}

// What the model is given again with every turn.

package chat

import (
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// A conversation is what the model is given again with every turn: messages in Harmony's form, kept
// by exchange so that the last answer can be taken back.
type conversation struct{ exchanges []exchange }

// An exchange is one question with what the model said to it.
type exchange struct {
	question string
	entry    int // the question's place in the transcript
	answer   *answer
	messages []session.Message
}

// ask opens an exchange.
func (c *conversation) ask(question string, entry int, a *answer) {
	c.exchanges = append(c.exchanges,
		exchange{question, entry, a, []session.Message{session.User(question)}})
}

// said appends the messages of a turn that has ended to the last exchange.
func (c *conversation) said(messages []session.Message) {
	if n := len(c.exchanges); n > 0 {
		c.exchanges[n-1].messages = append(c.exchanges[n-1].messages, messages...)
	}
}

// takeBack removes the last exchange and returns it.
func (c *conversation) takeBack() (exchange, bool) {
	n := len(c.exchanges)
	if n == 0 {
		return exchange{}, false
	}
	last := c.exchanges[n-1]
	c.exchanges = c.exchanges[:n-1]
	return last, true
}

// messages is the history, oldest first.
func (c *conversation) messages() []session.Message {
	var all []session.Message
	for _, e := range c.exchanges {
		all = append(all, e.messages...)
	}
	return all
}

// lastAnswer is what /copy copies.
func (c *conversation) lastAnswer() string {
	for i := len(c.exchanges) - 1; i >= 0; i-- {
		if said := c.exchanges[i].answer.said(); said != "" {
			return said
		}
	}
	return ""
}

// document is the conversation as markdown, for /save.
func (c *conversation) document(model, system string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Chat with %s\n", model)
	if system != "" {
		fmt.Fprintf(&b, "\n## System\n\n%s\n", system)
	}
	for _, e := range c.exchanges {
		fmt.Fprintf(&b, "\n## You\n\n%s\n\n## %s\n", e.question, model)
		for _, p := range e.answer.parts {
			switch p := p.(type) {
			case *thought:
				fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", p.head(),
					p.text.text.String())
			case *speech:
				fmt.Fprintf(&b, "\n%s\n", p.text.Text())
			case *call:
				fmt.Fprintf(&b, "\n`%s %s`\n", p.name, p.arguments)
			}
		}
	}
	return b.String()
}

// What was said, as the model is given it again with every turn.

package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// A conversation is a tree: an answer that is asked for again, and a question that is edited, begin
// a branch beside the old one, which stays. at is the end of the branch on the screen.
type conversation struct {
	first []*exchange
	at    *exchange // nil: nothing was said yet
}

// An exchange is one question with what the model said to it.
type exchange struct {
	question string
	entry    int // the question's place in the transcript
	answer   *answer
	messages []session.Message
	// summary stands for everything before this exchange, which has no question of its own
	summary string
	context int // tokens that were in use behind it

	before *exchange // nil: it begins the conversation
	after  []*exchange
}

// ask opens an exchange behind the last one.
func (c *conversation) ask(question string, entry int, a *answer) *exchange {
	e := &exchange{question: question, entry: entry, answer: a,
		messages: []session.Message{session.User(question)}}
	if c.at != nil {
		e.context = c.at.context
	}
	c.add(e, c.at)
	return e
}

// add puts e behind another exchange, or at the beginning, and goes there.
func (c *conversation) add(e, before *exchange) {
	e.before = before
	list := c.beside(e)
	*list = append(*list, e)
	c.at = e
}

// beside are the branches that begin where e begins, e among them.
func (c *conversation) beside(e *exchange) *[]*exchange {
	if e.before == nil {
		return &c.first
	}
	return &e.before.after
}

// drop removes the last exchange, of which nothing came, and goes to another one.
func (c *conversation) drop(to *exchange) {
	list := c.beside(c.at)
	*list = (*list)[:len(*list)-1]
	c.at = to
}

// path is the branch on the screen, from its beginning.
func (c *conversation) path() []*exchange {
	var path []*exchange
	for e := c.at; e != nil; e = e.before {
		path = append(path, e)
	}
	slices.Reverse(path)
	return path
}

// asked are the exchanges of the branch on the screen that have a question.
func (c *conversation) asked() (all []*exchange) {
	for _, e := range c.path() {
		if e.answer != nil {
			all = append(all, e)
		}
	}
	return all
}

// fork is where the branch on the screen last divided, nil if nowhere.
func (c *conversation) fork() *exchange {
	e := c.at
	for e != nil && len(*c.beside(e)) < 2 {
		e = e.before
	}
	return e
}

// messages is the history, oldest first, from the latest summary on.
func (c *conversation) messages() []session.Message {
	var all []session.Message
	for _, e := range c.path() {
		if e.summary != "" {
			all = nil
		}
		all = append(all, e.messages...)
	}
	return all
}

// code is the code blocks of the branch on the screen up to an exchange and with it.
func (e *exchange) code() []string {
	if e == nil {
		return nil
	}
	all := e.before.code()
	if e.answer != nil {
		all = append(all, e.answer.code()...)
	}
	return all
}

// lastAnswer is what /copy copies.
func (c *conversation) lastAnswer() string {
	for e := c.at; e != nil; e = e.before {
		if e.answer != nil {
			if said := e.answer.said(); said != "" {
				return said
			}
		}
	}
	return ""
}

// document is the branch on the screen as markdown, for /save and /export.
func (c *conversation) document(model, system string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Chat with %s\n", model)
	if system != "" {
		fmt.Fprintf(&b, "\n## System\n\n%s\n", system)
	}
	for _, e := range c.path() {
		if e.summary != "" {
			fmt.Fprintf(&b, "\n## Summary of what was said before\n\n%s\n", e.summary)
			continue
		}
		fmt.Fprintf(&b, "\n## You\n\n%s\n\n## %s\n", e.question, model)
		for _, p := range e.answer.parts {
			switch p := p.(type) {
			case *thought:
				fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", p.head(),
					p.text.text.String())
			case *speech:
				fmt.Fprintf(&b, "\n%s\n", p.text.Text())
			case *call:
				if code := p.language(); code != "" {
					fence := "```"
					for strings.Contains(p.arguments, fence) {
						fence += "`"
					}
					fmt.Fprintf(&b, "\n%s%s\n%s\n%[1]s\n", fence, code,
						strings.TrimSpace(p.arguments))
					continue
				}
				fmt.Fprintf(&b, "\n`%s %s`\n", p.name, p.arguments)
			}
		}
	}
	return b.String()
}

// The tools of a chat, which has one conversation at a time. Tools keep state, such as an
// interpreter or opened pages, so a new conversation gets new tools.

package tools

import "github.com/ossrun/ossrun/runtime/session"

// Conversation holds the tools of one conversation at a time. It is not safe for concurrent use.
type Conversation struct {
	from    *Tools
	report  func(line string)
	current []session.Tool
}

// Conversation returns t's tools for a first conversation. Closing it closes t too.
func (t *Tools) Conversation(report func(line string)) (*Conversation, error) {
	c := &Conversation{from: t, report: report}
	if _, err := c.Renew(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Tools returns the tools of the conversation.
func (c *Conversation) Tools() []session.Tool { return c.current }

// Renew closes the tools and makes new ones for another conversation.
func (c *Conversation) Renew() (list []session.Tool, err error) {
	c.closeTools()
	c.current, err = c.from.ForConversation()
	return c.current, err
}

func (c *Conversation) closeTools() {
	for _, tool := range c.current {
		if err := tool.Close(); err != nil {
			c.report("closing a tool: " + err.Error())
		}
	}
	c.current = nil
}

func (c *Conversation) Close() {
	c.closeTools()
	_ = c.from.Close() // closes the connections that no conversation uses
}

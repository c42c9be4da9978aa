// The tools of a chat, which has one conversation at a time. Tools keep state, such as an
// interpreter or opened pages, so a new conversation gets new tools.

package tools

import "github.com/ossrun/ossrun/runtime/session"

// Conversation holds the tools of one conversation at a time. It is not safe for concurrent use.
type Conversation struct {
	Tools  []session.Tool
	from   *Tools
	report func(line string)
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

// Renew closes the tools and makes new ones for another conversation.
func (c *Conversation) Renew() (list []session.Tool, err error) {
	c.closeTools()
	c.Tools, err = c.from.ForConversation()
	return c.Tools, err
}

func (c *Conversation) closeTools() {
	for _, tool := range c.Tools {
		if err := tool.Close(); err != nil {
			c.report("closing a tool: " + err.Error())
		}
	}
	c.Tools = nil
}

func (c *Conversation) Close() {
	c.closeTools()
	_ = c.from.Close() // closes the connections that no conversation uses
}

// The tools of a chat, which has one conversation at a time: another conversation gets new ones,
// since tools keep state, such as an interpreter or the pages that were read.

package tools

import "github.com/ossrun/ossrun/runtime/session"

// Conversation is the tools of one conversation at a time. It is not safe for concurrent use.
type Conversation struct {
	from   *Tools
	report func(line string)
	now    []session.Tool
}

// Conversation makes the first tools. Closing it closes t, too.
func (t *Tools) Conversation(report func(line string)) (*Conversation, error) {
	c := &Conversation{from: t, report: report}
	if _, err := c.Renew(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Tools are those of the conversation.
func (c *Conversation) Tools() []session.Tool { return c.now }

// Renew closes the tools and makes those of another conversation.
func (c *Conversation) Renew() (list []session.Tool, err error) {
	c.leave()
	c.now, err = c.from.For()
	return c.now, err
}

func (c *Conversation) leave() {
	for _, tool := range c.now {
		if err := tool.Close(); err != nil {
			c.report("closing a tool: " + err.Error())
		}
	}
	c.now = nil
}

// Close closes everything.
func (c *Conversation) Close() {
	c.leave()
	_ = c.from.Close() // what no conversation has is another program's
}

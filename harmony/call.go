// Calls of tools, in every form in which models write them.

package harmony

import "encoding/json"

// Calls tells whether the message is a call: the assistant speaks to a tool. Where in the header
// the recipient stands, and on which channel, does not matter.
func (m *Message) Calls() bool {
	if m.Role != RoleAssistant || m.Recipient == "all" {
		return false
	}
	return m.Recipient != "" && !Role(m.Recipient).Known()
}

// Complete tells whether the message is whole: one of the three end tokens ended it, or it is a
// call whose arguments are whole JSON and only its end is missing.
func (m *ReadMessage) Complete() bool {
	return m.End != 0 || m.Calls() && json.Valid(m.Body)
}

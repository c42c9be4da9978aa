// Package harmony is the conversation format of gpt-oss: messages, the tokens they are rendered to,
// and the parser that reads them back from what the model samples.
//
// A message is, in tokens,
//
//	<|start|>HEADER<|message|>CONTENT<|end|>
//
// where the header is the role, a recipient, a channel and a content type, and <|call|> or
// <|return|> may stand for <|end|>.
//
// What must stay true: rendering gives the ids that OpenAI's own library gives (the goldens in
// testdata/harmony), text of others never becomes a special token, and parsing works on token ids,
// so text that looks like a boundary is text.
package harmony

import "strings"

// Role is who speaks.
type Role string

const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // a tool's result; the message's Name is the tool
)

// Known tells whether r is one of the five roles.
func (r Role) Known() bool {
	switch r {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
		return true
	}
	return false
}

// The channels of the assistant.
const (
	ChannelAnalysis   = "analysis"   // reasoning
	ChannelCommentary = "commentary" // calls of functions, and what is said to the user before them
	ChannelFinal      = "final"      // the answer
)

// ContentTypeJSON is the content type of a function call's arguments.
const ContentTypeJSON = "<|constrain|>json"

// Message is one message of a conversation. A header field that is "" is absent.
//
// (A field that is present and empty can be read from JSON and from tokens, and is written and
// rendered as such, but it cannot be made otherwise; it has no use.)
type Message struct {
	Role        Role
	Name        string // of the tool, or of a user; needed for RoleTool
	Recipient   string // "functions.NAME" for a call, "assistant" for its result; absent: for all
	Channel     string
	ContentType string
	Content     []Content

	empty headerFields // fields that are present and empty
}

// headerFields is a set of a message's optional header fields.
type headerFields uint8

const (
	fieldName headerFields = 1 << iota
	fieldRecipient
	fieldChannel
	fieldContentType
)

// has tells whether the field, whose value is given, is present.
func (m *Message) has(field headerFields, value string) bool {
	return value != "" || m.empty&field != 0
}

// set stores a field that is present, be it empty or not.
func (m *Message) set(field headerFields, to *string, value string) {
	*to = value
	m.empty &^= field
	if value == "" {
		m.empty |= field
	}
}

// What a piece of content is.
const (
	KindText      = "text"
	KindSystem    = "system_content"    // only in messages of RoleSystem
	KindDeveloper = "developer_content" // only in messages of RoleDeveloper
)

// Content is one piece of a message: text, or what the system or developer message is put together
// from. Exactly the field that Type names is used.
type Content struct {
	Type      string
	Text      string
	System    *SystemContent
	Developer *DeveloperContent
}

// Text makes a message of one text.
func Text(role Role, text string) Message {
	return Message{Role: role, Content: []Content{{Type: KindText, Text: text}}}
}

// System makes the system message.
func System(content SystemContent) Message {
	return Message{Role: RoleSystem, Content: []Content{{Type: KindSystem, System: &content}}}
}

// Developer makes a developer message of instructions and tools.
func Developer(content DeveloperContent) Message {
	return Message{Role: RoleDeveloper,
		Content: []Content{{Type: KindDeveloper, Developer: &content}}}
}

// DeveloperText makes a developer message of instructions alone.
func DeveloperText(text string) Message {
	return Developer(DeveloperContent{Instructions: &text})
}

// WithChannel returns a copy of m in that channel.
func (m Message) WithChannel(channel string) Message {
	m.Channel = channel
	return m
}

// WithRecipient returns a copy of m to that recipient.
func (m Message) WithRecipient(recipient string) Message {
	m.Recipient = recipient
	return m
}

// WithContentType returns a copy of m with that content type.
func (m Message) WithContentType(contentType string) Message {
	m.ContentType = contentType
	return m
}

// Text returns all text pieces of the message, one after the other.
func (m Message) Text() string {
	if len(m.Content) == 1 {
		return m.Content[0].Text
	}
	var s strings.Builder
	for _, c := range m.Content {
		s.WriteString(c.Text)
	}
	return s.String()
}

// Calls tells whether the message is a call: the assistant speaks to a tool. Where in the header
// the recipient stands, and on which channel, does not matter.
func (m *Message) Calls() bool {
	if m.Role != RoleAssistant || m.Recipient == "all" {
		return false
	}
	return m.Recipient != "" && !Role(m.Recipient).Known()
}

// Package harmony is the conversation format of gpt-oss: messages, their rendering to tokens, and
// the parser of sampled tokens.
//
// A message is, in tokens,
//
//	<|start|>HEADER<|message|>CONTENT<|end|>
//
// where the header is the role, a recipient, a channel and a content type. <|call|> or <|return|>
// may replace <|end|>.
//
// What must stay true: rendering gives the ids of OpenAI's own library (the goldens in
// testdata/harmony), external text never becomes a special token, and parsing works on token ids,
// so text that looks like a boundary is text.
package harmony

import "strings"

type Role string

const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // a tool's result; the message's Name is the tool
)

func (r Role) IsValid() bool {
	switch r {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
		return true
	}
	return false
}

// The channels of the assistant.
const (
	ChannelAnalysis   = "analysis"   // reasoning
	ChannelCommentary = "commentary" // calls of functions, and text for the user before them
	ChannelFinal      = "final"      // the answer
)

// ContentTypeJSON is the content type of a function call's arguments.
const ContentTypeJSON = "<|constrain|>json"

// Message is one message of a conversation. A header field that is "" is absent.
//
// (A field that is present and empty can be read from JSON and from tokens, and is rendered as
// such, but it cannot be made otherwise and has no use.)
type Message struct {
	Role        Role
	Name        string // of the tool, or of a user; needed for RoleTool
	Recipient   string // "functions.NAME" for a call, "assistant" for its result; absent: all
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

func (m *Message) has(field headerFields, value string) bool {
	return value != "" || m.empty&field != 0
}

// set stores a present field, which may be empty.
func (m *Message) set(field headerFields, to *string, value string) {
	*to = value
	m.empty &^= field
	if value == "" {
		m.empty |= field
	}
}

// The kinds of a piece of content.
const (
	KindText      = "text"
	KindSystem    = "system_content"    // only in messages of RoleSystem
	KindDeveloper = "developer_content" // only in messages of RoleDeveloper
)

// Content is one piece of a message: text, or the parts of the system or developer message. Only
// the field that Type names is used.
type Content struct {
	Type      string
	Text      string
	System    *SystemContent
	Developer *DeveloperContent
}

func Text(role Role, text string) Message {
	return Message{Role: role, Content: []Content{{Type: KindText, Text: text}}}
}

func System(content SystemContent) Message {
	return Message{Role: RoleSystem, Content: []Content{{Type: KindSystem, System: &content}}}
}

func Developer(content DeveloperContent) Message {
	return Message{Role: RoleDeveloper,
		Content: []Content{{Type: KindDeveloper, Developer: &content}}}
}

// DeveloperText makes a developer message of instructions alone.
func DeveloperText(text string) Message {
	return Developer(DeveloperContent{Instructions: &text})
}

func (m Message) WithChannel(channel string) Message {
	m.Channel = channel
	return m
}

func (m Message) WithRecipient(recipient string) Message {
	m.Recipient = recipient
	return m
}

func (m Message) WithContentType(contentType string) Message {
	m.ContentType = contentType
	return m
}

// Text returns all text pieces of the message, joined.
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

// Calls reports whether the message is a call: the assistant speaks to a tool. The recipient's
// place in the header and the channel do not matter.
func (m *Message) Calls() bool {
	if m.Role != RoleAssistant || m.Recipient == "all" {
		return false
	}
	return m.Recipient != "" && !Role(m.Recipient).IsValid()
}

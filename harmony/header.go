// Message headers: from the text between <|start|> and <|message|> to role, recipient, channel and
// content type.
//
// The model writes a recipient before or after the channel and leaves out what it likes:
//
//	assistant<|channel|>analysis
//	assistant to=functions.f<|channel|>commentary <|constrain|>json
//	assistant<|channel|>commentary to=functions.f <|constrain|>json
//	functions.f to=assistant<|channel|>commentary
//
// A header is text, not tokens, because its words may be tokenized in any way; only its ends are
// tokens.

package harmony

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	channelMark   = "<|channel|>"
	constrainMark = "<|constrain|>"
	recipientMark = "to="
)

var (
	errNoChannel = errors.New("a channel marker has no channel behind it")
	errNoRole    = errors.New("the message header has no role")
)

// parseHeader reads a header. The role is "" if the header says it, else it is known and the header
// need not repeat it. Words beyond what a header can hold are an error.
func parseHeader(text string, role Role) (Message, error) {
	m, words, err := headerStart(text, role)
	if err != nil {
		return m, err
	}
	if len(words) == 0 {
		return m, nil
	}
	last := len(words) - 1
	// One word is the recipient, with or without its mark. Of two, the last is the content type
	// unless it has the mark.
	if to, ok := strings.CutPrefix(words[last], recipientMark); ok || last == 0 {
		m.set(fieldRecipient, &m.Recipient, to)
		words = words[:last]
	} else {
		m.set(fieldContentType, &m.ContentType, words[last])
		m.set(fieldRecipient, &m.Recipient, strings.TrimPrefix(words[last-1], recipientMark))
		words = words[:last-1]
	}
	if len(words) > 0 {
		return m, fmt.Errorf("words too many in the message header: %q", strings.Join(words, " "))
	}
	return m, nil
}

// headerStart takes the channel and the role out of a header and returns the words that are left.
func headerStart(text string, role Role) (m Message, words []string, err error) {
	if before, after, ok := strings.Cut(text, channelMark); ok {
		end := strings.IndexFunc(after, func(r rune) bool { return r == '<' || unicode.IsSpace(r) })
		if end < 0 {
			end = len(after)
		}
		if m.Channel = after[:end]; m.Channel == "" {
			return m, nil, errNoChannel
		}
		text = before + after[end:]
	}
	text = strings.ReplaceAll(text, constrainMark, " "+constrainMark)
	words = strings.FieldsFunc(strings.TrimSpace(text), asciiSpace)
	m.Role = role
	if role == "" {
		if len(words) == 0 {
			return m, nil, errNoRole
		}
		m.Role = Role(words[0])
		switch {
		case m.Role == RoleTool:
			m.Name = words[0]
		case m.Role.Known():
		case len(words) > 1 || strings.HasPrefix(words[0], recipientMark):
			// An unknown name that speaks to someone is a tool.
			m.Role, m.Name = RoleTool, words[0]
			words = words[1:]
		default:
			return m, nil, fmt.Errorf("unknown role: %q", words[0])
		}
	}
	if len(words) > 0 && words[0] == string(m.Role) {
		words = words[1:]
	}
	return m, slices.Clip(words), nil
}

// asciiSpace is what words are divided by; other white space is part of them.
func asciiSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\f', '\r':
		return true
	}
	return false
}

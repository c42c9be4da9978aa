// Headers as models write them, legal or not: from the text between <|start|> and <|message|> to
// role, recipient, channel and content type. The model writes a recipient before or after the
// channel and omits fields freely:
//
//	assistant<|channel|>analysis
//	assistant to=functions.f<|channel|>commentary <|constrain|>json
//	assistant<|channel|>commentary to=functions.f <|constrain|>json
//	functions.f to=assistant<|channel|>commentary
//
// What must stay true: a legal header has the same meaning as in OpenAI's library, with two
// exceptions that no tool could use. A content type is never a recipient ("analysis code",
// "commentary <|constrain|>json"), and a name ends where a special token begins.

package harmony

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/ossrun/ossrun/harmony/token"
)

const (
	constrainMark = "<|constrain|>"
	recipientMark = "to="
)

// header is a parsed header. Bytes from text on are content.
type header struct {
	message Message
	text    int
	faults  Faults
}

func readHeader(b []byte, marks []headerMark, role Role) header {
	r := headerWords{h: header{message: Message{Role: role}, text: len(b)}, hasRole: role != ""}
	start, mark := 0, int32(0)
	for i := 0; i <= len(marks); i++ {
		end := len(b)
		if i < len(marks) {
			end = marks[i].pos
		}
		r.run(string(b[start:end]), mark)
		if start = end; i < len(marks) {
			mark = marks[i].id
		}
	}
	r.finish()
	return r.h
}

// splitHeader parses a header without <|message|>: what cannot be a header is text.
func splitHeader(b []byte, marks []headerMark, role Role) header {
	if h := readHeader(b, marks, role); h.faults.Total() == 0 &&
		nameLength(h.message.Recipient) == len(h.message.Recipient) &&
		!strings.ContainsAny(h.message.ContentType, `{["`) {
		return h
	}
	end := 0
	if role == "" {
		end = len(leadingName(b, knownRoles))
	}
	for _, m := range marks {
		rest := b[m.pos:]
		switch m.id {
		case token.Channel:
			if name := leadingName(rest, knownChannels); name != "" {
				end = m.pos + len(name)
				end += recipientLength(b[end:])
			}
		case token.Constrain:
			if bytes.HasPrefix(rest, []byte("json")) || bytes.HasPrefix(rest, []byte("code")) {
				end = m.pos + len("json")
			}
		}
	}
	h := readHeader(b[:end], slices.DeleteFunc(slices.Clone(marks),
		func(m headerMark) bool { return m.pos > end }), role)
	h.text = end
	return h
}

// unfinishedHeader reports whether the remaining bytes of a truncated header may be part of one.
// marked: the header has a special token.
func unfinishedHeader(rest []byte, marked bool, role Role) bool {
	s := strings.TrimLeft(string(rest), " ")
	if marked {
		return !strings.ContainsFunc(s, unicode.IsSpace)
	}
	if role == "" && (leadingName(rest, knownRoles) != "" ||
		!strings.ContainsFunc(s, unicode.IsSpace)) {
		return true
	}
	return strings.HasPrefix(s, recipientMark) || strings.HasPrefix(recipientMark, s)
}

// recipientLength is the length of a recipient at the start of b, including the space and the mark
// before it.
func recipientLength(b []byte) int {
	const mark = " " + recipientMark
	if !bytes.HasPrefix(b, []byte(mark)) {
		return 0
	}
	return len(mark) + nameLength(string(b[len(mark):]))
}

// nameLength is the length of the longest prefix of s that can be a tool's name.
func nameLength(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:/", r)
	})
	if n < 0 {
		return len(s)
	}
	return n
}

// knownRoles and knownChannels: a prefix of another name would have to come after it.
var (
	knownRoles    = []Role{RoleAssistant, RoleSystem, RoleDeveloper, RoleUser, RoleTool}
	knownChannels = []string{ChannelAnalysis, ChannelCommentary, ChannelFinal}
)

// leadingName returns the name that b begins with, or "".
func leadingName[S ~string](b []byte, names []S) string {
	for _, name := range names {
		if bytes.HasPrefix(b, []byte(name)) {
			return string(name)
		}
	}
	return ""
}

func findChannel(word string) string {
	first, channel := len(word), ""
	for _, c := range knownChannels {
		if i := strings.Index(word, c); i >= 0 && i < first {
			first, channel = i, c
		}
	}
	return channel
}

// headerWords collects the meaning of a header's words.
type headerWords struct {
	h        header
	hasRole  bool     // the role is known
	channels int      // channel marks so far
	rest     []string // words without a meaning of their own
}

// run takes the bytes after a mark, up to the next one; mark is 0 for those before any.
func (r *headerWords) run(s string, mark int32) {
	words := strings.FieldsFunc(s, isASCIISpace)
	switch mark {
	case token.Channel:
		end := strings.IndexFunc(s, func(c rune) bool { return c == '<' || unicode.IsSpace(c) })
		if end < 0 {
			end = len(s)
		}
		r.channel(s[:end])
		words = strings.FieldsFunc(s[end:], isASCIISpace)
	case token.Constrain:
		switch {
		case len(words) == 0:
			r.h.faults[FaultHeader]++
		case r.h.message.ContentType != "":
			r.h.faults[FaultHeader]++
			words = words[1:]
		default:
			r.h.message.ContentType = constrainMark + words[0]
			words = words[1:]
		}
	}
	for i, w := range words {
		r.word(w, mark == 0 && i == 0)
	}
}

func (r *headerWords) channel(name string) {
	m := &r.h.message
	if r.channels++; r.channels > 1 {
		r.h.faults[FaultChannel]++
	}
	if m.Recipient == "" && isToolLike(name) { // the tool's name instead of a channel's
		m.Recipient = name
	}
	channel := findChannel(name)
	if channel != name || name == "" {
		r.h.faults[FaultChannel]++
	}
	m.Channel = cmp.Or(m.Channel, channel)
}

func (r *headerWords) word(w string, first bool) {
	m := &r.h.message
	switch to, marked := strings.CutPrefix(w, recipientMark); {
	case first && !r.hasRole:
		r.roleWord(w)
	case first && w == string(m.Role): // the model repeats the prompt's role
	case marked && to != "" && m.Recipient == "":
		m.Recipient = to
		if m.ContentType != "" { // the recipient must come first
			r.h.faults[FaultHeader]++
		}
	case marked:
		r.h.faults[FaultHeader]++
	case m.Recipient == "" && isToolLike(w):
		m.Recipient = w
	case (w == "json" || w == "code") && m.ContentType == "":
		m.ContentType = w
	case m.Channel == "" && r.channels == 0 && findChannel(w) == w:
		m.Channel = w
		r.h.faults[FaultChannel]++
	default:
		r.rest = append(r.rest, w)
	}
}

// roleWord handles the first word of a header with an unknown role.
func (r *headerWords) roleWord(w string) {
	m := &r.h.message
	r.hasRole = true
	switch role := leadingName([]byte(w), knownRoles); {
	case Role(w).IsValid():
		m.Role = Role(w)
		if m.Role == RoleTool {
			m.Name = w
		}
	case role != "": // assistantfinal
		m.Role = Role(role)
		r.h.faults[FaultRole]++
		r.word(w[len(role):], false)
	case strings.HasPrefix(w, recipientMark), isToolLike(w):
		// a speaking tool, or a recipient: see finish
		m.Name = strings.TrimPrefix(w, recipientMark)
	default:
		m.Name = w
	}
}

func (r *headerWords) finish() {
	m, faults := &r.h.message, &r.h.faults
	switch {
	case m.Role != "":
	case m.Name == "":
		m.Role = RoleAssistant
		faults[FaultRole]++
	case m.Recipient != "" || len(r.rest) > 0: // an unknown name with a recipient is a tool
		m.Role = RoleTool
		if m.Recipient == "" {
			m.Recipient, r.rest = r.rest[0], r.rest[1:]
		}
	case isToolLike(m.Name): // the assistant, with the recipient in place of the role
		m.Role, m.Recipient, m.Name = RoleAssistant, m.Name, ""
		faults[FaultRole]++
	default:
		m.Role, m.Name = RoleAssistant, ""
		faults[FaultRole]++
	}
	if len(r.rest) > 0 && m.Recipient != "" && m.ContentType == "" {
		m.ContentType, r.rest = r.rest[0], r.rest[1:]
	}
	if len(r.rest) == 1 && m.Recipient == "" && m.ContentType != "" && m.Role == RoleAssistant {
		m.Recipient, r.rest = r.rest[0], nil // get_weather <|constrain|>json
	}
	if len(r.rest) > 0 {
		faults[FaultHeader]++
	}
	for _, s := range []*string{&m.Recipient, &m.Name} {
		*s, _, _ = strings.Cut(token.Text([]byte(*s)), "<|")
	}
	if ct, ok := strings.CutPrefix(m.ContentType, constrainMark); ok {
		m.ContentType = constrainMark + token.Text([]byte(ct))
	} else {
		m.ContentType = token.Text([]byte(m.ContentType))
	}
}

func isToolLike(w string) bool {
	space, name, dotted := strings.Cut(w, ".")
	switch space {
	case "functions", "browser", "container":
		return dotted && name != ""
	}
	return w == "python"
}

// isASCIISpace reports whether a rune separates words; other white space is part of them.
func isASCIISpace(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\f', '\r':
		return true
	}
	return false
}

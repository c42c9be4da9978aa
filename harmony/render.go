// Rendering: messages to token ids.
//
// The convention for building a prompt from pieces: RenderMessage gives the complete message, from
// <|start|> to <|end|> (or <|call|>) inclusive, independent of its neighbours. A conversation is
// its messages in order, and RenderTurn opens the next one: <|start|>assistant, which the model
// continues. So a sampled message begins after RenderTurn's ids and ends with <|end|>, <|call|> or
// <|return|>, which belongs to it. In a history, a sampled <|return|> becomes <|end|>.

package harmony

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/token"
)

// RenderOptions are the properties of the conversation that a message's rendering depends on.
type RenderOptions struct {
	// FunctionTools is set if a developer message offers functions (see OffersFunctions). The
	// system message then names the channel of calls.
	FunctionTools bool
	// Continue, if not nil, is called periodically while long texts are encoded, with the number
	// of ids so far. Its error stops the rendering.
	Continue func(ids int) error
}

// RenderCompletion renders a prompt: the conversation and the beginning of a message by next. With
// autoDrop, old reasoning is left out (droppedBefore).
func RenderCompletion(messages []Message, next Role, autoDrop bool) ([]int32, error) {
	if !next.IsValid() {
		return nil, fmt.Errorf("unknown role: %q", next)
	}
	ids, err := Render(messages, autoDrop)
	if err != nil {
		return nil, err
	}
	return RenderTurn(ids, next), nil
}

func Render(messages []Message, autoDrop bool) ([]int32, error) {
	options := RenderOptions{FunctionTools: OffersFunctions(messages)}
	first := 0
	if autoDrop {
		first = droppedBefore(messages)
	}
	ids := []int32{}
	for i, m := range messages {
		if i < first && m.Channel == ChannelAnalysis {
			continue
		}
		var err error
		if ids, err = RenderMessage(ids, m, options); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return ids, nil
}

// RenderTraining is Render, but a final answer at the end ends in <|return|>, as the model should
// sample it.
func RenderTraining(messages []Message, autoDrop bool) ([]int32, error) {
	ids, err := Render(messages, autoDrop)
	if err != nil || len(messages) == 0 {
		return ids, err
	}
	if last := messages[len(messages)-1]; last.Role == RoleAssistant &&
		last.Channel == ChannelFinal && len(ids) > 0 {
		ids[len(ids)-1] = token.Return
	}
	return ids, nil
}

// RenderTurn appends the beginning of a message of that role: <|start|> and the role.
func RenderTurn(dst []int32, role Role) []int32 {
	return token.Get().Encode(append(dst, token.Start), string(role))
}

// OffersFunctions reports whether a developer message offers at least one function.
func OffersFunctions(messages []Message) bool {
	for _, m := range messages {
		for _, c := range m.Content {
			if c.Developer != nil && len(c.Developer.Tools[FunctionsNamespace].Tools) > 0 {
				return true
			}
		}
	}
	return false
}

// droppedBefore is the rule of OpenAI's library for old reasoning: if the assistant's last message
// is a final answer, analysis before the first final answer is dropped. It returns the index of
// that answer, else 0.
//
// (Analysis of later turns stays. A session does better: it drops the reasoning of every turn with
// a final answer.)
func droppedBefore(messages []Message) int {
	isFinal := false
	for _, m := range messages {
		if m.Role == RoleAssistant {
			isFinal = m.Channel == ChannelFinal
		}
	}
	if !isFinal {
		return 0
	}
	return slices.IndexFunc(messages, func(m Message) bool { return m.Channel == ChannelFinal })
}

// RenderMessage appends the ids of one message, including <|start|> and <|end|> or <|call|>. The
// result of a failed call must not be used.
func RenderMessage(dst []int32, m Message, options RenderOptions) ([]int32, error) {
	t := token.Get()
	dst = append(dst, token.Start)
	switch {
	case !m.Role.IsValid():
		return dst, fmt.Errorf("unknown role: %q", m.Role)
	case m.Role == RoleTool:
		if !m.has(fieldName, m.Name) {
			return dst, errors.New("a tool message needs the tool's name")
		}
		dst = t.Encode(dst, m.Name)
	default:
		dst = t.Encode(dst, string(m.Role))
		if m.has(fieldName, m.Name) {
			dst = t.Encode(dst, ":"+m.Name)
		}
	}
	if m.has(fieldRecipient, m.Recipient) && m.Recipient != "all" {
		dst = t.Encode(dst, " to="+m.Recipient)
	}
	if m.has(fieldChannel, m.Channel) {
		dst = t.Encode(append(dst, token.Channel), m.Channel)
	}
	if m.has(fieldContentType, m.ContentType) {
		dst = renderContentType(dst, m.ContentType)
	}
	dst = append(dst, token.Message)
	for _, c := range m.Content {
		text, err := contentText(m.Role, c, options)
		if err != nil {
			return dst, err
		}
		if options.Continue == nil {
			dst = t.Encode(dst, text)
			continue
		}
		dst, _ = t.EncodeWhile(dst, text, func(ids int) bool {
			err = options.Continue(ids)
			return err == nil
		})
		if err != nil {
			return dst, err
		}
	}
	if m.Role == RoleAssistant && m.has(fieldRecipient, m.Recipient) {
		return append(dst, token.Call), nil
	}
	return append(dst, token.End), nil
}

// renderContentType renders the one special token that a text may contain: a leading <|constrain|>.
func renderContentType(dst []int32, contentType string) []int32 {
	t := token.Get()
	format, ok := strings.CutPrefix(contentType, constrainMark)
	if !ok {
		return t.Encode(dst, " "+contentType)
	}
	return t.Encode(append(t.Encode(dst, " "), token.Constrain), format)
}

func contentText(role Role, c Content, options RenderOptions) (string, error) {
	switch {
	case c.Type == KindText:
		return c.Text, nil
	case c.Type == KindSystem && c.System != nil:
		if role != RoleSystem {
			return "", fmt.Errorf("system content may only be in system messages, not of role %q",
				role)
		}
		return systemText(c.System, options)
	case c.Type == KindDeveloper && c.Developer != nil:
		if role != RoleDeveloper {
			return "", fmt.Errorf(
				"developer content may only be in developer messages, not of role %q", role)
		}
		return developerText(c.Developer)
	}
	return "", fmt.Errorf("unknown content type: %q", c.Type)
}

// /v1/messages: the objects and events, field for field as Anthropic's clients decode them.

package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

type message struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"` // message
	Role         string          `json:"role"` // assistant
	Model        string          `json:"model"`
	Content      []*messageBlock `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        messageUsage    `json:"usage"`
	Own          *ownPart        `json:"ossrun,omitempty"`
}

// messageBlock is text, thinking or tool_use; a field that its type does not have is nil.
type messageBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`

	thought *strings.Builder // what the signature seals
}

// messageUsage counts tokens; Input is without those that were cached.
type messageUsage struct {
	Input       int `json:"input_tokens"`
	CacheWrites int `json:"cache_creation_input_tokens"` // a charge of Anthropic's
	CacheReads  int `json:"cache_read_input_tokens"`
	Output      int `json:"output_tokens"`
}

func wireMessageUsage(u session.Usage) messageUsage {
	return messageUsage{Input: u.Prompt - u.Cached, CacheReads: u.Cached, Output: u.Completion}
}

// messageEvent is one event of a stream; its type is its event line too.
type messageEvent struct {
	Type    string        `json:"type"`
	Message *message      `json:"message,omitempty"`
	Index   *int          `json:"index,omitempty"`
	Block   *messageBlock `json:"content_block,omitempty"`
	Delta   *messageDelta `json:"delta,omitempty"`
	Usage   *messageUsage `json:"usage,omitempty"`
	Own     *ownPart      `json:"ossrun,omitempty"` // of message_delta
}

// messageDelta is a piece of a block, or, without a type, of the message.
type messageDelta struct {
	Type         string   `json:"type,omitempty"`
	Text         *string  `json:"text,omitempty"`
	Thinking     *string  `json:"thinking,omitempty"`
	Signature    *string  `json:"signature,omitempty"`
	PartialJSON  *string  `json:"partial_json,omitempty"`
	StopReason   *string  `json:"stop_reason,omitempty"`
	StopSequence **string `json:"stop_sequence,omitempty"` // null where there was none
}

// anthropicFault is an error of /v1/messages.
type anthropicFault struct {
	Type  string `json:"type"` // error
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

// anthropicKinds are the types of errors by status; others are api_error.
var anthropicKinds = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnsupportedMediaType:  "invalid_request_error",
	http.StatusRequestTimeout:        "invalid_request_error",
	http.StatusMethodNotAllowed:      "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
}

func anthropicError(f *fault, id string) anthropicFault {
	a := anthropicFault{Type: "error", RequestID: id}
	a.Error.Type, a.Error.Message = anthropicKinds[f.status], brief(f.message)
	if a.Error.Type == "" {
		a.Error.Type = "api_error"
	}
	if n := f.tooLong; n != nil { // Claude Code reads the numbers
		a.Error.Message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n.Asked, n.Max)
	}
	return a
}

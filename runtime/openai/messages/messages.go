// Package messages is POST /v1/messages: from events to an answer in Anthropic's form, complete or
// streamed, field for field as Anthropic's clients decode it.
//
// What must stay true: every block that is started is stopped once, one at a time; every event has
// its event line; a successful stream ends in message_delta with the stop reason and the usage,
// then message_stop (Claude Code repeats the request without end otherwise).
package messages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

type form struct {
	*answer.Answer
	req      *messagesRequest
	id       string
	content  []*messageBlock
	running  bool   // the last block of content is not stopped
	phase    string // of the open text block
	callOpen bool   // the last block is an incomplete call
	sent     int    // bytes of the open call's arguments

	calls map[int]*serverCall // that run here and have not ended
	uses  *serverUses         // of tools that run here; nil: none was asked for
}

// API has the routes under /v1/messages.
type API struct {
	*answer.Driver
	tools *tools.Pool
}

// New makes the dialect; tools are the built-in ones.
func New(d *answer.Driver, tools *tools.Pool) API { return API{d, tools} }

func (p API) Read(o *fields.Object) (*answer.Request, answer.Form) {
	o.Need("max_tokens")
	req := p.parse(o)
	return &req.Request, &form{req: req}
}

// CountTokens is POST /v1/messages/count_tokens.
func (p API) CountTokens(e *answer.Exchange, r *http.Request, o *fields.Object) (
	any, *fields.Fault) {
	req := p.parse(o)
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	if err := p.tools.OfferTo(e, &req.Turns[0], req.builtins); err != nil {
		return nil, fields.FaultOf(err, req.History)
	}
	if _, err := p.FindModel(r.Context(), e, req.Model); err != nil {
		return nil, answer.Unavailable(err)
	}
	ids, f := p.RenderPrompt(r.Context(), e, &req.Request)
	return map[string]int{"input_tokens": len(ids)}, f
}

func (m *form) Open(a *answer.Answer) {
	m.Answer, m.id = a, answer.NewID("msg_")
	m.openUses()
	// the cached tokens are not known yet; the last event has the full usage
	prompt := messageUsage{Input: len(a.Turns[0].Result().Prompt)}
	m.send(messageEvent{Type: "message_start", Message: m.message(nil, nil, prompt)})
	m.Beat()
}

func (m *form) send(e messageEvent) { m.Emit(e.Type, e) }

func (m *form) Take(_ int, e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		m.addThinking(e.Text)
	case session.Commentary:
		m.addText("commentary", e.Text)
	case session.Answer:
		m.addText("answer", e.Text)
	case session.CallStart:
		if m.startServerCall(e) {
			return
		}
		m.openBlock(&messageBlock{Type: "tool_use", ID: e.ID, Name: e.Name,
			Input: json.RawMessage("{}")})
		m.callOpen, m.sent = true, 0
	case session.CallArguments:
		if m.calls[e.Index] == nil {
			m.arguments(e.Text)
		}
	case session.ToolEnd:
		m.endServerCall(e)
	case session.CallEnd:
		if m.calls[e.Index] != nil {
			m.calls[e.Index].arguments = e.Arguments
			m.announce(m.calls[e.Index])
			return
		}
		arguments := tools.RunnableArguments(e.Arguments)
		if m.sent < len(arguments) {
			m.arguments(arguments[m.sent:])
		}
		m.last().Input = tools.InputObject(arguments)
		m.callOpen = false
		m.closeBlock()
	}
}

func (m *form) last() *messageBlock { return m.content[len(m.content)-1] }

// openBlock stops the open block and starts another.
func (m *form) openBlock(b *messageBlock) {
	m.closeBlock()
	m.content, m.running = append(m.content, b), true
	// the stream sends it empty; its content follows in deltas
	m.send(messageEvent{Type: "content_block_start", Index: m.index(), Block: new(*b)})
}

func (m *form) index() *int { return new(len(m.content) - 1) }

func (m *form) delta(d messageDelta) {
	m.send(messageEvent{Type: "content_block_delta", Index: m.index(), Delta: &d})
}

// closeBlock ends the open block. Thinking is sealed, so that the client returns it complete.
func (m *form) closeBlock() {
	if !m.running {
		return
	}
	if b := m.last(); b.Type == "thinking" {
		sealed := request.Seal(b.reasoning.String())
		b.Signature = &sealed
		m.delta(messageDelta{Type: "signature_delta", Signature: &sealed})
	}
	m.running = false
	m.send(messageEvent{Type: "content_block_stop", Index: m.index()})
}

func (m *form) addThinking(text string) {
	if !m.req.thinking {
		return
	}
	if !m.running || m.last().Type != "thinking" {
		m.openBlock(&messageBlock{Type: "thinking", Thinking: new(string), Signature: new(string),
			reasoning: &strings.Builder{}})
	}
	b := m.last()
	b.reasoning.WriteString(text)
	if !m.req.noText {
		b.Thinking = new(b.reasoning.String())
		m.delta(messageDelta{Type: "thinking_delta", Thinking: &text})
	}
}

// addText adds text to the block of a phase: a preamble and the answer are separate blocks.
func (m *form) addText(phase, text string) {
	if !m.running || m.last().Type != "text" || m.phase != phase {
		m.openBlock(&messageBlock{Type: "text", Text: new(string)})
		m.phase = phase
	}
	m.last().Text = new(*m.last().Text + text)
	m.delta(messageDelta{Type: "text_delta", Text: &text})
}

func (m *form) arguments(text string) {
	m.sent += len(text)
	m.delta(messageDelta{Type: "input_json_delta", PartialJSON: &text})
}

func (m *form) Beat() { m.send(messageEvent{Type: "ping"}) }

func (m *form) End(usage session.Usage, f *fields.Fault) {
	if f != nil {
		m.Emit("error", FaultBody(f, m.Exchange.ID))
		return
	}
	m.cite()
	m.closeBlock()
	reason, sequence := m.reason()
	m.send(messageEvent{Type: "message_delta", Usage: new(m.wireUsage(usage)),
		OwnPart: answer.OwnPartOf(m.Dones[0]),
		Delta:   &messageDelta{StopReason: &reason, StopSequence: &sequence}})
	m.send(messageEvent{Type: "message_stop"})
}

// reason is the stop reason, in Anthropic's words, and the stop sequence that ended it.
func (m *form) reason() (reason string, sequence *string) {
	done := m.Dones[0]
	called := false
	for i, b := range m.content {
		called = called || b.Type == "tool_use" && !(m.callOpen && i == len(m.content)-1)
	}
	switch {
	case done.Cut():
		return "max_tokens", nil
	case called:
		return "tool_use", nil
	case done.StopString != "":
		return "stop_sequence", &done.StopString
	}
	return "end_turn", nil
}

func (m *form) Body(usage session.Usage) any {
	m.cite()
	m.closeBlock()
	reason, sequence := m.reason()
	if m.callOpen { // a call without its arguments cannot be run
		m.content = m.content[:len(m.content)-1]
	}
	body := m.message(&reason, sequence, m.wireUsage(usage))
	body.OwnPart = answer.OwnPartOf(m.Dones[0])
	return body
}

func (m *form) message(reason, sequence *string, usage messageUsage) *message {
	content := m.content
	if content == nil {
		content = []*messageBlock{}
	}
	return &message{ID: m.id, Type: "message", Role: "assistant", Model: m.Model, Content: content,
		StopReason: reason, StopSequence: sequence, Usage: usage}
}

type message struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"` // message
	Role         string          `json:"role"` // assistant
	Model        string          `json:"model"`
	Content      []*messageBlock `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        messageUsage    `json:"usage"`
	OwnPart      *answer.OwnPart `json:"ossrun,omitempty"`
}

// messageBlock is text, thinking, tool_use or server_tool_use, or a result of the last; fields of
// other types are nil.
type messageBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Citations []*citation     `json:"citations,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // of a result

	reasoning *strings.Builder // sealed in the signature
}

// messageUsage counts tokens; Input excludes cached ones.
type messageUsage struct {
	Input       int `json:"input_tokens"`
	CacheWrites int `json:"cache_creation_input_tokens"` // a charge of Anthropic's
	CacheReads  int `json:"cache_read_input_tokens"`
	Output      int `json:"output_tokens"`

	Server *serverUses `json:"server_tool_use,omitempty"`
}

func (m *form) wireUsage(u session.Usage) messageUsage {
	return messageUsage{Input: u.Prompt - u.Cached, CacheReads: u.Cached, Output: u.Completion,
		Server: m.uses}
}

// messageEvent is one event of a stream; its type is its event line too.
type messageEvent struct {
	Type    string          `json:"type"`
	Message *message        `json:"message,omitempty"`
	Index   *int            `json:"index,omitempty"`
	Block   *messageBlock   `json:"content_block,omitempty"`
	Delta   *messageDelta   `json:"delta,omitempty"`
	Usage   *messageUsage   `json:"usage,omitempty"`
	OwnPart *answer.OwnPart `json:"ossrun,omitempty"` // of message_delta
}

// messageDelta is a piece of a block, or, without a type, of the message.
type messageDelta struct {
	Type         string    `json:"type,omitempty"`
	Text         *string   `json:"text,omitempty"`
	Thinking     *string   `json:"thinking,omitempty"`
	Signature    *string   `json:"signature,omitempty"`
	PartialJSON  *string   `json:"partial_json,omitempty"`
	Citation     *citation `json:"citation,omitempty"`
	StopReason   *string   `json:"stop_reason,omitempty"`
	StopSequence **string  `json:"stop_sequence,omitempty"` // null without a stop sequence
}

type anthropicFault struct {
	Type  string `json:"type"` // error
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Details any    `json:"details,omitempty"`
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

// threadUnsupported is the code by which Anthropic's SDKs know that a server keeps no threads.
const threadUnsupported = "thread_unsupported_request"

func FaultBody(f *fields.Fault, id string) any {
	a := anthropicFault{Type: "error", RequestID: id}
	a.Error.Type, a.Error.Message = cmp.Or(anthropicKinds[f.Status], "api_error"),
		fields.Brief(f.Message)
	if f.Code == threadUnsupported {
		a.Error.Details = map[string]any{"error_code": f.Code, "unsupported": []string{}}
	}
	if n := f.TooLong; n != nil { // Claude Code reads the numbers
		a.Error.Message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n.Needed, n.Max)
	}
	return a
}

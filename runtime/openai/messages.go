// POST /v1/messages: from events to an answer in Anthropic's form, whole or streamed, field for
// field as Anthropic's clients decode it.
//
// What must stay true: every block that is started is stopped once, one at a time; every event has
// its event line; a stream that did not fail ends in message_delta with the stop reason and the
// usage, then message_stop (Claude Code asks again without end otherwise).

package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

type messagesForm struct {
	*answer
	req     *messagesRequest
	id      string
	content []*messageBlock
	running bool   // the last block of content is not stopped
	phase   string // of the open text block
	cut     bool   // the last block is a call that has not ended
	sent    int    // bytes of the open call's arguments
}

// messagesAPI has the routes under /v1/messages.
type messagesAPI struct{ *driver }

func newMessagesAPI(d *driver) messagesAPI { return messagesAPI{d} }

func (p messagesAPI) read(o *object) (*request, form) {
	o.need("max_tokens")
	req := parseMessages(o, p.MaxReasoning)
	return &req.request, &messagesForm{req: req}
}

func (p messagesAPI) countTokens(_ *exchange, r *http.Request, o *object) (any, *fault) {
	req := parseMessages(o, p.MaxReasoning)
	if o.fault() != nil {
		return nil, o.fault()
	}
	if _, err := p.modelOf(r.Context(), &req.request); err != nil {
		return nil, unavailable(err)
	}
	ids, f := p.rendered(r.Context(), &req.request)
	return map[string]int{"input_tokens": len(ids)}, f
}

func (m *messagesForm) open(a *answer) {
	m.answer, m.id = a, newID("msg_")
	// what is cached is not known yet; the last event has the whole usage
	prompt := messageUsage{Input: len(a.turns[0].Result().Prompt)}
	m.send(messageEvent{Type: "message_start", Message: m.message(nil, nil, prompt)})
	m.beat()
}

func (m *messagesForm) send(e messageEvent) { m.emit(e.Type, e) }

func (m *messagesForm) take(_ int, e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		m.think(e.Text)
	case session.Commentary:
		m.say("commentary", e.Text)
	case session.Answer:
		m.say("answer", e.Text)
	case session.CallStart:
		m.begin(&messageBlock{Type: "tool_use", ID: e.ID, Name: e.Name,
			Input: json.RawMessage("{}")})
		m.cut, m.sent = true, 0
	case session.CallArguments:
		m.arguments(e.Text)
	case session.CallEnd:
		whole := runnable(e.Arguments)
		if m.sent < len(whole) {
			m.arguments(whole[m.sent:])
		}
		m.last().Input = asInput(whole)
		m.cut = false
		m.stop()
	}
}

func (m *messagesForm) last() *messageBlock { return m.content[len(m.content)-1] }

// begin starts a block after the one before has ended.
func (m *messagesForm) begin(b *messageBlock) {
	m.stop()
	m.content, m.running = append(m.content, b), true
	// what a stream starts with; the rest comes in deltas
	m.send(messageEvent{Type: "content_block_start", Index: m.index(), Block: new(*b)})
}

func (m *messagesForm) index() *int { return new(len(m.content) - 1) }

func (m *messagesForm) delta(d messageDelta) {
	m.send(messageEvent{Type: "content_block_delta", Index: m.index(), Delta: &d})
}

// stop ends the open block. Thinking is sealed, so that it comes back whole.
func (m *messagesForm) stop() {
	if !m.running {
		return
	}
	if b := m.last(); b.Type == "thinking" {
		sealed := seal(b.thought.String())
		b.Signature = &sealed
		m.delta(messageDelta{Type: "signature_delta", Signature: &sealed})
	}
	m.running = false
	m.send(messageEvent{Type: "content_block_stop", Index: m.index()})
}

func (m *messagesForm) think(text string) {
	if !m.req.thinking {
		return
	}
	if !m.running || m.last().Type != "thinking" {
		m.begin(&messageBlock{Type: "thinking", Thinking: new(string), Signature: new(string),
			thought: &strings.Builder{}})
	}
	b := m.last()
	b.thought.WriteString(text)
	if !m.req.silent {
		b.Thinking = new(b.thought.String())
		m.delta(messageDelta{Type: "thinking_delta", Thinking: &text})
	}
}

// say adds text to the block of a phase: a preamble and the answer are blocks of their own.
func (m *messagesForm) say(phase, text string) {
	if !m.running || m.last().Type != "text" || m.phase != phase {
		m.begin(&messageBlock{Type: "text", Text: new(string)})
		m.phase = phase
	}
	m.last().Text = new(*m.last().Text + text)
	m.delta(messageDelta{Type: "text_delta", Text: &text})
}

func (m *messagesForm) arguments(text string) {
	m.sent += len(text)
	m.delta(messageDelta{Type: "input_json_delta", PartialJSON: &text})
}

func (m *messagesForm) beat() { m.send(messageEvent{Type: "ping"}) }

func (m *messagesForm) end(usage session.Usage, f *fault) {
	if f != nil {
		m.emit("error", messagesFault(f, m.exchange.id))
		return
	}
	m.stop()
	reason, sequence := m.reason()
	m.send(messageEvent{Type: "message_delta", Usage: new(wireMessageUsage(usage)),
		Own:   ownPartOf(m.dones[0]),
		Delta: &messageDelta{StopReason: &reason, StopSequence: &sequence}})
	m.send(messageEvent{Type: "message_stop"})
}

// reason is why the message ended, in Anthropic's words, and the stop sequence that ended it.
func (m *messagesForm) reason() (reason string, sequence *string) {
	done := m.dones[0]
	called := false
	for i, b := range m.content {
		called = called || b.Type == "tool_use" && !(m.cut && i == len(m.content)-1)
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

func (m *messagesForm) whole(usage session.Usage) any {
	m.stop()
	reason, sequence := m.reason()
	if m.cut { // a call without its arguments cannot be run
		m.content = m.content[:len(m.content)-1]
	}
	whole := m.message(&reason, sequence, wireMessageUsage(usage))
	whole.Own = ownPartOf(m.dones[0])
	return whole
}

func (m *messagesForm) message(reason, sequence *string, usage messageUsage) *message {
	content := m.content
	if content == nil {
		content = []*messageBlock{}
	}
	return &message{ID: m.id, Type: "message", Role: "assistant", Model: m.model, Content: content,
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

// messagesFault is the body of a fault.
func messagesFault(f *fault, id string) any {
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

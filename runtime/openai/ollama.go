// POST /api/chat and /api/generate: from events to an answer in Ollama's form: one object, or
// lines of JSON.
//
// What must stay true: exactly the last line has done set, and it has the counts; a call comes in
// one piece, with its arguments as an object.

package openai

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// ollamaAnswer is a whole answer or a line of a stream.
type ollamaAnswer struct {
	Model     string         `json:"model"`
	CreatedAt string         `json:"created_at"`
	Message   *ollamaMessage `json:"message,omitempty"`  // of /api/chat
	Response  *string        `json:"response,omitempty"` // of /api/generate
	Thinking  string         `json:"thinking,omitempty"` // of /api/generate
	Done      bool           `json:"done"`
	*ollamaEnd
}

type ollamaMessage struct {
	Role      string       `json:"role"` // assistant
	Content   string       `json:"content"`
	Thinking  string       `json:"thinking,omitempty"`
	ToolCalls []ollamaCall `json:"tool_calls,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// ollamaEnd is what the last line has; times are nanoseconds.
type ollamaEnd struct {
	Reason         string        `json:"done_reason"`
	Total          time.Duration `json:"total_duration"`
	Load           time.Duration `json:"load_duration"` // is in total_duration only
	PromptCount    int           `json:"prompt_eval_count"`
	PromptDuration time.Duration `json:"prompt_eval_duration"`
	EvalCount      int           `json:"eval_count"`
	EvalDuration   time.Duration `json:"eval_duration"`
}

// ollamaForm writes an answer.
type ollamaForm struct {
	*answer
	req               *ollamaRequest
	thinking, content strings.Builder
	commentary        bool // the content so far is a preamble
	calls             []ollamaCall
	begun             time.Time
}

func (l *ollamaForm) open(a *answer) { l.answer, l.begun = a, time.Now() }

func (l *ollamaForm) take(_ int, e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		if l.req.thinking {
			l.thinking.WriteString(e.Text)
			l.piece(ollamaMessage{Thinking: e.Text})
		}
	case session.Commentary:
		l.commentary = true
		l.say(e.Text)
	case session.Answer:
		text := e.Text
		if l.commentary { // a preamble and the answer share one field
			text, l.commentary = "\n\n"+text, false
		}
		l.say(text)
	case session.CallStart:
		call := ollamaCall{ID: e.ID}
		call.Function.Index, call.Function.Name = e.Index, e.Name
		l.calls = append(l.calls, call)
	case session.CallEnd:
		call := &l.calls[e.Index]
		call.Function.Arguments = asInput(runnable(e.Arguments))
		l.piece(ollamaMessage{ToolCalls: []ollamaCall{*call}})
	}
}

func (l *ollamaForm) say(text string) {
	l.content.WriteString(text)
	l.piece(ollamaMessage{Content: text})
}

func (l *ollamaForm) piece(m ollamaMessage) { l.emit("", l.line(m)) }

func (l *ollamaForm) beat() { l.piece(ollamaMessage{}) }

// line has the message in the form of the route.
func (l *ollamaForm) line(m ollamaMessage) ollamaAnswer {
	a := ollamaAnswer{Model: l.model, CreatedAt: time.Now().UTC().Format(time.RFC3339Nano)}
	if l.req.generate {
		a.Response, a.Thinking = &m.Content, m.Thinking
	} else {
		m.Role = "assistant"
		a.Message = &m
	}
	return a
}

// ended is the last line, or the whole answer.
func (l *ollamaForm) ended(m ollamaMessage, usage session.Usage) ollamaAnswer {
	a, d := l.line(m), l.dones[0]
	a.Done = true
	a.ollamaEnd = &ollamaEnd{Reason: "stop", Total: time.Since(l.begun),
		PromptCount: usage.Prompt, PromptDuration: d.Timing.Prefill,
		EvalCount: usage.Completion, EvalDuration: d.Timing.Decode}
	if d.Cut() {
		a.Reason = "length"
	}
	return a
}

func (l *ollamaForm) end(usage session.Usage, f *fault) {
	if f != nil {
		l.emit("", map[string]string{"error": brief(f.message)})
		return
	}
	l.emit("", l.ended(ollamaMessage{}, usage))
}

func (l *ollamaForm) whole(usage session.Usage) any {
	m := ollamaMessage{Content: l.content.String(), Thinking: l.thinking.String()}
	for _, c := range l.calls {
		if c.Function.Arguments != nil { // one that was cut off cannot be run
			m.ToolCalls = append(m.ToolCalls, c)
		}
	}
	return l.ended(m, usage)
}

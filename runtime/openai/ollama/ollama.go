// Package ollama is POST /api/chat and /api/generate: from events to an answer in Ollama's form,
// one object or lines of JSON. It also lists the models, which clients read before they chat.
//
// What must stay true: exactly the last line has done set, and it has the counts; a call is sent in
// one piece, with its arguments as an object; unknown properties of a model are 0 or empty, if
// typed clients need the field.
package ollama

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

type ollamaAnswer struct {
	Model     string         `json:"model"`
	CreatedAt string         `json:"created_at"`
	Message   *ollamaMessage `json:"message,omitempty"`  // of /api/chat
	Response  *string        `json:"response,omitempty"` // of /api/generate
	Thinking  string         `json:"thinking,omitempty"` // of /api/generate
	Done      bool           `json:"done"`
	*ollamaEnd

	Logprobs []answer.TokenLogprob `json:"logprobs,omitempty"` // of the answer's tokens
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

// ollamaEnd has the fields of the last line; times are nanoseconds.
type ollamaEnd struct {
	Reason         string        `json:"done_reason"`
	Total          time.Duration `json:"total_duration"`
	Load           time.Duration `json:"load_duration"` // is in total_duration only
	PromptCount    int           `json:"prompt_eval_count"`
	PromptDuration time.Duration `json:"prompt_eval_duration"`
	EvalCount      int           `json:"eval_count"`
	EvalDuration   time.Duration `json:"eval_duration"`
}

type form struct {
	*answer.Answer
	req               *ollamaRequest
	thinking, content strings.Builder
	commentary        bool                  // the content so far is a preamble
	logprobs          []answer.TokenLogprob // in a stream: of the next line
	calls             []ollamaCall
	started           time.Time
}

func (l *form) Open(a *answer.Answer) { l.Answer, l.started = a, time.Now() }

func (l *form) Take(_ int, e session.Event) {
	if l.req.loadReason != "" {
		return
	}
	switch e := e.(type) {
	case session.Reasoning:
		if l.req.thinking {
			l.thinking.WriteString(e.Text)
			l.piece(ollamaMessage{Thinking: e.Text})
		}
	case session.Commentary:
		l.commentary = true
		l.addText(e.Text)
	case session.Answer:
		text := e.Text
		if l.commentary { // a preamble and the answer share one field
			text, l.commentary = "\n\n"+text, false
		}
		l.logprobs = append(l.logprobs, answer.WireLogprobs(e.Logprobs)...)
		l.addText(text)
	case session.CallStart:
		call := ollamaCall{ID: e.ID}
		call.Function.Index, call.Function.Name = e.Index, e.Name
		l.calls = append(l.calls, call)
	case session.CallEnd:
		call := &l.calls[e.Index]
		call.Function.Arguments = tools.InputObject(tools.RunnableArguments(e.Arguments))
		l.piece(ollamaMessage{ToolCalls: []ollamaCall{*call}})
	}
}

func (l *form) addText(text string) {
	l.content.WriteString(text)
	l.piece(ollamaMessage{Content: text})
}

func (l *form) piece(m ollamaMessage) { l.Emit("", l.line(m)) }

func (l *form) Beat() { l.piece(ollamaMessage{}) }

func (l *form) line(m ollamaMessage) ollamaAnswer {
	a := ollamaAnswer{Model: l.Model, CreatedAt: time.Now().UTC().Format(time.RFC3339Nano),
		Logprobs: l.logprobs}
	if l.req.Stream {
		l.logprobs = nil
	}
	if l.req.generate {
		a.Response, a.Thinking = &m.Content, m.Thinking
	} else {
		m.Role = "assistant"
		a.Message = &m
	}
	return a
}

// lastLine is the last line, or the complete answer.
func (l *form) lastLine(m ollamaMessage, usage session.Usage) ollamaAnswer {
	a, d := l.line(m), l.Dones[0]
	a.Done = true
	if l.req.loadReason != "" {
		a.ollamaEnd = &ollamaEnd{Reason: l.req.loadReason, Total: time.Since(l.started)}
		return a
	}
	a.ollamaEnd = &ollamaEnd{Reason: "stop", Total: time.Since(l.started),
		PromptCount: usage.Prompt, PromptDuration: d.Timing.Prefill,
		EvalCount: usage.Completion, EvalDuration: d.Timing.Decode}
	if d.Cut() {
		a.Reason = "length"
	}
	return a
}

func (l *form) End(usage session.Usage, f *fields.Fault) {
	if f != nil {
		l.Emit("", FaultBody(f, ""))
		return
	}
	l.Emit("", l.lastLine(ollamaMessage{}, usage))
}

func (l *form) Body(usage session.Usage) any {
	m := ollamaMessage{Content: l.content.String(), Thinking: l.thinking.String()}
	m.ToolCalls = slices.DeleteFunc(slices.Clone(l.calls), // an incomplete call cannot be run
		func(c ollamaCall) bool { return c.Function.Arguments == nil })
	return l.lastLine(m, usage)
}

func FaultBody(f *fields.Fault, _ string) any {
	return map[string]string{"error": fields.Brief(f.Message)}
}

// Version is the version of Ollama whose API this is: Codex requires at least this one.
const Version = "0.13.4"

type ollamaModel struct {
	Name          string         `json:"name"`
	Model         string         `json:"model"`
	ModifiedAt    string         `json:"modified_at"`
	Size          int64          `json:"size"`   // 0: not known here
	Digest        string         `json:"digest"` // of the name; clients cut it to 12 digits
	Details       map[string]any `json:"details"`
	ContextLength int            `json:"context_length"`
}

// loadedModel is a model in memory, with fields that typed clients need. The server's --keep-alive
// decides when it is unloaded: a far time, as Ollama's for one that stays.
type loadedModel struct {
	ollamaModel
	ExpiresAt time.Time `json:"expires_at"`
	SizeVRAM  int64     `json:"size_vram"` // 0: not known here
}

// gptOSSDetails are those of every model here; "" is not known.
var gptOSSDetails = map[string]any{"parent_model": "", "format": "safetensors",
	"family": "gptoss", "families": []string{"gptoss"}, "parameter_size": "",
	"quantization_level": "MXFP4"}

// API has the routes under /api.
type API struct{ *answer.Driver }

func New(d *answer.Driver) API { return API{d} }

func (p API) Tags(e *answer.Exchange, _ *http.Request) (any, *fields.Fault) {
	list := []ollamaModel{}
	for _, m := range p.AllModels(e) {
		list = append(list, toOllama(m))
	}
	return map[string][]ollamaModel{"models": list}, nil
}

// Loaded lists the loaded models, under every name too: clients look for the one they use.
func (p API) Loaded(e *answer.Exchange, _ *http.Request) (any, *fields.Fault) {
	loaded, list := p.Models.Stats(), []loadedModel{}
	for _, m := range p.AllModels(e) {
		if slices.ContainsFunc(append(m.Aliases, m.ID), func(name string) bool {
			_, ok := loaded[name]
			return ok
		}) {
			list = append(list, loadedModel{toOllama(m), time.Now().Add(1<<63 - 1), 0})
		}
	}
	return map[string][]loadedModel{"models": list}, nil
}

func toOllama(m answer.ModelObject) ollamaModel {
	digest := sha256.Sum256([]byte(m.ID))
	return ollamaModel{Name: m.ID, Model: m.ID, Details: gptOSSDetails,
		ModifiedAt:    time.Unix(m.Created, 0).UTC().Format(time.RFC3339),
		Digest:        hex.EncodeToString(digest[:]),
		ContextLength: m.Context}
}

// named returns the model that a request names in model, or, from older clients, in name.
func (p API) named(e *answer.Exchange, r *http.Request, o *fields.Object) (session.Runner,
	*fields.Fault) {
	name := cmp.Or(o.Text("model"), o.Text("name"))
	if name == "" {
		o.Get("model").Missing()
	}
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	runner, err := p.FindModel(r.Context(), e, name)
	if err != nil {
		return nil, answer.Unavailable(err)
	}
	return runner, nil
}

func (p API) Show(e *answer.Exchange, r *http.Request, o *fields.Object) (any, *fields.Fault) {
	runner, f := p.named(e, r, o)
	if f != nil {
		return nil, f
	}
	return map[string]any{"modelfile": "", "parameters": "temperature 1", "template": "",
		"details": gptOSSDetails, "capabilities": []string{"completion", "tools", "thinking"},
		"model_info": map[string]any{"general.architecture": "gptoss",
			"gptoss.context_length": runner.ContextLength()}}, nil
}

// Pull succeeds for a model that is already here. Others must be downloaded by the operator with
// ossrun pull.
func (p API) Pull(e *answer.Exchange, r *http.Request, o *fields.Object) (any, *fields.Fault) {
	if _, f := p.named(e, r, o); f != nil {
		return nil, f
	}
	done := map[string]string{"status": "success"}
	if stream := o.Boolean("stream", true); !stream || o.Fault() != nil {
		return done, o.Fault()
	}
	lines := answer.StartLines(e, func() {})
	lines.Event("", done)
	_ = lines.Flush() // an error means that the client is gone
	return nil, nil
}

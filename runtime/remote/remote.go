// Package remote is a model behind an OpenAI port, ours or another's, as a session.Runner: the chat
// works the same over it. It uses streamed chat completions.
//
// Ports differ in the parameters they support. What must stay true: a parameter that a port refuses
// is left out from then on and reported once, except the answer's form, which is required; tools
// run in this process, offered as functions; a turn ends in one Done whatever the port sends.
//
// An answer with a schema is checked here at its end, since some ports accept response_format and
// ignore it: an invalid answer is never returned as valid.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// checkTimeout bounds each request before the chat opens.
const checkTimeout = 5 * time.Second

// Port is a server with models. It is safe for concurrent use.
type Port struct {
	client *client.Client
	report func(string)
	models []session.ModelInfo
	owner  string // of its models: ossrun, llamacpp

	unsupported sync.Map     // parameters that were refused
	reported    sync.Map     // messages already reported
	reasoning   atomic.Value // the field in which the port sends it
}

type Model struct {
	port *Port
	info session.ModelInfo
}

// Open asks the port at base for its models, once it has loaded. Missing features are reported
// later, once.
func Open(ctx context.Context, base, key string, report func(string)) (*Port, error) {
	to, err := client.New(base, key)
	if err != nil {
		return nil, err
	}
	p := &Port{client: to, report: report}
	p.reasoning.Store("reasoning")
	p.waitUntilLoaded(ctx)
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	list, err := to.Models(ctx)
	if err != nil {
		to.Close()
		return nil, to.Unusable(err)
	}
	for _, m := range list {
		p.owner = cmp.Or(p.owner, m.Owner)
		p.models = append(p.models, session.ModelInfo{ID: m.ID,
			ContextLength: max(m.Max, m.Window, 0)})
	}
	if len(p.models) == 0 {
		to.Close()
		return nil, fmt.Errorf("the server at %s has no model", to.Root())
	}
	return p, nil
}

func (p *Port) List() []session.ModelInfo { return p.models }

// Close closes idle connections.
func (p *Port) Close() { p.client.Close() }

// Get finds a model by its name or a part of it; "" is a gpt-oss if the port has one, else the
// first.
func (p *Port) Get(ctx context.Context, name string) (*Model, error) {
	index := slices.IndexFunc(p.models, func(m session.ModelInfo) bool {
		return strings.EqualFold(m.ID, name)
	})
	if index < 0 {
		index = slices.IndexFunc(p.models, func(m session.ModelInfo) bool {
			part := cmp.Or(strings.ToLower(name), "gpt-oss")
			return strings.Contains(strings.ToLower(m.ID), part)
		})
	}
	if index < 0 && name == "" {
		index = 0
	}
	if index < 0 {
		var names []string
		for _, m := range p.models {
			names = append(names, m.ID)
		}
		return nil, fmt.Errorf("%w %q: the server at %s has %s", session.ErrUnknownModel, name,
			p.client.Root(), strings.Join(names, ", "))
	}
	m := &Model{p, p.models[index]}
	if m.info.ContextLength == 0 {
		m.info.ContextLength = p.contextLength(ctx, m.info.ID)
	}
	return m, nil
}

// contextLength asks with llama.cpp's and ollama's requests; 0 if neither is answered.
func (p *Port) contextLength(ctx context.Context, name string) int {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if p.client.Call(ctx, "GET", "/props", nil, &props) == nil && props.Settings.Context > 0 {
		return props.Settings.Context
	}
	var show struct {
		Parameters string
		Info       map[string]any `json:"model_info"`
	}
	if p.client.Call(ctx, "POST", "/api/show", map[string]string{"model": name}, &show) != nil {
		return 0
	}
	for line := range strings.Lines(show.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
				return n
			}
		}
	}
	for key, value := range show.Info {
		if n, ok := value.(float64); ok && strings.HasSuffix(key, ".context_length") && n > 0 {
			return int(n)
		}
	}
	return 0
}

func (m *Model) ID() string { return m.info.ID }

// Device is the address of the port.
func (m *Model) Device() string { return m.port.client.Root() }

// ContextLength is in tokens; 0 if the port does not report it.
func (m *Model) ContextLength() int { return m.info.ContextLength }

func (m *Model) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	if r.Final != nil || r.Prompt != nil {
		return nil, &session.RequestError{Param: "final",
			Msg: "a grammar cannot be sent to a server, only a schema"}
	}
	form, err := readForm(r.Schema)
	if err != nil {
		return nil, &session.RequestError{Param: "schema", Msg: err.Error()}
	}
	began := time.Now()
	for {
		body := m.body(r)
		for name := range m.port.unsupported.Range {
			delete(body, name.(string))
		}
		stream, err := m.port.client.Stream(ctx, "/v1/chat/completions", body)
		if err == nil {
			return &turn{ctx: ctx, port: m.port, stream: stream, began: began, form: form}, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, loading := loads(err); loading && m.port.waitUntilLoaded(ctx) && ctx.Err() == nil {
			continue
		}
		if err = m.handleRefusal(err, body); err != nil {
			return nil, err
		}
	}
}

// optional lists the parameters that a turn can do without, and their notices. If a refusal names
// several, the least important is dropped first.
var optional = func() []parameter {
	list := []parameter{{"reasoning_effort", "/effort changes nothing"}, {"stream_options", ""},
		{"max_reasoning_tokens", "--max-reasoning changes nothing"}, {"parallel_tool_calls", ""},
		{"seed", "--seed changes nothing"}}
	for _, n := range slices.Backward(sample.Numbers) {
		list = append(list, parameter{n.Name, "--" + strings.ReplaceAll(n.Name, "_", "-") +
			" changes nothing"})
	}
	return append(list, parameter{"tool_choice", ""}, parameter{"tools",
		"the model has no tools here"})
}()

type parameter struct{ name, effect string }

// ollamaWords are the words with which ollama refuses an effort.
var ollamaWords = strings.NewReplacer("think value", "reasoning_effort", "support thinking",
	"reasoning_effort", "reasoning value", "reasoning_effort")

// handleRefusal records a refused parameter and returns nil, or returns the error if it is another
// one.
func (m *Model) handleRefusal(err error, body map[string]any) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	if isContextError(e) {
		return &contextError{e, sched.ContextLengthError{Max: m.info.ContextLength}}
	}
	if e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return err
	}
	text := ollamaWords.Replace(strings.ToLower(e.Param + " " + e.Message))
	if _, sent := body[formField]; sent && refusesForm(text) {
		return fmt.Errorf("the server refuses the schema, so there is no answer: %w", err)
	}
	for _, o := range optional {
		if _, sent := body[o.name]; !sent || !strings.Contains(text, o.name) {
			continue
		}
		m.port.unsupported.Store(o.name, true)
		if o.effect != "" {
			m.port.reportOnce("the server does not accept " + o.name + ": " + o.effect)
		}
		return nil
	}
	return err
}

// reportOnce reports a message unless it was reported before.
func (p *Port) reportOnce(text string) {
	if _, ok := p.reported.LoadOrStore(text, true); !ok {
		p.report(text)
	}
}

// contextError is the refusal of a request longer than the context. Its text is the port's.
type contextError struct {
	refusal *client.Error
	length  sched.ContextLengthError
}

func (f *contextError) Error() string   { return f.refusal.Error() }
func (f *contextError) Unwrap() []error { return []error{f.refusal, &f.length} }

func isContextError(e *client.Error) bool {
	text := strings.ToLower(e.Code + " " + e.Type + " " + e.Message)
	return e.Status < 500 && (strings.Contains(text, "context_length") ||
		strings.Contains(text, "context length") || strings.Contains(text, "context size") ||
		strings.Contains(text, "context window"))
}

// body is the request in the port's form.
func (m *Model) body(r session.Request) map[string]any {
	p, field := r.Params, m.port.reasoning.Load().(string)
	body := map[string]any{"model": m.info.ID, "messages": messages(r, field),
		"stream": true, "stream_options": map[string]bool{"include_usage": true},
		"seed": p.Seed & 0x7fffffff}
	maps.Copy(body, p.NonDefaults())
	set := func(name string, value any, where bool) {
		if where {
			body[name] = value
		}
	}
	set("max_tokens", r.MaxTokens, r.MaxTokens > 0)
	set("max_reasoning_tokens", r.MaxReasoning, r.MaxReasoning > 0)
	set("reasoning_effort", r.Effort, r.Effort != "")
	set("stop", r.Stop, len(r.Stop) > 0)
	set("store", false, r.InMemory && m.port.owner == "ossrun")
	set("return_progress", true, r.Progress &&
		slices.Contains([]string{"ossrun", "llamacpp"}, m.port.owner))
	set(formField, map[string]any{"type": "json_schema", "json_schema": map[string]any{
		"name": "answer", "strict": true, // no port may enforce only a part
		"schema": r.Schema}}, len(r.Schema) > 0)
	if tools := callableTools(r); len(tools) > 0 {
		body["tools"] = tools
		set("tool_choice", toolChoice(r.ToolChoice), toolChoice(r.ToolChoice) != "")
	}
	return body
}

type raw = json.RawMessage

const formField = "response_format"

// readForm reads a schema; nil for none.
func readForm(text json.RawMessage) (*jsonschema.Resolved, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("an answer could not be checked against it: %w", err)
	}
	return r, nil
}

// CheckSchema tells why a schema cannot be used.
func CheckSchema(text json.RawMessage) error {
	_, err := readForm(text)
	return err
}

// refusesForm tells whether a lower-case refusal is about the form.
func refusesForm(text string) bool {
	return slices.ContainsFunc([]string{formField, "schema", "grammar", "structured output"},
		func(word string) bool { return strings.Contains(text, word) })
}

// check validates a complete answer against its form; nil is free text.
func check(form *jsonschema.Resolved, answer string) error {
	if form == nil {
		return nil
	}
	var value any
	err := json.Unmarshal([]byte(answer), &value)
	if err == nil {
		err = form.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("the answer does not match the schema, which the server accepted and "+
			"ignored: %w", err)
	}
	return nil
}

// ShowsSchema tells whether the port puts the schema into the prompt, as ossrun's does.
func (p *Port) ShowsSchema() bool { return p.owner == "ossrun" }

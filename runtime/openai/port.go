// Package openai is the HTTP port: OpenAI's chat completions, responses and models, Anthropic's
// messages and Ollama's chat over one session, with health, version and metrics beside them.
//
// The port is thin. It reads a request into session.Request, starts a turn, and writes the turn's
// events in the form the client expects; what a turn is, which tools it may call and how its tokens
// become events is the session's business. What must stay true: any client that follows OpenAI's
// document gets an answer of that document or an error that names the parameter; nothing that was
// asked for is silently left out of the answer's meaning.
package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// Options is what a port is made of.
type Options struct {
	Models  session.Models
	APIKey  string       // "": everybody may ask
	Version string       // of ossrun
	Log     *slog.Logger // nil: no log
	// web origins whose pages may use the port besides those of this machine; "*": all
	Origins []string
	// Hosts are the names and addresses that requests may name besides those of loopback: what the
	// port listens on, and more; "*": all. If one is not loopback's, any address is accepted.
	Hosts   []string
	MaxBody int64 // bytes; 0: 16 MiB
	// MaxTexts bounds the bodies of all unanswered requests together, in bytes; 0: room for
	// MaxWaiting of the largest.
	MaxTexts int64
	// MaxWaiting is how many requests may be read and checked at once; 0: 2048.
	MaxWaiting int
	// Silence is how long a stream may be silent before a heartbeat is sent. 0: 15 s. Agents give
	// up after 300 s.
	Silence time.Duration
	// Interval is how many tokens an event of a stream holds; 0: one, and more where many streams
	// are open.
	Interval int
	// MaxReasoning is session.Request.MaxReasoning of requests that do not name
	// max_reasoning_tokens.
	MaxReasoning int
	// ReasoningContent names the reasoning of chat completions reasoning_content, as older vLLM and
	// DeepSeek do, instead of reasoning.
	ReasoningContent bool
	// AllowLoops is session.Request.AllowLoops of all requests.
	AllowLoops bool
	// Store has the stored responses. It is the caller's to close. nil: the port has its own, in
	// memory.
	Store session.Store
	// IgnoreImages replaces the images of a conversation with a note to the model, instead of
	// refusing them.
	IgnoreImages bool
	// LogPrompts puts the bodies of requests into the log.
	LogPrompts bool
	// Tools makes tools for one turn: those of a kind (ToolBrowser, ToolPython, ToolMCP), and for
	// ToolMCP of the server that the request calls label. If it returns none, there is no back end,
	// and the turn goes on without. The port closes them. nil: no tools of any kind.
	Tools func(kind, label string) ([]session.Tool, error)
	// Ready tells why requests cannot be answered now, for /health. nil: always ready.
	Ready func() error
}

type port struct {
	Options
	pace      *pace
	metrics   *metrics
	jobs      jobs
	kept      keptTools
	gate      session.Gate // of bodies that are read
	preparing atomic.Int64 // requests whose turns have not started
	texts     atomic.Int64 // bytes of bodies that requests hold
	talks     sync.Mutex   // held while a stored conversation is changed
}

// Handler is a port.
type Handler struct {
	http.Handler
	port *port
}

// Close ends what outlives requests: tools that wait for the next response of a conversation.
func (h *Handler) Close() { h.port.kept.close() }

// Preparing is how many requests are read and checked, and have no turn yet.
func (h *Handler) Preparing() int64 { return h.port.preparing.Load() }

// NewHandler makes a port. Every answer of it is JSON, a stream of events, or the metrics' text.
func NewHandler(o Options) *Handler {
	o.Silence, o.MaxBody = cmp.Or(o.Silence, 15*time.Second), cmp.Or(o.MaxBody, standardBody)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 2048)
	o.MaxTexts = cmp.Or(o.MaxTexts, o.MaxBody*int64(o.MaxWaiting))
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Store == nil {
		o.Store = session.NewStore()
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	p := &port{Options: o, pace: &pace{tokens: o.Interval}, kept: keptTools{idle: toolIdle},
		gate: session.NewGate()}
	p.metrics = newMetrics(o.Models, o.Store, p.preparing.Load)
	mux := http.NewServeMux()
	for path, methods := range p.routes() {
		mux.Handle(path, methods)
	}
	return &Handler{p.around(mux), p}
}

// handler answers a request: with the body of a 200, with a fault, or by itself where both are nil.
type handler func(e *exchange, r *http.Request) (any, *fault)

// reading is the handler of a route whose body is an object.
func (p *port) reading(do func(e *exchange, r *http.Request, o *object) (any, *fault)) handler {
	return func(e *exchange, r *http.Request) (any, *fault) {
		o, f := p.readBody(e, r)
		if f != nil {
			return nil, f
		}
		return do(e, r, o)
	}
}

// methods are a path's handlers; GET answers HEAD too, "" every method.
type methods map[string]handler

// routes are the operations by their path.
func (p *port) routes() map[string]methods {
	all := map[string]methods{}
	for _, o := range p.operations() {
		method, path, _ := strings.Cut(o.route, " ")
		if all[path] == nil {
			all[path] = methods{}
		}
		all[path][method] = o.do
	}
	return all
}

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, names := w.(*exchange), []string{r.Method} // port.around has made it
	if r.Method == http.MethodHead {
		names = append(names, http.MethodGet)
	}
	do := m.refuse
	for _, name := range append(names, "") {
		if h := m[name]; h != nil {
			do = h
			break
		}
	}
	switch body, f := do(e, r); {
	case f != nil:
		writeFault(e, f)
	case body != nil:
		writeJSON(e, http.StatusOK, body)
	}
}

// refuse is the handler of the methods that a path has not.
func (m methods) refuse(e *exchange, r *http.Request) (any, *fault) {
	allowed := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	e.Header().Set("Allow", allowed)
	return nil, refusal(http.StatusMethodNotAllowed, "", "method_not_allowed",
		fmt.Sprintf("%s is not possible for %s, only %s", r.Method, r.URL.Path, allowed))
}

const routesHint = "the API is under /v1/: chat/completions, responses, completions, messages, " +
	"models; the chat page is at /"

func refuseRoute(instead string) handler {
	return func(_ *exchange, r *http.Request) (any, *fault) {
		return nil, refusal(http.StatusNotFound, "", "unknown_url",
			fmt.Sprintf("there is no %s %s: %s", r.Method, r.URL.Path, instead))
	}
}

// refuseUpgrade answers those who ask for a WebSocket: by 426 Codex knows at once that it has to
// post (at a 404 it tries seven times).
func refuseUpgrade(e *exchange, r *http.Request) (any, *fault) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return methods{"POST": nil}.refuse(e, r)
	}
	e.Header().Set("Upgrade", "HTTP/1.1")
	return nil, refusal(http.StatusUpgradeRequired, "", "websocket_not_supported",
		"there is no WebSocket here; send the request with POST, and stream true for its events")
}

func (p *port) health(e *exchange, _ *http.Request) (any, *fault) {
	if err := p.Ready(); err != nil {
		e.Header().Set("Retry-After", "1")
		writeJSON(e, http.StatusServiceUnavailable, map[string]string{"status": err.Error()})
		return nil, nil
	}
	return map[string]string{"status": "ok"}, nil
}

func version(v string) handler {
	body := map[string]string{"version": v}
	return func(*exchange, *http.Request) (any, *fault) { return body, nil }
}

func (p *port) showMetrics(e *exchange, r *http.Request) (any, *fault) {
	p.metrics.ServeHTTP(e, r)
	return nil, nil
}

type modelObject struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"` // model
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	MaxModelLen int      `json:"max_model_len"`  // vLLM's name for the context length
	Context     int      `json:"context_length"` // OpenRouter's
	Aliases     []string `json:"aliases"`        // the model's other names
}

func modelNamed(name string, names []string, context int, created int64) modelObject {
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	return modelObject{ID: name, Object: "model", Created: created, OwnedBy: "ossrun",
		MaxModelLen: context, Context: context, Aliases: others}
}

// allModels lists every name of every model.
func (p *port) allModels() []modelObject {
	list := []modelObject{}
	for _, m := range p.Models.List() {
		names := append([]string{m.ID}, m.Aliases...)
		for _, name := range names {
			list = append(list, modelNamed(name, names, m.ContextLength, m.Created))
		}
	}
	return list
}

func (p *port) listModels(*exchange, *http.Request) (any, *fault) {
	return struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", p.allModels()}, nil
}

func (p *port) showModel(_ *exchange, r *http.Request) (any, *fault) {
	id := r.PathValue("id")
	for _, m := range p.allModels() {
		if strings.EqualFold(m.ID, id) {
			return m, nil
		}
	}
	// a request may use names that the list does not have
	runner, err := p.Models.Get(r.Context(), id)
	if err != nil {
		return nil, unavailable(err)
	}
	return modelNamed(id, []string{runner.ID()}, runner.ContextLength(), 0), nil
}

// newID makes an id that nobody else has: 128 random bits.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return prefix + hex.EncodeToString(b[:])
}

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
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// Options is what a port is made of.
type Options struct {
	DriverOptions
	APIKey  string // "": everybody may ask
	Version string // of ossrun
	// web origins whose pages may use the port besides those of this machine; "*": all
	Origins []string
	// Hosts are the names and addresses that requests may name besides those of loopback: what the
	// port listens on, and more; "*": all. If one is not loopback's, any address is accepted.
	Hosts []string
	// Tools makes tools for one turn: those of a kind (ToolBrowser, ToolPython, ToolMCP), and for
	// ToolMCP of the server that the request calls label. If it returns none, there is no back end,
	// and the turn goes on without. The port closes them. nil: no tools of any kind.
	Tools func(kind, label string) ([]session.Tool, error)
	// Ready tells why requests cannot be answered now, for /health. nil: always ready.
	Ready func() error
}

type port struct {
	Options
	driver    *driver
	metrics   *metrics
	tools     *keptTools
	chat      chatAPI
	responses *responsesAPI
	messages  messagesAPI
	ollama    ollamaAPI
}

// Handler is a port.
type Handler struct {
	http.Handler
	port *port
}

// Close ends what outlives requests: tools that wait for the next response of a conversation.
func (h *Handler) Close() { h.port.tools.close() }

// Preparing is how many requests are read and checked, and have no turn yet.
func (h *Handler) Preparing() int64 { return h.port.driver.isPreparing() }

// TakeOver takes up the background responses that other processes have left, until ctx ends.
func (h *Handler) TakeOver(ctx context.Context) { h.port.responses.takeOverAll(ctx) }

// NewHandler makes a port. Every answer of it is JSON, a stream of events, or the metrics' text.
func NewHandler(o Options) *Handler {
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	p := newPort(o)
	mux := http.NewServeMux()
	for path, methods := range p.routes() {
		mux.Handle(path, methods)
	}
	return &Handler{p.around(mux), p}
}

func newPort(o Options) *port {
	d := newDriver(o.DriverOptions)
	o.DriverOptions = d.DriverOptions
	p := &port{Options: o, driver: d, tools: newKeptTools(o.Tools)}
	p.metrics = newMetrics(d.Models, d.Store, d.isPreparing)
	d.count = p.metrics
	p.chat, p.responses = newChatAPI(d, p.tools), newResponsesAPI(d, p.tools)
	p.messages, p.ollama = newMessagesAPI(d), newOllamaAPI(d)
	return p
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

func (p *port) listModels(*exchange, *http.Request) (any, *fault) {
	return struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", p.driver.allModels()}, nil
}

func (p *port) showModel(_ *exchange, r *http.Request) (any, *fault) {
	id := r.PathValue("id")
	for _, m := range p.driver.allModels() {
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

// Package openai is the HTTP port: OpenAI's chat completions, responses and models, Anthropic's
// messages and Ollama's chat over one session, and health, version and metrics.
//
// The port is thin. It reads a request into session.Request, starts a turn, and writes the turn's
// events in the form that the client expects. The session decides what a turn is, which tools it
// may call and how its tokens become events. What must stay true: any client that follows OpenAI's
// document gets an answer of that document or an error that names the parameter; no parameter that
// changes an answer's meaning is ignored silently.
package openai

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/chat"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/messages"
	"github.com/ossrun/ossrun/runtime/openai/ollama"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/quota"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
)

type Options struct {
	answer.Options
	APIKey  string // "": no key is needed
	Version string // of ossrun
	// web origins whose pages may use the port, in addition to this machine's; "*": all
	Origins []string
	// Hosts are the names and addresses that requests may use, in addition to loopback: the
	// listening address, and more; "*": all. If one is not loopback's, any address is accepted.
	Hosts []string
	// OwnUserOnly refuses connections that process.NotePeers has found to be another user's.
	OwnUserOnly bool
	// Tools makes the tools of a kind (of package answer/tools) for one turn; label selects the MCP
	// server. If it returns none, the turn runs without them. The port closes them. nil: no tools
	// of any kind.
	Tools func(kind, label string) ([]session.Tool, error)
	// Offers lists the kinds of built-in tools that Tools makes, and the labels of the MCP servers,
	// for the list of models; nil: none.
	Offers func() (kinds, labels []string)
	// Servers are the configured MCP servers, for the chat page; nil: none.
	Servers  func() []mcp.State
	Sessions *Sessions // shared with clients; nil: none
	// Ready tells why requests cannot be answered now, for /health. nil: always ready.
	Ready func() error
}

type port struct {
	Options
	driver    *answer.Driver
	metrics   *metrics
	tools     *tools.Pool
	chat      chat.API
	responses *responses.API
	messages  messages.API
	ollama    ollama.API
	wrongKeys wrongKeys
	all       http.Handler // every route

	sockets *quota.Shared   // open WebSocket connections
	ending  context.Context // see GiveUp
	end     context.CancelFunc
}

// Handler is a port.
type Handler struct {
	http.Handler
	port *port
}

// Close closes tools that wait for the next response of a conversation, and stores the latest usage
// of named keys.
func (h *Handler) Close() {
	h.port.tools.Close()
	if err := h.port.Keys.Close(); err != nil {
		h.port.Log.Error("what keys have used is not stored", "error", err)
	}
}

// Preparing is the number of requests that are read and checked, and have no turn yet.
func (h *Handler) Preparing() int64 { return h.port.driver.Preparing() }

// Watch notices removed keys until ctx ends.
func (h *Handler) Watch(ctx context.Context) { h.port.Keys.Watch(ctx) }

// TakeOver resumes the batches and background responses of ended processes, until ctx ends.
func (h *Handler) TakeOver(ctx context.Context) { h.port.responses.TakeOver(ctx) }

// GiveUp announces the end of this process: the next one takes batches and responses over, and
// WebSocket connections are closed after their running responses.
func (h *Handler) GiveUp() {
	h.port.responses.GiveUp()
	h.port.end()
}

// Await returns when no background response or batch runs here and no WebSocket is open, or when
// ctx ends.
func (h *Handler) Await(ctx context.Context) {
	h.port.responses.Await(ctx)
	for h.port.sockets.Total() > 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// NewHandler makes a port. Each of its answers is JSON, a stream of events, or the metrics' text.
func NewHandler(o Options) *Handler {
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	p := newPort(o)
	mux := http.NewServeMux()
	for path, methods := range p.routes() {
		mux.Handle(path, methods)
	}
	p.all = p.wrap(mux)
	return &Handler{withVersion(mux, p.all), p}
}

// withVersion serves the routes of /v1 also to clients whose base URL lacks it.
func withVersion(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "/" {
			versioned := r.Clone(r.Context())
			versioned.URL.Path = "/v1" + r.URL.Path
			if _, pattern := mux.Handler(versioned); pattern != "/" {
				r = versioned
			}
		}
		next.ServeHTTP(w, r)
	})
}

func newPort(o Options) *port {
	d := answer.New(o.Options)
	o.Options = d.Options
	p := &port{Options: o, driver: d, tools: tools.NewPool(o.Tools, o.Offers),
		sockets: quota.New("sockets", maxSockets)}
	p.ending, p.end = context.WithCancel(context.Background())
	p.metrics = newMetrics(d.Options, d.Preparing)
	d.Count = p.metrics
	if o.Keys != nil {
		o.Keys.OnRemoval = func(id string) { p.tools.CloseOf(id, "") }
	}
	p.responses = responses.New(d, p.tools,
		func(w http.ResponseWriter, r *http.Request) { p.all.ServeHTTP(w, r) })
	p.chat = chat.New(d, p.tools, p.responses.StoreCompletion)
	p.messages, p.ollama = messages.New(d, p.tools), ollama.New(d)
	return p
}

// methods are a path's handlers; GET answers HEAD too, "" every method.
type methods map[string]answer.Handler

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
	e, names := w.(*answer.Exchange), []string{r.Method} // port.around has made it
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
		answer.WriteFault(e, f)
	case body != nil:
		answer.WriteJSON(e, http.StatusOK, body)
	}
}

// refuse answers methods that the path lacks.
func (m methods) refuse(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	allowed := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	e.Header().Set("Allow", allowed)
	return nil, fields.Refusal(http.StatusMethodNotAllowed, "", "method_not_allowed",
		fmt.Sprintf("method %s is not allowed for %s. Use %s", r.Method, r.URL.Path,
			allowed))
}

// absent are routes of OpenAI's that this server cannot have, with advice.
var absent = map[string]string{
	"realtime":      "gpt-oss has no voice; use /v1/responses with stream true",
	"audio":         "gpt-oss hears and speaks nothing",
	"images":        "gpt-oss makes no images",
	"videos":        "gpt-oss makes no videos",
	"moderations":   "gpt-oss-safeguard judges texts by a policy in its instructions",
	"fine_tuning":   "train elsewhere and serve the adapter with --lora-modules",
	"vector_stores": "put the text into the message, or search with an MCP server",
	"containers":    "code_interpreter of /v1/responses makes and keeps them",
	"assistants":    "use /v1/responses and /v1/conversations",
	"threads":       "use /v1/responses and /v1/conversations",
}

const routesHint = "the API is under /v1/, with chat/completions, responses, completions, " +
	"messages and models; the chat page is at /"

func refuseRoute(hint string) answer.Handler {
	return func(_ *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
		hint := cmp.Or(absent[name], hint)
		return nil, fields.Refusal(http.StatusNotFound, "", "unknown_url",
			fmt.Sprintf("there is no %s %s: %s", r.Method, r.URL.Path, hint))
	}
}

func (p *port) health(e *answer.Exchange, _ *http.Request) (any, *fields.Fault) {
	if err := p.Ready(); err != nil {
		e.Header().Set("Retry-After", "1")
		answer.WriteJSON(e, http.StatusServiceUnavailable, map[string]string{"status": err.Error()})
		return nil, nil
	}
	return map[string]string{"status": "ok"}, nil
}

func version(v string) answer.Handler {
	body := map[string]string{"version": v}
	return func(*answer.Exchange, *http.Request) (any, *fields.Fault) { return body, nil }
}

func (p *port) showMetrics(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p.metrics.ServeHTTP(e, r)
	return nil, nil
}

// modelList is OpenAI's list. Codex, which sends its version, reads the member models instead:
// instructions for each model. It is empty, since Codex knows gpt-oss, and an entry would replace
// Codex's own instructions.
type modelList struct {
	Object   string               `json:"object"`
	Data     []answer.ModelObject `json:"data"`
	Tools    []map[string]string  `json:"tools"` // of this server, named as in a response's tools
	Servers  []mcp.State          `json:"servers,omitempty"`
	Sessions bool                 `json:"sessions,omitempty"` // has /v1/sessions
	MaxBody  int64                `json:"max_body"`           // bytes of a request
	Models   *[]struct{}          `json:"models,omitempty"`
}

// anthropicModel is a model as Anthropic's API lists it.
type anthropicModel struct {
	Type      string    `json:"type"` // model
	ID        string    `json:"id"`
	Name      string    `json:"display_name"`
	CreatedAt time.Time `json:"created_at"`
	Lifecycle string    `json:"lifecycle"` // active
	MaxInput  int       `json:"max_input_tokens"`
	MaxTokens int       `json:"max_tokens"`
}

func isAnthropic(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

func asAnthropic(m answer.ModelObject) anthropicModel {
	return anthropicModel{"model", m.ID, m.ID, time.Unix(m.Created, 0).UTC(), "active", m.Context,
		m.Context}
}

func (p *port) listModels(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	if isAnthropic(r) {
		data, page := []anthropicModel{}, map[string]any{"data": []any{}, "has_more": false}
		for _, m := range p.driver.AllModels(e) {
			data = append(data, asAnthropic(m))
			page["data"], page["first_id"], page["last_id"] = data, data[0].ID, m.ID
		}
		return page, nil
	}
	list := modelList{Object: "list", Data: p.driver.AllModels(e), Tools: []map[string]string{},
		Sessions: p.Sessions != nil, MaxBody: p.driver.MaxBody}
	if p.Offers != nil {
		kinds, labels := p.Offers()
		for _, kind := range kinds {
			list.Tools = append(list.Tools, map[string]string{"type": map[string]string{
				tools.Browser: "web_search", tools.Python: "code_interpreter"}[kind]})
		}
		for _, label := range labels {
			list.Tools = append(list.Tools, map[string]string{"type": tools.MCP,
				"server_label": label})
		}
	}
	if p.Servers != nil {
		list.Servers = p.Servers()
	}
	if r.URL.Query().Has("client_version") {
		list.Models = &[]struct{}{}
	}
	return list, nil
}

// showProps is what llama.cpp's page asks for before it lets anyone write. It offers efforts where
// a template names the variable that turns reasoning off.
func (p *port) showProps(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	runner, err := p.driver.FindModel(r.Context(), e, r.URL.Query().Get("model"))
	if err != nil {
		return nil, answer.Unavailable(err)
	}
	return map[string]any{"model_alias": runner.ID(), "chat_template": "{{ enable_thinking }}",
		"default_generation_settings": map[string]any{"n_ctx": runner.ContextLength()},
		"modalities":                  map[string]bool{"vision": false, "audio": false}}, nil
}

func (p *port) showModel(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	id := r.PathValue("id")
	if id == "" { // the list's path with a slash
		return p.listModels(e, r)
	}
	all := p.driver.AllModels(e)
	i := slices.IndexFunc(all, func(m answer.ModelObject) bool {
		return strings.EqualFold(m.ID, id)
	})
	if i < 0 { // a request may use names that are not in the list
		runner, err := p.driver.FindModel(r.Context(), e, id)
		if err != nil {
			return nil, answer.Unavailable(err)
		}
		i, all = 0, []answer.ModelObject{answer.NewModelObject(id, []string{runner.ID()},
			runner.ContextLength(), 0)}
	}
	if isAnthropic(r) {
		return asAnthropic(all[i]), nil
	}
	return all[i], nil
}

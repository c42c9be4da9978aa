// Package openai is the HTTP port: OpenAI's chat completions, responses and models over one
// session, with health, version and metrics beside them.
//
// The port is thin. It reads a request into session.Request, starts a turn, and writes the turn's
// events in the form the client expects; what a turn is, which tools it may call and how its tokens
// become events is the session's business. What must stay true: any client that follows OpenAI's
// document gets an answer of that document or an error that names the parameter; nothing that was
// asked for is silently left out of the answer's meaning.
package openai

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// Options is what a port is made of.
type Options struct {
	Models  session.Models
	APIKey  string       // "": everybody may ask
	Version string       // of ossrun
	Log     *slog.Logger // nil: no log
	// web origins that may read the answers besides those of this machine; "*": all
	Origins []string
	// Silence is how long a stream may be silent before a heartbeat is sent. 0: 15 s. Agents give
	// up after 300 s.
	Silence time.Duration
	// Interval is how many tokens an event of a stream holds; 0: one, and more where many streams
	// are open.
	Interval int
	// MaxReasoning is session.Request.MaxReasoning of requests that do not name
	// max_reasoning_tokens.
	MaxReasoning int
	// Store has the stored responses. It is the caller's to close. nil: the port has its own, in
	// memory.
	Store session.Store
	// Ready tells why requests cannot be answered now, for /health. nil: always ready.
	Ready func() error
}

type port struct {
	models  session.Models
	key     string
	version string
	log     *slog.Logger
	origins []string
	silence time.Duration
	ready   func() error
	pace    *pace
	bound   int // MaxReasoning
	store   session.Store
	metrics *metrics
}

// NewHandler is the port. Every answer of it is JSON, a stream of events, or the metrics' text.
func NewHandler(o Options) http.Handler {
	p := &port{models: o.Models, key: o.APIKey, version: o.Version, log: o.Log, origins: o.Origins,
		silence: o.Silence, ready: o.Ready, bound: o.MaxReasoning,
		pace:  &pace{tokens: o.Interval},
		store: o.Store, metrics: newMetrics(o.Models)}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.silence == 0 {
		p.silence = 15 * time.Second
	}
	if p.store == nil {
		p.store = session.NewStore()
	}
	if p.ready == nil {
		p.ready = func() error { return nil }
	}
	mux := http.NewServeMux()
	for path, methods := range p.routes() {
		mux.Handle(path, methods)
	}
	return p.around(mux)
}

// methods are a path's handlers; GET answers HEAD too.
type methods map[string]http.HandlerFunc

func (p *port) routes() map[string]methods {
	return map[string]methods{
		"/v1/chat/completions": {"POST": p.answering(p.readChat)},
		"/v1/responses":        {"POST": p.answering(p.readResponses)},
		"/v1/responses/{id}":   {"GET": p.storedResponse, "DELETE": p.deleteResponse},
		"/v1/models":           {"GET": p.listModels},
		"/v1/models/{id...}":   {"GET": p.showModel},
		"/v1/completions":      {"POST": p.answering(p.readCompletion)},
		"/v1/embeddings":       {"POST": refuseRoute("gpt-oss makes no embeddings")},
		"/health":              {"GET": p.health},
		"/version":             {"GET": p.showVersion},
		"/metrics":             {"GET": p.metrics.ServeHTTP},
		"/": {"": refuseRoute("the API is under /v1/: chat/completions, " +
			"responses, completions, models")},
	}
}

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h := m[method]; h != nil {
		h(w, r)
		return
	}
	if h := m[""]; h != nil {
		h(w, r)
		return
	}
	var allowed []string
	for name := range m {
		allowed = append(allowed, name)
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeFault(w, &fault{status: http.StatusMethodNotAllowed, kind: kindInvalid,
		code: "method_not_allowed",
		message: fmt.Sprintf("%s is not possible for %s, only %s", r.Method, r.URL.Path,
			strings.Join(allowed, ", "))})
}

func refuseRoute(instead string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		writeFault(w, &fault{status: http.StatusNotFound, kind: kindInvalid, code: "unknown_url",
			message: fmt.Sprintf("there is no %s %s: %s", r.Method, r.URL.Path, instead)})
	}
}

func (p *port) health(w http.ResponseWriter, _ *http.Request) {
	if err := p.ready(); err != nil {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (p *port) showVersion(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"version": p.version})
}

type modelObject struct {
	ID          string `json:"id"`
	Object      string `json:"object"` // model
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"` // vLLM's name for the context length
}

// allModels lists every name of every model.
func (p *port) allModels() []modelObject {
	list := []modelObject{}
	for _, m := range p.models.List() {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			list = append(list, modelObject{ID: name, Object: "model", Created: m.Created,
				OwnedBy: "ossrun", MaxModelLen: m.ContextLength})
		}
	}
	return list
}

func (p *port) listModels(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", p.allModels()})
}

func (p *port) showModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	for _, m := range p.allModels() {
		if strings.EqualFold(m.ID, id) {
			writeJSON(w, http.StatusOK, m)
			return
		}
	}
	writeFault(w, faultOf(fmt.Errorf("%w %q", session.ErrUnknownModel, id), ""))
}

// newID makes an id that nobody else has: 128 random bits.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return prefix + hex.EncodeToString(b[:])
}

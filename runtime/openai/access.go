// What every request passes through: its id, who may ask (origin.go), its body's limits (body.go),
// the log line, and the handling of panics.
//
// Each request gets one log line when it is over: its id, route, status, number of tokens and
// duration.

package openai

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// exchange is the ResponseWriter that every handler gets. It keeps what the log line needs.
type exchange struct {
	http.ResponseWriter
	path    string
	id      string
	status  int
	usage   session.Usage
	fault   string // why it failed
	ignored string // parts of the request that have no effect
	relaxed string // schemas that are not enforced, and why
	// parsed tells that the request was read and checked, prepared that its turns have started
	parsed, prepared func()
	released         func() // gives back what limitBody has counted

	writing sync.Mutex
	pulse   string // what clients skip between two writes of the answer, or "" (half_open.go)
}

func (e *exchange) WriteHeader(status int) {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.status == 0 {
		e.status = status
	}
	if strings.HasPrefix(e.Header().Get("Content-Type"), "text/event-stream") {
		e.pulse = ": keep-alive\n\n"
	}
	e.ResponseWriter.WriteHeader(status)
}

func (e *exchange) Write(b []byte) (int, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.status == 0 {
		e.status = http.StatusOK
	}
	return e.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController calls.
func (e *exchange) FlushError() error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return http.NewResponseController(e.ResponseWriter).Flush()
}

// ping writes the pulse; it fails where nobody can read it.
func (e *exchange) ping() error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.pulse == "" {
		return nil
	}
	control := http.NewResponseController(e.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(patience)) // some writers have no deadline
	if _, err := e.ResponseWriter.Write([]byte(e.pulse)); err != nil {
		return err
	}
	return control.Flush()
}

// beat sets the pulse, "" when the answer is over.
func (e *exchange) beat(pulse string) {
	e.writing.Lock()
	e.pulse = pulse
	e.writing.Unlock()
}

// Unwrap lets http.ResponseController find the connection.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// tell puts a text for the client into a header, and returns it for the log.
func (e *exchange) tell(header, text string) string {
	text = brief(text)
	if text != "" {
		e.Header().Set(header, strings.Map(printable, text))
	}
	return text
}

// printable replaces characters that must not be in a header's value.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// around is the outermost handler.
func (p *port) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &exchange{ResponseWriter: w, path: r.URL.Path, parsed: func() {}, prepared: func() {},
			released: func() {}}
		start := time.Now()
		if c, ok := r.Context().Value(halfOpenKey{}).(*halfOpen); ok {
			c.begin(e, r)
			defer c.end()
		}
		defer e.beat("")
		defer func() { e.prepared() }()
		defer func() { e.released() }()
		defer func() {
			if x := recover(); x != nil {
				if x == http.ErrAbortHandler {
					p.logLine(r, e, time.Since(start))
					panic(x)
				}
				p.Log.Error("the handler panicked", "path", r.URL.Path, "panic", x, "stack",
					string(debug.Stack()))
				if e.status == 0 {
					writeFault(e, failure(http.StatusInternalServerError, kindServer,
						"internal error"))
				}
			}
			p.logLine(r, e, time.Since(start))
		}()
		e.id = requestID(r)
		r.Header.Set("X-Request-Id", e.id) // for those who have the request only
		e.Header().Set("X-Request-Id", e.id)
		if strings.HasPrefix(e.path, "/v1/messages") {
			e.Header().Set("Request-Id", e.id) // Anthropic's
		}
		// an earlier request on this connection may have left its deadline
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		e.released = p.limitBody(w, r)
		if f := p.admit(r); f != nil {
			writeFault(e, f)
			return
		}
		allowOrigin(e.Header(), r)
		if preflight(r) {
			e.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(e, r)
	})
}

// requestID is the client's own, if it can stand in a header and a log, or a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 128 || strings.Map(printable, id) != id {
		return newID("req_")
	}
	return id
}

func (p *port) logLine(r *http.Request, e *exchange, took time.Duration) {
	level := slog.LevelInfo
	if e.status >= 500 && r.URL.Path != "/health" && r.URL.Path != "/ready" { // no error
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("id", e.id), slog.String("method", r.Method),
		slog.String("path", r.URL.Path),
		slog.Int("status", e.status),
		slog.Int("prompt_tokens", e.usage.Prompt), slog.Int("cached_tokens", e.usage.Cached),
		slog.Int("completion_tokens", e.usage.Completion), slog.Int64("ms", took.Milliseconds())}
	for _, a := range []slog.Attr{slog.String("error", e.fault), slog.String("ignored", e.ignored),
		slog.String("relaxed", e.relaxed)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	p.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

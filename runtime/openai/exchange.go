// One request and its answer on the connection: what handlers write to, and what the log line says
// of it when it is over.

package openai

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// exchange is the ResponseWriter that every handler gets. It keeps what the log line needs.
type exchange struct {
	http.ResponseWriter
	id        string
	faultBody func(f *fault, id string) any // as the client reads it
	status    int
	usage     session.Usage
	fault     string // why it failed
	ignored   string // parts of the request that have no effect
	relaxed   string // schemas that are not enforced, and why
	// parsed tells that the request was read and checked, prepared that its turns have started
	parsed, prepared func()
	released         func() // gives back what limitBody has counted
}

func newExchange(w http.ResponseWriter, id string, faultBody func(*fault, string) any) *exchange {
	return &exchange{ResponseWriter: w, id: id, faultBody: faultBody, parsed: func() {},
		prepared: func() {}, released: func() {}}
}

func (e *exchange) WriteHeader(status int) {
	if e.status == 0 {
		e.status = status
	}
	e.ResponseWriter.WriteHeader(status)
}

func (e *exchange) Write(b []byte) (int, error) {
	if e.status == 0 {
		e.status = http.StatusOK
	}
	return e.ResponseWriter.Write(b)
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

func (d *driver) logLine(r *http.Request, e *exchange, took time.Duration) {
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
	d.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// writeFault answers with an error. If the headers of a whole answer are sent already (sse.go),
// it cuts the connection.
func writeFault(e *exchange, f *fault) {
	e.fault = brief(f.message)
	if e.status != 0 {
		panic(http.ErrAbortHandler)
	}
	if f.retryAfter > 0 {
		e.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if f.status == http.StatusUnauthorized {
		e.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(e, f.status, e.faultBody(f, e.id))
}

// writeJSON writes one whole answer. A failed write is ignored: the client is gone.
func writeJSON(e *exchange, status int, v any) {
	_ = http.NewResponseController(e).SetWriteDeadline(time.Now().Add(patience)) // or there is none
	b, err := marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError,
			[]byte(`{"error":{"message":"the answer could not be encoded",`+
				`"type":"server_error","param":null,"code":null}}`)
		e.fault = err.Error()
	}
	if e.status == 0 {
		h := e.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(b)+1))
		e.WriteHeader(status)
	}
	_, _ = e.Write(append(b, '\n'))
}

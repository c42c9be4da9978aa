// One request and its answer on the connection: the writer of handlers, and the values of the log
// line.

package answer

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Exchange is the ResponseWriter that every handler gets. It keeps what the log line needs.
type Exchange struct {
	http.ResponseWriter
	ID        string
	Client    string                               // owner of its cached prompts; "": this machine
	Key       *keys.Client                         // nil: it has no named key
	faultBody func(f *fields.Fault, id string) any // in the client's form
	Status    int
	Usage     session.Usage
	Fault     *fields.Fault // nil: it did not fail
	share     *sched.Share  // of all turns of the request
	budget    *keys.Budget  // nil: its key has none
	// Background: it is of a batch
	Background bool
	ignored    []string // parts of the request that have no effect
	relaxed    []string // schemas that are not enforced, and why
	// endReading marks the request as read and checked, EndPreparing its turns as started
	endReading, EndPreparing func()
	Release                  func() // subtracts the bytes that LimitBody has counted
}

// NewExchange begins an exchange; faultBody makes the body of a fault.
func NewExchange(w http.ResponseWriter, id string, faultBody func(*fields.Fault,
	string) any) *Exchange {
	return &Exchange{ResponseWriter: w, ID: id, faultBody: faultBody, endReading: func() {},
		EndPreparing: func() {}, Release: func() {}}
}

func (e *Exchange) WriteHeader(status int) {
	e.Status = cmp.Or(e.Status, status)
	e.ResponseWriter.WriteHeader(status)
}

func (e *Exchange) Write(b []byte) (int, error) {
	e.Status = cmp.Or(e.Status, http.StatusOK)
	e.endReading() // the client may read slowly
	return e.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection.
func (e *Exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// LimitCache limits a turn's prefix cache to the client and the salt of its request, so that it
// cannot name another client's. All turns of the request have one share of the machine.
func (e *Exchange) LimitCache(r *session.Request) {
	if e.share == nil {
		e.share = &sched.Share{Client: e.Client, Background: e.Background}
	}
	r.Share = e.share
	if e.budget == nil {
		e.budget = e.Key.Budget()
	}
	if e.budget != nil {
		r.Budget = e.budget
	}
	if e.Client != "" || r.Salt != "" {
		r.Salt = e.Client + "\n" + r.Salt
	}
}

// Admit counts a request that is about to generate, unless its key's limit is reached.
func (e *Exchange) Admit() *fields.Fault {
	retryAfter, why := e.Key.Admit()
	if why == "" {
		return nil
	}
	return fields.FaultOf(&session.LimitError{Reason: why, RetryAfter: retryAfter}, "")
}

// SetHeader puts a text for the client into a header.
func (e *Exchange) SetHeader(header, text string) {
	if text != "" {
		e.Header().Set(header, strings.Map(Printable, text))
	}
}

// Printable replaces characters that must not be in a header's value.
func Printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch, http.MethodDelete, http.MethodOptions}

// LogRequest counts the usage of a finished request and logs it: its route and kind of fault, and
// none of the client's text, which may hold prompts or keys, unless prompts are logged anyway.
func (d *Driver) LogRequest(r *http.Request, e *Exchange, took time.Duration) {
	e.Key.Count(e.Usage, e.budget)
	level := slog.LevelInfo
	if e.Status >= 500 && r.URL.Path != "/health" && r.URL.Path != "/ready" { // no error
		level = slog.LevelError
	}
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "-"
	}
	attrs := []slog.Attr{slog.String("id", e.ID), slog.String("method", method),
		slog.String("path", cmp.Or(r.Pattern, "-")),
		slog.Int("status", e.Status),
		slog.Int("prompt_tokens", e.Usage.Prompt), slog.Int("cached_tokens", e.Usage.Cached),
		slog.Int("completion_tokens", e.Usage.Completion), slog.Int64("ms", took.Milliseconds())}
	if name := e.Key.KeyName(); name != "" {
		attrs = append(attrs, slog.String("key", name))
	}
	if e.Fault != nil {
		attrs = append(attrs, slog.String("error", e.Fault.Logged(d.LogPrompts)))
	}
	if len(e.ignored) > 0 {
		attrs = append(attrs, slog.Int("ignored", len(e.ignored)))
	}
	if len(e.relaxed) > 0 {
		attrs = append(attrs, slog.Int("relaxed", len(e.relaxed)))
	}
	d.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// defaultRetryAfter is the delay before a retry while the server cannot answer, in seconds.
const defaultRetryAfter = 2

// WriteFault answers with an error. If the headers of a full answer were sent already (sse.go), it
// cuts the connection.
func WriteFault(e *Exchange, f *fields.Fault) {
	e.Fault = f
	if e.Status != 0 {
		panic(http.ErrAbortHandler)
	}
	retryAfter := f.RetryAfter
	if retryAfter == 0 && f.Status == http.StatusServiceUnavailable {
		retryAfter = defaultRetryAfter
	}
	if retryAfter > 0 {
		e.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if f.Status == http.StatusUnauthorized {
		e.Header().Set("WWW-Authenticate", "Bearer")
	}
	WriteJSON(e, f.Status, e.faultBody(f, e.ID))
}

// ErrKeyRemoved ends the requests of a removed key.
var ErrKeyRemoved = fields.Refusal(http.StatusUnauthorized, "", "invalid_api_key",
	"this API key was removed")

// WriteJSON writes one full answer. A failed write is ignored: the client is gone.
func WriteJSON(e *Exchange, status int, v any) {
	_ = http.NewResponseController(e).SetWriteDeadline(time.Now().Add(WriteTimeout)) // best effort
	b, err := Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError,
			[]byte(`{"error":{"message":"the answer could not be encoded",`+
				`"type":"server_error","param":null,"code":null}}`)
		e.Fault = fields.Failure(status, fields.KindServer, err.Error())
	}
	if e.Status == 0 {
		h := e.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(b)+1))
		e.WriteHeader(status)
	}
	_, _ = e.Write(append(b, '\n'))
}

// Marshal is json.Marshal that leaves <, > and & readable.
func Marshal(v any) (json.RawMessage, error) { return harmony.Marshal(v) }

// What every request passes through: the check of the API key, the headers for browsers, the log
// line, and the handling of panics.
//
// Each request gets one log line when it is over: its route, status, number of tokens and duration.

package openai

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// exchange is the ResponseWriter that every handler gets. It keeps what the log line needs.
type exchange struct {
	http.ResponseWriter
	status  int
	usage   session.Usage
	fault   string // why it failed
	ignored string // parts of the request that have no effect
	relaxed string // schemas that are not enforced, and why
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

// tell puts what the client should know into a header; what it returns is for the log.
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
		e := &exchange{ResponseWriter: w}
		start := time.Now()
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
		p.allowOrigin(e, r)
		switch {
		case r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "":
			e.WriteHeader(http.StatusNoContent) // a browser's preflight request
		case !p.authorized(r):
			writeFault(e, refusal(http.StatusUnauthorized, "", "invalid_api_key",
				"missing or wrong API key: send it as Authorization: Bearer KEY"))
		default:
			next.ServeHTTP(e, r)
		}
	})
}

func (p *port) logLine(r *http.Request, e *exchange, took time.Duration) {
	level := slog.LevelInfo
	if e.status >= 500 && r.URL.Path != "/health" { // its 503 is no error
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("method", r.Method), slog.String("path", r.URL.Path),
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

// authorized checks the key of everything under /v1/. Health and metrics stay open for probes.
func (p *port) authorized(r *http.Request) bool {
	if p.APIKey == "" || !strings.HasPrefix(r.URL.Path, "/v1/") {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(key))), sha256.Sum256([]byte(p.APIKey))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// allowOrigin lets web pages on this machine, and those of the configured origins, read the
// answers.
func (p *port) allowOrigin(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	allowed := localOrigin(origin) || slices.Contains(p.Origins, origin) ||
		slices.Contains(p.Origins, "*")
	if !allowed {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Ossrun-Ignored, X-Ossrun-Relaxed, "+
		truncatedHeader)
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", cmp.Or(
			r.Header.Get("Access-Control-Request-Headers"), "Authorization, Content-Type"))
		h.Set("Access-Control-Max-Age", "600")
	}
}

// localOrigin tells whether a page was served from this machine.
func localOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil &&
		ip.IsLoopback()
}

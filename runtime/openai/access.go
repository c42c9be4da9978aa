// What every request passes through: the check of the API key, the headers for browsers, the log
// line, and the handling of panics.
//
// Each request gets one log line when it is over: its route, status, number of tokens and duration.

package openai

import (
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
	fault   string
	ignored string
	relaxed string
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

func noteError(w http.ResponseWriter, message string) {
	if e, ok := w.(*exchange); ok {
		e.fault = message
	}
}

func noteUsage(w http.ResponseWriter, u session.Usage) {
	if e, ok := w.(*exchange); ok {
		e.usage = u
	}
}

// noteIgnored tells the client and the log which parts of the request have no effect.
func noteIgnored(w http.ResponseWriter, what []string) {
	list := noteHeader(w, "X-Ossrun-Ignored",
		strings.Join(slices.Compact(slices.Sorted(slices.Values(what))), ", "))
	if e, ok := w.(*exchange); ok {
		e.ignored = list
	}
}

// noteRelaxed tells the client and the log which schemas are not enforced, and why.
func noteRelaxed(w http.ResponseWriter, what []string) {
	list := noteHeader(w, "X-Ossrun-Relaxed", strings.Join(what, "; "))
	if e, ok := w.(*exchange); ok {
		e.relaxed = list
	}
}

func noteHeader(w http.ResponseWriter, name, text string) string {
	text = brief(text)
	if text != "" {
		w.Header().Set(name, strings.Map(printable, text))
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
				p.log.Error("the handler panicked", "path", r.URL.Path, "panic", x, "stack",
					string(debug.Stack()))
				if e.status == 0 {
					writeFault(e, &fault{status: http.StatusInternalServerError, kind: kindServer,
						code: kindServer, message: "internal error"})
				}
			}
			p.logLine(r, e, time.Since(start))
		}()
		p.allowOrigin(e, r)
		switch {
		case r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "":
			e.WriteHeader(http.StatusNoContent) // a browser's preflight request
		case !p.authorized(r):
			writeFault(e, &fault{status: http.StatusUnauthorized, kind: kindInvalid,
				code:    "invalid_api_key",
				message: "missing or wrong API key: send it as Authorization: Bearer KEY"})
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
	if e.fault != "" {
		attrs = append(attrs, slog.String("error", e.fault))
	}
	if e.ignored != "" {
		attrs = append(attrs, slog.String("ignored", e.ignored))
	}
	if e.relaxed != "" {
		attrs = append(attrs, slog.String("relaxed", e.relaxed))
	}
	p.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// authorized checks the key of everything under /v1/. Health and metrics stay open for probes.
func (p *port) authorized(r *http.Request) bool {
	if p.key == "" || !strings.HasPrefix(r.URL.Path, "/v1/") {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(key))), sha256.Sum256([]byte(p.key))
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
	if !localOrigin(origin) && !slices.Contains(p.origins, origin) && !slices.Contains(p.origins,
		"*") {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Ossrun-Ignored, X-Ossrun-Relaxed")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		asked := r.Header.Get("Access-Control-Request-Headers")
		if asked == "" {
			asked = "Authorization, Content-Type"
		}
		h.Set("Access-Control-Allow-Headers", asked)
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

// Steps of every request: its id, its key, its body's limits (body.go), the log line, and the
// handling of panics.
//
// Each request gets one log line at its end: its id, route, status, number of tokens and duration.
// Pages of any site can make a browser send requests to this machine. What must stay true: a
// request for a name that is not this server's is refused (a site could point its own name at
// 127.0.0.1); a page's request is refused unless its origin is this machine or was allowed; a page
// cannot send JSON under another type, which browsers send without a preflight.

package openai

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/openai/messages"
	"github.com/ossrun/ossrun/runtime/openai/ollama"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process"
)

func faultBodyOf(path string) func(f *fields.Fault, id string) any {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		return messages.FaultBody
	case strings.HasPrefix(path, "/api/"):
		return ollama.FaultBody
	}
	return fields.OpenAIFault
}

func (p *port) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := answer.NewExchange(w, p.requestID(r), faultBodyOf(r.URL.Path))
		start := time.Now()
		defer func() { e.EndPreparing() }()
		defer func() { e.Release() }()
		defer func() {
			if x := recover(); x != nil {
				if x == http.ErrAbortHandler {
					p.driver.LogRequest(r, e, time.Since(start))
					panic(x)
				}
				p.Log.Error("the handler panicked", "path", r.Pattern, "panic", x, "stack",
					string(debug.Stack()))
				if e.Status == 0 {
					answer.WriteFault(e, fields.Failure(http.StatusInternalServerError,
						fields.KindServer, "internal error"))
				}
			}
			p.driver.LogRequest(r, e, time.Since(start))
		}()
		r.Header.Set("X-Request-Id", e.ID) // for code that only has the request
		e.Header().Set("X-Request-Id", e.ID)
		if strings.HasPrefix(r.URL.Path, "/v1/messages") {
			e.Header().Set("Request-Id", e.ID) // Anthropic's
		}
		if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
			// its Content-Length, which net/http ignores, may have meant another end to a proxy
			e.Header().Set("Connection", "close")
		}
		// an earlier request on this connection may have left its deadline
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		e.Release = p.driver.LimitBody(w, r)
		if f := p.admit(e, r); f != nil {
			answer.WriteFault(e, f)
			return
		}
		if !e.Background {
			e.Client = p.client(e, r)
		}
		ctx, release := e.Key.Bind(r.Context(), answer.ErrKeyRemoved)
		defer release()
		r = r.WithContext(ctx)
		allowOrigin(e.Header(), r)
		if isPreflight(r) {
			e.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(e, r)
	})
}

// anyKey is how makers' keys begin; task-1 is none.
var anyKey = regexp.MustCompile(`(^|[^A-Za-z0-9])sk-`)

// requestID is the client's own, if it is valid in a header and a log and is no key, or a new one.
func (p *port) requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	isKey := anyKey.MatchString(id) || strings.Contains(id, keys.Prefix) ||
		p.APIKey != "" && strings.Contains(id, p.APIKey)
	if id == "" || len(id) > 128 || strings.Map(answer.Printable, id) != id || isKey {
		return answer.NewID("req_")
	}
	return id
}

// keylessPaths are the paths that need no key: probes have none, and the page asks for it. They
// name no model, file or request.
var keylessPaths = []string{"/", "/docs", "/openapi.json", "/health", "/ready", "/version",
	"/api/version"}

// admit returns why a request is refused before its body is read, nil if it is admitted.
func (p *port) admit(e *answer.Exchange, r *http.Request) *fields.Fault {
	origin, peer := r.Header.Get("Origin"), process.PeerOf(r.Context())
	if e.Client, e.Background = responses.OwnerOfBatch(r.Context()); e.Background {
		if e.Key = p.Keys.Owner(e.Client); e.Key == nil && keys.IsID(e.Client) {
			return answer.ErrKeyRemoved
		}
		return nil
	}
	switch {
	case p.OwnUserOnly && peer != nil && !peer.Ours:
		return fields.Refusal(http.StatusForbidden, "", "user_not_allowed", "this server serves "+
			"the programs of its own user; start it with a key or with --any-user to use it")
	case !p.isKnownHost(r):
		return fields.Refusal(http.StatusForbidden, "", "host_not_allowed", "the request is for "+
			fields.Brief(r.Host)+", which is not a name of this server; to allow it, start the "+
			"server with --allowed-hosts "+fields.Brief(hostName(r.Host)))
	case origin != "" && !p.isAllowedOrigin(origin, r.Host):
		return fields.Refusal(http.StatusForbidden, "", "origin_not_allowed", "pages of "+
			fields.Brief(origin)+" may not use this server; --allowed-origins allows them")
	case origin != "" && r.Method == http.MethodPost && !isJSON(r):
		return fields.Refusal(http.StatusUnsupportedMediaType, "", "unsupported_media_type",
			"a page must send its request as Content-Type: application/json")
	case !isPreflight(r) && !p.authorized(e, r):
		return fields.Refusal(http.StatusUnauthorized, "", "invalid_api_key",
			"missing or wrong API key: send it as Authorization: Bearer KEY")
	case r.URL.Path == "/metrics" && e.Key != nil && !e.Key.Admin:
		return fields.Refusal(http.StatusForbidden, "", "admin_required",
			"this key may not read the metrics: they tell of all clients")
	}
	return nil
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// isKnownHost tells whether the request uses one of the server's names. A name can be pointed
// anywhere by its owner; an IP address that reached this socket is the socket's own. A page that
// does so has no key, so a server with one takes any name.
func (p *port) isKnownHost(r *http.Request) bool {
	if p.needsKey() {
		return true
	}
	host := hostName(r.Host)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if host == "" || local != nil && local.Network() == "unix" || isLoopback(host) ||
		slices.Contains(containerHosts, strings.ToLower(host)) {
		return true
	}
	opened := slices.ContainsFunc(p.Hosts, func(name string) bool { return !isLoopback(name) })
	_, err := netip.ParseAddr(host)
	return err == nil && opened || slices.ContainsFunc(p.Hosts, func(name string) bool {
		return name == "*" || strings.EqualFold(hostName(name), host)
	})
}

// containerHosts are this machine's names in containers of Docker and Podman. They cannot exist in
// the public DNS, so a page cannot point one at this machine.
var containerHosts = []string{"host.docker.internal", "host.containers.internal"}

// hostName is a host without its port, brackets and final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

func isLoopback(host string) bool {
	host = strings.ToLower(hostName(host))
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		err == nil && ip.Unmap().IsLoopback()
}

// isAllowedOrigin tells whether a page may use the server: one of this machine, of the server
// itself, or of the configured origins.
func (p *port) isAllowedOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
	return web && (isLoopback(u.Host) || strings.EqualFold(u.Host, host)) ||
		slices.Contains(p.Origins, origin) || slices.Contains(p.Origins, "*")
}

func (p *port) needsKey() bool { return p.APIKey != "" || p.Keys.NeedsKey() }

// authorized checks the key, in OpenAI's header or in Anthropic's.
func (p *port) authorized(e *answer.Exchange, r *http.Request) bool {
	if !p.needsKey() || slices.Contains(keylessPaths, r.URL.Path) {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		key = r.Header.Get("X-Api-Key")
	}
	if key = strings.TrimSpace(key); key == "" {
		return false
	}
	got, want := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(p.APIKey))
	e.Key = p.Keys.Find(key)
	if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && p.APIKey != "" || e.Key != nil {
		return true
	}
	p.refuseKey(r)
	return false
}

// client names the client of a request, for its shares and its records: a named key, else another
// user of this machine, else another machine. "" is the operator: the user of this process, root,
// and the bearer of the server's API key.
func (p *port) client(e *answer.Exchange, r *http.Request) string {
	peer := process.PeerOf(r.Context())
	switch {
	case e.Key != nil:
		return e.Key.ID
	case p.APIKey != "" || peer != nil && peer.Ours:
		return ""
	case peer != nil && peer.Local:
		return fmt.Sprint("user ", peer.User)
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	switch local := err != nil || from.Addr().Unmap().IsLoopback(); { // err: of a Unix socket
	case local && peer == nil:
		return ""
	case local:
		return "user unknown" // its end is closed already
	}
	return from.Addr().Unmap().WithZone("").String()
}

// allowOrigin lets the admitted page read the answer.
func allowOrigin(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers",
		"Retry-After, X-Ossrun-Ignored, X-Ossrun-Loop, X-Ossrun-Relaxed, "+
			responses.TruncatedHeader+", X-Request-Id")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", cmp.Or(
			r.Header.Get("Access-Control-Request-Headers"), "Authorization, Content-Type"))
		h.Set("Access-Control-Max-Age", "600")
	}
}

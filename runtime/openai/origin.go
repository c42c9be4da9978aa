// Who may speak to the port: the name that a request calls it by, the web page it comes from, and
// its key.
//
// A page of any site can make a browser send requests to this machine. What must stay true: a
// request for a name that is not this server's is refused (a site could point its own name at
// 127.0.0.1); a page's request is refused unless its origin is this machine or was allowed; a page
// cannot send JSON as another type, which browsers send without asking first.

package openai

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// open are the paths that need no key: probes and scrapers have none, and the page asks for it.
var open = []string{"/", "/docs", "/openapi.json", "/health", "/ready", "/version", "/api/version",
	"/metrics"}

// admit returns why a request is refused before it is read, nil if it is admitted.
func (p *port) admit(r *http.Request) *fault {
	origin := r.Header.Get("Origin")
	switch {
	case !p.knowsHost(r):
		return refusal(http.StatusForbidden, "", "host_not_allowed", "the request is for "+
			brief(r.Host)+", which is not a name of this server; --allowed-hosts adds names")
	case origin != "" && !p.knowsOrigin(origin, r.Host):
		return refusal(http.StatusForbidden, "", "origin_not_allowed", "pages of "+brief(origin)+
			" may not use this server; --allowed-origins allows them")
	case origin != "" && r.Method == http.MethodPost && !isJSON(r):
		return refusal(http.StatusUnsupportedMediaType, "", "unsupported_media_type",
			"a page must send its request as Content-Type: application/json")
	case !preflight(r) && !p.authorized(r):
		return refusal(http.StatusUnauthorized, "", "invalid_api_key",
			"missing or wrong API key: send it as Authorization: Bearer KEY")
	}
	return nil
}

func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// knowsHost tells whether the request calls the server by one of its names. A name's owner can
// point it anywhere; an IP address that reached this socket is the socket's own.
func (p *port) knowsHost(r *http.Request) bool {
	host := hostName(r.Host)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if host == "" || local != nil && local.Network() == "unix" || isLoopback(host) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && p.opened() || slices.ContainsFunc(p.Hosts, func(name string) bool {
		return name == "*" || strings.EqualFold(hostName(name), host)
	})
}

// opened tells whether the port listens beyond loopback.
func (p *port) opened() bool {
	return slices.ContainsFunc(p.Hosts, func(name string) bool { return !isLoopback(name) })
}

// hostName is a host without its port, its brackets and the dot that may end it.
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

// knowsOrigin tells whether a page may use the server: one of this machine, of the server itself,
// or of the configured origins.
func (p *port) knowsOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
	return web && (isLoopback(u.Host) || strings.EqualFold(u.Host, host)) ||
		slices.Contains(p.Origins, origin) || slices.Contains(p.Origins, "*")
}

// authorized checks the key, in OpenAI's header or in Anthropic's.
func (p *port) authorized(r *http.Request) bool {
	if p.APIKey == "" || slices.Contains(open, r.URL.Path) {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		key = r.Header.Get("X-Api-Key")
	}
	got, want := sha256.Sum256([]byte(strings.TrimSpace(key))), sha256.Sum256([]byte(p.APIKey))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// allowOrigin lets the page that was admitted read the answer.
func allowOrigin(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers",
		"Retry-After, X-Ossrun-Ignored, X-Ossrun-Loop, X-Ossrun-Relaxed, "+
			truncatedHeader+", X-Request-Id")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", cmp.Or(
			r.Header.Get("Access-Control-Request-Headers"), "Authorization, Content-Type"))
		h.Set("Access-Control-Max-Age", "600")
	}
}

// The server for which a secret was given, named by scheme, host and port of its address.
//
// What must stay true: a server cannot forward a secret to another server, for example by a
// redirect.

package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// SameOrigin tells whether two addresses are of one server: same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) &&
		port(a) == port(b)
}

// SameServer is SameOrigin for addresses in the form of New.
func SameServer(a, b string) bool {
	first, err := address(a)
	second, secondErr := address(b)
	return err == nil && secondErr == nil && SameOrigin(first, second)
}

const maxRedirects = 10

// Redirect is an http.Client's CheckRedirect. A redirect to another server is followed without the
// key and user of the first address, and a redirect's own user is never used.
func Redirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("it was redirected %d times", maxRedirects)
	case first.Scheme == "https" && r.URL.Scheme != "https":
		return errors.New("it redirects to an address without encryption: " + r.URL.Redacted())
	}
	if r.URL.User = first.User; !SameOrigin(r.URL, first) {
		r.URL.User = nil
		r.Header.Del("Authorization") // Go keeps it for other ports and subdomains of a host
	}
	return nil
}

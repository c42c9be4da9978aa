// Whom a secret is for: the server that it was given for, which its address names up to the path.
//
// What must stay true: a server cannot pass on to another what it is sent in secret, by redirects
// for one.

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

// OneServer is SameOrigin for addresses as New takes them.
func OneServer(a, b string) bool {
	first, err := address(a)
	second, other := address(b)
	return err == nil && other == nil && SameOrigin(first, second)
}

const mostRedirects = 10

// Redirect is an http.Client's CheckRedirect. It follows without the key and the user of the first
// address where another server is meant, and never with the user that a redirect names.
func Redirect(r *http.Request, before []*http.Request) error {
	first := before[0].URL
	switch {
	case len(before) >= mostRedirects:
		return fmt.Errorf("it was redirected %d times", mostRedirects)
	case first.Scheme == "https" && r.URL.Scheme != "https":
		return errors.New("it redirects to an address without encryption: " + r.URL.Redacted())
	}
	if r.URL.User = first.User; !SameOrigin(r.URL, first) {
		r.URL.User = nil
		r.Header.Del("Authorization") // Go sends it to other ports of a host, and below its name
	}
	return nil
}

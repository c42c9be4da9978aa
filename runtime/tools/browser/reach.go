// The part of the web that a request may reach: a client can forbid live access, or allow some
// domains only.
//
// What must stay true: searches, pages and their redirects all keep to it.

package browser

import (
	"fmt"
	"net/url"
	slashes "path"
	"slices"
	"strings"
)

// reach is what may be reached; the zero value is everything.
type reach struct {
	offline     bool // only pages that the conversation has already
	only, never []string
	results     int // of a search, unless the model names a number; 0: defaultHits
}

// Limit bounds the next calls. offline leaves the pages that were opened before; only and never are
// domains, with those below them, and may have a path; nil: all, none. results is how many a search
// shows, 0 for the default.
func (t *Tool) Limit(offline bool, only, never []string, results int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reach = reach{offline, only, never, results}
}

// refuses returns why an address may not be reached, nil if it may.
func (r reach) refuses(u *url.URL) error {
	within := func(domain string) bool { return isWithin(u, domain) }
	switch {
	case r.offline:
		return errOffline
	case r.only != nil && !slices.ContainsFunc(r.only, within):
		return fmt.Errorf("this request allows pages of %s only", strings.Join(r.only, ", "))
	case slices.ContainsFunc(r.never, within):
		return fmt.Errorf("this request allows no pages of %s", u.Hostname())
	}
	return nil
}

var errOffline = fmt.Errorf("this request allows no live access to the web; read the pages that " +
	"were opened before, or answer without")

// isWithin tells whether an address is of a domain such as example.com or example.com/blog.
func isWithin(u *url.URL, domain string) bool {
	if _, rest, has := strings.Cut(domain, "://"); has {
		domain = rest
	}
	host, path, _ := strings.Cut(strings.ToLower(domain), "/")
	host, path = strings.Trim(host, "."), strings.TrimSuffix(path, "/")
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	is := host != "" && (name == host || strings.HasSuffix(name, "."+host) ||
		strings.EqualFold(u.Host, host))
	page := strings.TrimPrefix(slashes.Clean("/"+strings.ToLower(u.Path)), "/")
	if start, end, wild := strings.Cut(path, "*"); wild { // Anthropic's form: one, in the path
		return is && strings.HasPrefix(page, start) && strings.Contains(page[len(start):], end)
	}
	return is && (path == "" || page == path || strings.HasPrefix(page, path+"/"))
}

func (r reach) allowed(hits []Hit) []Hit {
	return slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool {
		u, err := absolute(h.URL)
		return err != nil || r.refuses(u) != nil
	})
}

// opened is the latest page of this address that the conversation has, nil if there is none.
func (t *Tool) opened(address string) *page {
	for _, p := range slices.Backward(t.views) {
		if p.url == address && p.lines != nil {
			return p
		}
	}
	return nil
}

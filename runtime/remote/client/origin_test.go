package client

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A redirect to the same server keeps the key; to another, or another port of its host, it does
// not, and the user in a redirect is never sent.
func TestKeyStaysWithItsServer(t *testing.T) {
	var heard []string
	there := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Header.Get("Authorization"))
	}))
	defer there.Close()
	to := ""
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/moved" {
			heard = append(heard, r.Header.Get("Authorization"))
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	for target, want := range map[string]string{"/v1/moved": "Bearer secret",
		c.Root() + "/v1/moved": "Bearer secret",
		strings.Replace(c.Root(), "//", "//planted:word@", 1) + "/v1/moved": "Bearer secret",
		there.URL: "",
		strings.Replace(there.URL, "127.0.0.1", "localhost", 1):         "",
		strings.Replace(there.URL, "127.0.0.1", "x:y@sub.localhost", 1): "",
		strings.Replace(there.URL, "//", "//planted:word@", 1):          ""} {
		to, heard = target, nil
		if err := c.Call(t.Context(), "POST", "/v1/x", map[string]int{"a": 1}, nil); err != nil &&
			!strings.Contains(err.Error(), "sub.localhost") {
			t.Errorf("%s: %v", target, err)
		}
		for _, h := range heard {
			if h != want {
				t.Errorf("%s has heard %q", target, h)
			}
		}
	}
	to = "/v1/endless"
	if err := c.Call(t.Context(), "GET", "/v1/x", nil, nil); err == nil ||
		!strings.Contains(err.Error(), "redirected 10 times") {
		t.Error(err)
	}
}

func TestRedirectKeepsEncryption(t *testing.T) {
	for target, refused := range map[string]bool{"http://h/": true, "https://h/": false,
		"https://other/": false, "http://u:p@h/": true} {
		r, before := httptest.NewRequest("GET", target, nil), httptest.NewRequest("GET",
			"https://h/", nil)
		if err := Redirect(r, []*http.Request{before}); (err != nil) != refused ||
			err != nil && strings.Contains(err.Error(), ":p@") {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"http://h", "http://h:80/x"}: true, {"https://H", "https://h:443"}: true,
		{"http://h", "https://h"}: false, {"http://h:1", "http://h:2"}: false,
		{"http://h", "http://sub.h"}: false, {"http://a:b@h/x", "http://h/y?z"}: true,
		{"http://[::1]:8", "http://[::1]:8"}: true, {"http://h", "http://h.evil"}: false,
	} {
		a, _ := url.Parse(pair[0])
		b, _ := url.Parse(pair[1])
		if got := SameOrigin(a, b); got != want {
			t.Errorf("%q: %v", pair, got)
		}
	}
}

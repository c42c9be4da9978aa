// The chat page as a browser gets it; what it does is tested in Chromium (.ci/steps/page).

package openai

import (
	"regexp"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	srv, _ := server(t, answers("ok"), func(o *Options) { o.APIKey = "secret" })
	r := ask(t, "GET", srv.URL+"/", "")
	policy := r.header.Get("Content-Security-Policy")
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") ||
		!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Fatalf("%d %v", r.status, r.header)
	}
	if n := len(regexp.MustCompile(`'sha256-[\w+/]{43}='`).FindAllString(policy, -1)); n != 2 {
		t.Errorf("%d hashes in %s", n, policy)
	}
	for _, tag := range []string{"<script", "<style"} {
		if n := strings.Count(r.body, tag); n != 1 {
			t.Errorf("%s stands %d times in the page, its policy allows one", tag, n)
		}
	}
	for _, outside := range []string{"innerHTML =", "insertAdjacentHTML", "document.write",
		"eval(", `src="http`, "@import", "//cdn"} {
		if strings.Contains(r.body, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	if r := ask(t, "GET", srv.URL+"/v1/models", ""); r.status != 401 {
		t.Errorf("what the page asks for needs no key: %d", r.status)
	}
	if r := ask(t, "GET", srv.URL+"/", "", "Origin", "https://example.org"); r.status != 403 {
		t.Errorf("a foreign page may read it: %d", r.status)
	}
}

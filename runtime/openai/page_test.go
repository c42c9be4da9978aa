// The chat page as a browser gets it; what it does is tested in Chromium (.ci/steps/page).

package openai_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestPage(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) { o.APIKey = "secret" })
	r := porttest.Ask(t, "GET", srv.URL+"/", "")
	policy := r.Header.Get("Content-Security-Policy")
	if r.Status != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Fatalf("%d %v", r.Status, r.Header)
	}
	if n := len(regexp.MustCompile(`'sha256-[\w+/]{43}='`).FindAllString(policy, -1)); n != 2 {
		t.Errorf("%d hashes in %s", n, policy)
	}
	for _, tag := range []string{"<script", "<style"} {
		if n := strings.Count(r.Body, tag); n != 1 {
			t.Errorf("%s stands %d times in the page, its policy allows one", tag, n)
		}
	}
	for _, outside := range []string{"innerHTML =", "insertAdjacentHTML", "document.write",
		"eval(", `src="http`, "@import", "//cdn"} {
		if strings.Contains(r.Body, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	if r := porttest.Ask(t, "GET", srv.URL+"/v1/models", ""); r.Status != 401 {
		t.Errorf("what the page asks for needs no key: %d", r.Status)
	}
	if r := porttest.Ask(t, "GET", srv.URL+"/", "", "Origin", "https://example.org"); r.Status != 403 {
		t.Errorf("a foreign page may read it: %d", r.Status)
	}
}

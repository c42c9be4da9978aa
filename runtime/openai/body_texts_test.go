// The text of all requests together has a limit.

package openai

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What runs counts, also behind a client that has left; what has ended does not.
func TestTextsTogetherAreBounded(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			gate := make(chan struct{})
			srv, model := server(t, slowly(gate), func(o *Options) { o.MaxTexts = 100_000 })
			large := fmt.Sprintf(`{"input":%q,"background":%t}`, strings.Repeat("x", 60_000),
				background)
			first := make(chan reply, 1)
			go func() { first <- ask(t, "POST", srv.URL+"/v1/responses", large) }()
			eventually(t, func() (int, bool) { return model.active(), model.active() == 1 })
			refused := ask(t, "POST", srv.URL+"/v1/responses", large)
			if refused.status != http.StatusTooManyRequests ||
				refused.header.Get("Retry-After") == "" {
				t.Errorf("beside another one: status %d: %s", refused.status, refused.body)
			}
			post(t, srv, "/v1/responses", `{"input":"small","background":true}`)
			close(gate)
			if r := <-first; r.status != http.StatusOK {
				t.Errorf("the first: status %d: %s", r.status, r.body)
			}
			eventually(t, func() (int, bool) {
				r := ask(t, "POST", srv.URL+"/v1/responses", large)
				return r.status, r.status == http.StatusOK
			})
			eventually(t, func() (int, bool) { return model.active(), model.active() == 0 })
		})
	}
}

// Millions of small items are refused before each is read for itself.
func TestPromptsOfMillionsOfItems(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	for item, want := range map[string]string{`7`: "1048576 items", `"a"`: "1024 items",
		`[7]`: "1024 items"} {
		list := strings.Repeat(item+",", 2<<20) + item
		r := ask(t, "POST", srv.URL+"/v1/completions", `{"prompt":[`+list+`]}`)
		wantFault(t, r, http.StatusBadRequest, kindInvalid, "prompt", "", want)
	}
	for _, wrong := range []string{`[null]`, `[7,200000000]`, `[7,1.5]`, `[7,"a"]`, `[]`} {
		if r := ask(t, "POST", srv.URL+"/v1/completions", `{"prompt":`+wrong+`}`); r.status != 400 {
			t.Errorf("%s: status %d: %s", wrong, r.status, r.body)
		}
	}
}

// The text of all requests together has a limit.

package answer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Running requests count, even if their client has disconnected; ended ones do not.
func TestTextsTogetherAreBounded(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			gate := make(chan struct{})
			srv, model := porttest.Server(t, porttest.Slowly(gate),
				func(o *openai.Options) { o.MaxBodies = 100_000 })
			large := fmt.Sprintf(`{"input":%q,"background":%t}`, strings.Repeat("x", 60_000),
				background)
			first := make(chan porttest.Reply, 1)
			go func() { first <- porttest.Ask(t, "POST", srv.URL+"/v1/responses", large) }()
			porttest.Eventually(t, func() (int, bool) {
				return model.Active(),
					model.Active() == 1
			})
			refused := porttest.Ask(t, "POST", srv.URL+"/v1/responses", large)
			if refused.Status != http.StatusTooManyRequests ||
				refused.Header.Get("Retry-After") == "" {
				t.Errorf("beside another one: status %d: %s", refused.Status, refused.Body)
			}
			porttest.Post(t, srv, "/v1/responses", `{"input":"small","background":true}`)
			close(gate)
			if r := <-first; r.Status != http.StatusOK {
				t.Errorf("the first: status %d: %s", r.Status, r.Body)
			}
			porttest.Eventually(t, func() (int, bool) {
				r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", large)
				return r.Status, r.Status == http.StatusOK
			})
			porttest.Eventually(t, func() (int, bool) {
				return model.Active(),
					model.Active() == 0
			})
		})
	}
}

// Millions of small items are refused before each is read for itself.
func TestPromptsOfMillionsOfItems(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for item, want := range map[string]string{`7`: "1048576 items", `"a"`: "1024 items",
		`[7]`: "1024 items"} {
		list := strings.Repeat(item+",", 2<<20) + item
		r := porttest.Ask(t, "POST", srv.URL+"/v1/completions", `{"prompt":[`+list+`]}`)
		porttest.WantFault(t, r, http.StatusBadRequest, fields.KindInvalid, "prompt", "", want)
	}
	for _, wrong := range []string{`[null]`, `[7,200000000]`, `[7,1.5]`, `[7,"a"]`, `[]`} {
		if r := porttest.Ask(t, "POST", srv.URL+"/v1/completions", `{"prompt":`+wrong+`}`); r.Status != 400 {
			t.Errorf("%s: status %d: %s", wrong, r.Status, r.Body)
		}
	}
}

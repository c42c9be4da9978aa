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
		})
	}
}

// Whatever bytes come to whatever route, the answer is one of the route's own or a fault of the
// client in the route's form, and every turn that was started is followed to its end.

package openai_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func FuzzRoutes(f *testing.F) {
	runner := &sessiontest.Model{Script: sessiontest.Agent}
	store := records.NewStore()
	o := openai.Options{Options: answer.Options{Models: sessiontest.Single(runner, runner.Now, "gpt-oss:20b"),
		Store: store, MaxBody: 1 << 20}}
	h := openai.NewHandler(o)
	var routes []string
	for path, m := range openai.Routes() {
		for _, method := range slices.Sorted(slices.Values(m)) {
			if method != "" && path != "/metrics" {
				path = strings.NewReplacer("{id...}", "x", "{id}", "x", "{item}", "y", "{$}", "").
					Replace(path)
				routes = append(routes, method+" "+path)
			}
		}
	}
	slices.Sort(routes)
	bodies := []string{`{}`, `null`, `[1]`, `{"items":[null]}`, `{"input":[null]}`, `{"input":"hi","background":true}`,
		`{"model":"gpt-oss:20b","prompt":[[1,2],[3]],"n":2,"stream":true}`,
		`{"model":"gpt-oss:20b","max_tokens":9,"messages":[{"role":"user","content":"a"}],` +
			`"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
		`{"messages":[{"role":"user","content":"a"}],"stream":true,"n":3,"logprobs":true}`,
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}],"stream":true}`,
		`{"items":[{"role":"user","content":"a"}],"metadata":{"a":"b"}}`,
		`{"model":"gpt-oss:20b","tokens":[1,2,3]}`, `{"input":"hi","stream":true,"store":false}`,
		`{"conversation":"x","previous_response_id":"y","input":[{"type":"item_reference"}]}`}
	for i := range routes {
		for _, b := range bodies {
			f.Add(uint8(i), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		method, path, _ := strings.Cut(routes[int(route)%len(routes)], " ")
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(string(body)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		text := w.Body.String()
		switch {
		case w.Code < 200 || w.Code > 499:
			t.Errorf("%s %s: %d %s", method, path, w.Code, text)
		case w.Code >= 400:
			m := porttest.Decode(t, text)
			if porttest.At(m, "error", "message") == nil && m["error"] == nil {
				t.Errorf("%s %s: %d %s", method, path, w.Code, text)
			}
		case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
			porttest.Events(t, text)
		case w.Header().Get("Content-Type") == "application/json":
			porttest.Decode(t, text)
		}
		if path == "/v1/responses" && w.Code == http.StatusOK { // it may be in the background
			porttest.Eventually(t, func() (any, bool) { return nil, runner.Active() == 0 })
		}
	})
}

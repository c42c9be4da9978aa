package openai_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// brokenConnection takes the headers and nothing else, while the request lives on.
type brokenConnection struct{ header http.Header }

func (c brokenConnection) Header() http.Header       { return c.header }
func (c brokenConnection) WriteHeader(int)           {}
func (c brokenConnection) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
func (c brokenConnection) FlushError() error         { return errors.New("broken pipe") }

// A stream that cannot be written is no fault of the model, and what it cost is counted.
func TestStreamsWhoseWriteFailsAreCounted(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[` + porttest.Hello + `],"stream":true}`,
		"/v1/completions":      `{"prompt":"x","stream":true}`,
		"/v1/responses":        `{"input":"x","stream":true}`,
		"/v1/messages":         `{"max_tokens":9,"stream":true,"messages":[` + porttest.Hello + `]}`,
		"/api/chat":            `{"model":"gpt-oss-20b","messages":[` + porttest.Hello + `]}`,
	} {
		f := &sessiontest.Model{Script: porttest.Slowly(nil)}
		h := porttest.NewChecked(t, openai.Options{Options: answer.Options{
			Models: sessiontest.Single(f, f.Now)}})
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(brokenConnection{http.Header{}}, r)
		metrics := httptest.NewRecorder()
		r = httptest.NewRequest("GET", "/metrics", nil)
		r.Host = "localhost"
		h.ServeHTTP(metrics, r)
		h.Close()
		for _, want := range []string{
			`vllm:request_success_total{finished_reason="` + string(session.FinishCancelled) +
				`",model_name="gpt-oss-20b"} 1`,
			`vllm:prompt_tokens_total{model_name="gpt-oss-20b"} 40`,
		} {
			if !strings.Contains(metrics.Body.String(), want+"\n") {
				t.Errorf("%s: missing %s", path, want)
			}
		}
	}
}

func TestCompactingIsCounted(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("They spoke of Paris."))
	porttest.Post(t, srv, "/v1/responses/compact", `{"model":"gpt-oss:20b","input":"Paris?"}`)
	body := porttest.Ask(t, "GET", srv.URL+"/metrics", "").Body
	for _, want := range []string{
		`vllm:request_success_total{finished_reason="stop",model_name="gpt-oss-20b"} 1`,
		`vllm:generation_tokens_total{model_name="gpt-oss-20b"} 12`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
}

package openai_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Every route that takes a model takes Ollama's full form of its names; no other name is taken.
func TestNamesOfOllama(t *testing.T) {
	f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
		o.Options = answer.Options{Models: sessiontest.Single(f, f.Now, "gpt-oss:20b", "mine:1")}
	})
	const chat = `,"messages":[` + porttest.Hello + `]`
	bodies := map[string]string{
		"/v1/chat/completions": chat, "/v1/completions": `,"prompt":"a"`,
		"/v1/responses": `,"input":"a"`, "/v1/responses/input_tokens": `,"input":"a"`,
		"/v1/responses/compact":     `,"input":"a"`,
		"/v1/messages":              chat + `,"max_tokens":9`,
		"/v1/messages/count_tokens": chat, "/api/chat": chat, "/api/generate": `,"prompt":"a"`,
		"/api/show": ``, "/api/pull": ``, "/tokenize": `,"prompt":"a"`,
	}
	for _, o := range openai.Document() {
		if !slices.ContainsFunc(o.Body, func(p openai.Parameter) bool { return p.Name == "model" }) {
			continue
		}
		route := strings.TrimPrefix(o.Route, "POST ")
		body, listed := bodies[route]
		if !listed {
			t.Errorf("%s takes a model and has no body here", route)
		}
		for name, want := range map[string]int{"gpt-oss:20b": 200, "library/gpt-oss:20b": 200,
			"Library/GPT-OSS:20b:Latest": 200, "registry.ollama.ai/library/mine:1": 200,
			"mine:1:latest": 200, "mine": 404, "library/other": 404, "other:latest": 404,
			"my/gpt-oss:20b": 404} {
			r := porttest.Ask(t, "POST", srv.URL+route, fmt.Sprintf(`{"model":%q%s}`, name, body))
			if r.Status != want {
				t.Errorf("%s, %s: %d, %s", route, name, r.Status, r.Body)
			}
			if want == 404 && !strings.Contains(r.Body, name) {
				t.Errorf("%s: %s is not named: %s", route, name, r.Body)
			}
		}
	}
	for name, want := range map[string]int{"library/gpt-oss:20b": 200, "mine:1:latest": 200,
		"library/other:latest": 404} {
		if r := porttest.Ask(t, "GET", srv.URL+"/v1/models/"+name, ""); r.Status != want {
			t.Errorf("%s: %d, %s", name, r.Status, r.Body)
		}
	}
}

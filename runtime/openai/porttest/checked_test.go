// The checks of every answer find its faults.

package porttest

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryServerIsChecked(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == "scripttest": // its servers are for others' clients
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if files++; e.Name() != "fuzz_routes_test.go" && e.Name() != "checked_test.go" &&
			bytes.Contains(text, []byte("openai.NewHandler(")) {
			t.Errorf("%s makes a handler whose answers nobody checks: NewChecked", file)
		}
		return err
	})
	if err != nil || files < 40 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestCheckFindsFaults(t *testing.T) {
	event := func(data string) string { return "data: " + data + "\n\n" }
	chat := func(delta, finish string) string {
		return event(`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m",` +
			`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`)
	}
	text := func(finish, more string) string {
		return event(`{"id":"x","object":"text_completion","created":1,"model":"m","choices":[` +
			`{"index":0,"text":"a","logprobs":null,"finish_reason":` + finish + `}]` + more + `}`)
	}
	const role, spent = `{"role":"assistant","content":""}`, `{"id":"x","object":` +
		`"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1,` +
		`"completion_tokens":1,"total_tokens":2}}`
	done, asked := event("[DONE]"), `,"usage":null`
	for _, c := range []struct {
		path, body string
		good       bool
	}{
		{"/v1/models", `{"object":"list"}`, false},
		{"/v1/chat/completions", event(`{"id":"x"}`), false},
		{"/v1/chat/completions", chat(role, "null") + chat(`{}`, `"stop"`) + done, true},
		{"/v1/chat/completions", chat(role, "null") + chat(`{}`, `"stop"`), false},
		{"/v1/chat/completions", chat(`{}`, "null") + chat(`{}`, `"stop"`) + done, false},
		{"/v1/chat/completions", chat(role, "null") + chat(role, `"stop"`) + done, false},
		{"/v1/chat/completions", chat(role, "null") + done, false},
		{"/v1/chat/completions", chat(role, `"stop"`) + chat(`{}`, `"stop"`) + done, false},
		{"/v1/completions", text("null", "") + text(`"stop"`, "") + done, true},
		{"/v1/completions", text("null", "") + done, false},
		{"/v1/completions", text("null", asked) + text(`"stop"`, asked) + event(spent) + done, true},
		{"/v1/completions", text("null", asked) + text(`"stop"`, asked) + done, false},
		{"/v1/completions", text("null", asked) + event(spent) + text(`"stop"`, asked) + done, false},
		{"/v1/completions", text("null", "") + text(`"stop"`, "") + event(spent) + done, false},
		{"/v1/completions", text(`"stop"`, `,"object":"chat"`) + done, false},
		{"/v1/messages", "event: message_stop\n" + event("{}"), false},
		{"/v1/responses", "event: response.created\n" + event("{}"), false},
		{"/api/chat", `{"done":true}` + "\n" + `{"done":false}` + "\n", false},
		{"/v1/completions", `{"id":"x","object":"text_completion","created":1,"model":"m",` +
			`"choices":[]}`, true},
		{"/v1/completions", `{"id":"x","object":"text_completion","created":1,"model":"m"}`, false},
		{"/v1/completions", `{"id":"x","object":"text_completion","created":1,"model":"m",` +
			`"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":3}}`, false},
		{"/v1/completions", `{"id":"x","object":"text_completion","created":1,"model":"m",` +
			`"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,` +
			`"prompt_tokens_details":{"cached_tokens":2}}}`, false},
	} {
		kind := "application/json"
		if strings.Contains(c.body, "data: ") {
			kind = "text/event-stream"
		} else if strings.HasPrefix(c.path, "/api/") {
			kind = "application/x-ndjson"
		}
		w := &headerOnly{h: http.Header{"Content-Type": {kind}}}
		a := &keptAnswer{ResponseWriter: w, status: http.StatusOK}
		a.body.WriteString(c.body)
		if faults := faultsOf("POST", c.path, a); (faults == nil) != c.good {
			t.Errorf("%s %s: %q", c.path, c.body, faults)
		}
	}
}

type headerOnly struct{ h http.Header }

func (w *headerOnly) Header() http.Header { return w.h }

func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }

func (w *headerOnly) WriteHeader(int) {}

func TestValidatorFindsFaults(t *testing.T) {
	for _, c := range []struct{ schema, body string }{
		{"Model", `{"id":"x","object":"model","created":1}`},
		// owned_by missing
		{"Model", `{"id":"x","object":"modell","created":1,"owned_by":"y"}`},            // enum
		{"Model", `{"id":"x","object":"model","created":1.5,"owned_by":"y"}`},           // integer
		{"ErrorResponse", `{"error":{"message":"m","type":"t","param":1,"code":null}}`}, // union
		{"CreateCompletionResponse", `{"id":"x","object":"text_completion","created":1,` +
			`"model":"m","choices":[{"index":0,"text":"","logprobs":null}]}`}, // no finish_reason
		{"CreateCompletionStreamResponse", `{"id":"x","object":"text_completion","created":1,` +
			`"model":"m","choices":[{"index":0,"text":"","logprobs":{"top_logprobs":[[]]},` +
			`"finish_reason":null}]}`},
		{"OutputItem", `{"type":"web_search_call","id":"x"}`},
		// a kind the port never writes
	} {
		if err := fits(Schemas()[c.schema], Decode(t, c.body), c.schema); err == nil {
			t.Errorf("%s: %s fits", c.schema, c.body)
		}
	}
}

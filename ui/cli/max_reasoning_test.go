// serve --max-reasoning-tokens and --reasoning-field over HTTP: the one bounds the requests that do
// not say themselves, the other names what comes.

package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestServeNamesReasoning(t *testing.T) {
	s := serveDemo(t, "--reasoning-field", "reasoning_content")
	for _, stream := range []string{"false", "true"} {
		r, err := s.web.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(
			`{"model":"demo","temperature":0,"messages":[{"role":"user","content":"Hello"}],`+
				`"stream":`+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(b), `"reasoning_content":"`) ||
			strings.Contains(string(b), `"reasoning":`) {
			t.Errorf("stream %s: %s, %v", stream, b, err)
		}
	}
}

func TestServeBoundsReasoning(t *testing.T) {
	s := serveDemo(t, "--max-reasoning-tokens", "3")
	words := func(field string) int {
		body := `{"model":"demo","temperature":0,"max_tokens":300,"messages":[{"role":"user","content":"What is the capital of France?"}]` + field + `}`
		r, err := s.web.Post(s.url+"/v1/chat/completions", "application/json",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var answer struct {
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct{ Reasoning, Content string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil ||
			r.StatusCode != http.StatusOK || len(answer.Choices) != 1 {
			t.Fatalf("%q: status %d, %v", field, r.StatusCode, err)
		}
		c := answer.Choices[0]
		if c.Message.Content == "" || c.Finish != "stop" {
			t.Errorf("%q: the answer is %q, the end %s", field, c.Message.Content, c.Finish)
		}
		return len(strings.Fields(c.Message.Reasoning))
	}
	if n := words(""); n < 1 || n > 3 {
		t.Errorf("the flag's bound of 3 tokens let %d words through", n)
	}
	if n := words(`,"max_reasoning_tokens":0`); n != 0 {
		t.Errorf("a request without reasoning has %d words of it", n)
	}
	if n := words(`,"max_reasoning_tokens":-1`); n <= 3 {
		t.Errorf("a request without a bound has %d words of reasoning", n)
	}
}

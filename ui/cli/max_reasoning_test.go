// serve --max-reasoning-tokens and --reasoning-field over HTTP: the first bounds requests without a
// bound of their own, the other names the field.

package cli

import (
	"strings"
	"testing"
)

func TestServeNamesAndBoundsReasoning(t *testing.T) {
	t.Parallel()
	s := serveDemo(t, "--reasoning-field", "reasoning_content", "--max-reasoning-tokens", "3")
	for _, stream := range []string{"false", "true"} {
		r, text := s.send("POST", "/v1/chat/completions", `{"model":"demo","temperature":0,`+
			`"messages":[{"role":"user","content":"Hello"}],"stream":`+stream+`}`)
		if r.StatusCode != 200 || !strings.Contains(text, `"reasoning_content":"`) ||
			strings.Contains(text, `"reasoning":`) {
			t.Errorf("stream %s: %s", stream, text)
		}
	}
	words := func(field string) int {
		t.Helper()
		var answer struct {
			Choices []struct {
				Finish  string `json:"finish_reason"`
				Message struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
				}
			}
		}
		s.post("/v1/chat/completions", `{"model":"demo","temperature":0,"max_tokens":300,`+
			`"messages":[{"role":"user","content":"What is the capital of France?"}]`+field+`}`, &answer)
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

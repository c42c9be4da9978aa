package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/kv"
)

// Anthropic's max_tokens: 0 computes the prompt and samples nothing: the next request with this
// prompt finds it cached, and one that begins alike finds the part.
func TestMaxTokensOfZeroFillsTheCache(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	system := t.Name() + strings.Repeat(" You are a careful assistant.", 60)
	type reply struct {
		Content []any
		Reason  string `json:"stop_reason"`
		Usage   struct {
			InputTokens  int `json:"input_tokens"`
			OutputTokens int `json:"output_tokens"`
			Cached       int `json:"cache_read_input_tokens"`
		}
	}
	ask := func(limit int, question, further string) (r reply) {
		s.post("/v1/messages", fmt.Sprintf(`{"model":"demo","max_tokens":%d,"system":%q,`+
			`"messages":[{"role":"user","content":%q}]%s}`, limit, system, question, further), &r)
		return r
	}
	first := ask(0, "warm", "")
	if u := first.Usage; first.Content == nil || len(first.Content) > 0 ||
		first.Reason != "max_tokens" || u.OutputTokens != 0 || u.InputTokens < 300 {
		t.Errorf("%+v", first)
	}
	if u := ask(0, "warm", `,"thinking":{"type":"enabled","budget_tokens":1024}`).Usage; u.OutputTokens != 0 {
		t.Errorf("with thinking: %+v", u)
	}
	if u := ask(1, "warm", "").Usage; u.OutputTokens != 1 ||
		u.Cached <= first.Usage.InputTokens-kv.PageTokens { // whole pages are counted
		t.Errorf("the same prompt: %+v", u)
	}
	if u := ask(1, "What is your name?", "").Usage; u.Cached < 256 {
		t.Errorf("the same system text: %+v", u)
	}
	_, stream := s.send("POST", "/v1/messages", `{"model":"demo","max_tokens":0,"stream":true,`+
		`"messages":[{"role":"user","content":"hi"}]}`)
	if strings.Contains(stream, "content_block") || !strings.Contains(stream, `"max_tokens"`) {
		t.Errorf("the stream: %s", stream)
	}
}

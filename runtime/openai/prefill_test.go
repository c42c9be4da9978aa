package openai_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
)

// A long prompt reports how far it is: on request in llama.cpp's object, and as comments of streams
// of events, which clients skip.
func TestPrefillIsNotSilent(t *testing.T) {
	p := live(t, engine.Settings{MaxNumBatchedTokens: 128})
	long := strings.Repeat("one two three four ", 100)
	ask := func(path, body string) string {
		r := porttest.Ask(t, "POST", p.URL+path, body)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", path, r.Status, r.Body)
		}
		return r.Body
	}
	chat := `{"messages":[{"role":"user","content":"` + long + `"}],"max_tokens":4,"stream":true,` +
		`"stream_options":{"include_usage":true}`
	var done []float64
	var total, last float64
	for _, e := range porttest.Events(t, ask("/v1/chat/completions", chat+`,"return_progress":true}`)) {
		if o, ok := porttest.At(e.Json, "prompt_progress").(map[string]any); ok {
			done, total = append(done, o["processed"].(float64)), o["total"].(float64)
			if o["cache"].(float64) > o["processed"].(float64) || o["time_ms"].(float64) < 0 ||
				porttest.At(e.Json, "choices", 0, "delta") == nil {
				t.Errorf("%s", e.Data)
			}
		} else if u, ok := porttest.At(e.Json, "usage", "prompt_tokens").(float64); ok {
			last = u
		}
	}
	if len(done) < 3 || done[len(done)-1] != total || total != last || done[0] >= done[1] {
		t.Errorf("processed %v of %v, usage %v", done, total, last)
	}
	if s := ask("/v1/chat/completions", strings.Replace(chat, "one", "six", 1)+"}"); strings.Contains(s,
		"progress") || strings.Contains(s, "prefill") {
		t.Errorf("without being asked: %s", s)
	}
	comment := regexp.MustCompile(`(?m)^: prefill (\d+)/(\d+)$`)
	for path, body := range map[string]string{
		"/v1/responses": `{"stream":true,"max_output_tokens":16,"input":"r ` + long + `"}`,
		"/v1/messages": `{"stream":true,"max_tokens":4,"messages":[{"role":"user","content":"m ` +
			long + `"}]}`,
	} {
		if s := ask(path, body); len(comment.FindAllString(s, -1)) < 2 {
			t.Errorf("%s: %s", path, s)
		}
	}
}

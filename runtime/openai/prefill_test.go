package openai_test

import (
	"regexp"
	"slices"
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

// A stream counts as it goes, if it is asked to: vLLM's usage in each chunk, llama.cpp's timings.
// Its last counts are those of the whole answer.
func TestStreamsCount(t *testing.T) {
	p := live(t, engine.Settings{})
	for path, input := range map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":"count"}]`,
		"/v1/completions":      `"prompt":"count"`,
	} {
		body := `{` + input + `,"max_tokens":12,"temperature":0,"stream":true,"ignore_eos":true,` +
			`"stream_options":{"include_usage":true`
		r := porttest.Ask(t, "POST", p.URL+path, body+`,"continuous_usage_stats":true},`+
			`"timings_per_token":true}`)
		var used, timed []float64
		var last any
		for _, e := range porttest.Events(t, r.Body) {
			if e.Json == nil {
				continue
			}
			n, ok := porttest.At(e.Json, "usage", "completion_tokens").(float64)
			if used = append(used, n); !ok || porttest.At(e.Json, "usage", "prompt_tokens") == 0. {
				t.Errorf("%s: no usage in %s", path, e.Data)
			}
			if n, ok := porttest.At(e.Json, "timings", "predicted_n").(float64); ok {
				timed, last = append(timed, n), porttest.At(e.Json, "timings")
			}
		}
		if len(used) < 5 || !slices.IsSorted(used) || used[len(used)-1] != 12 || used[0] > 6 ||
			len(timed) < 5 || !slices.IsSorted(timed) || timed[len(timed)-1] != 12 {
			t.Errorf("%s: used %v, timed %v\n%s", path, used, timed, r.Body)
		}
		for _, name := range []string{"prompt_n", "prompt_ms", "predicted_ms", "predicted_per_second",
			"predicted_per_token_ms"} {
			if n, ok := porttest.At(last, name).(float64); !ok || n <= 0 {
				t.Errorf("%s: %s of %v", path, name, last)
			}
		}
		r = porttest.Ask(t, "POST", p.URL+path, body+`}}`)
		if n := strings.Count(r.Body, `"completion_tokens":`); n != 1 ||
			strings.Contains(r.Body, "timings") {
			t.Errorf("%s: %d without being asked\n%s", path, n, r.Body)
		}
	}
}

// What agents send again and again is computed once, through the port over the demo model.

package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
)

// counted is the usage of a whole answer.
func counted(t *testing.T, answer map[string]any) (prompt, cached, completion int) {
	t.Helper()
	n := func(path ...any) int {
		v, _ := porttest.At(answer, append([]any{"usage"}, path...)...).(float64)
		return int(v)
	}
	return n("prompt_tokens"), n("prompt_tokens_details", "cached_tokens"), n("completion_tokens")
}

// Fifty turns of a tool loop by a client that drops all reasoning: no token is prefilled twice.
// Only the last token that was sampled of a turn is not in the cache: nothing had to be computed
// with it.
func TestAgentTraceThroughThePort(t *testing.T) {
	turns := 50
	if testing.Short() {
		turns = 10
	}
	p := live(t, engine.Settings{})
	tools := `[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"file":{"type":"integer","minimum":0,"maximum":9}},"required":["file"],"additionalProperties":false}}}]`
	history := `{"role":"system","content":"You read files."},{"role":"user","content":"Read the files, all of them."}`
	known, total := 0, 0
	for i := range turns {
		answer := porttest.Decode(t, porttest.Post(t, p.Server, "/v1/chat/completions",
			fmt.Sprintf(`{"seed":%d,"max_reasoning_tokens":%d,"tools":%s,"tool_choice":"required","messages":[%s]}`,
				i, i%3*4, tools, history)).Body)
		prompt, cached, completion := counted(t, answer)
		total += prompt
		if i > 0 && cached != kv.WholePages(known) {
			t.Fatalf("turn %d: %d tokens of a prompt of %d are cached, %d were computed before", i,
				cached, prompt, known)
		}
		known = prompt + completion - 1
		call := porttest.At(answer, "choices", 0, "message", "tool_calls", 0)
		id, arguments := porttest.At(call, "id"), fmt.Sprint(porttest.At(call, "function", "arguments"))
		if id == nil {
			t.Fatalf("turn %d: no call in %v", i, answer)
		}
		history += fmt.Sprintf(`,{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":"read","arguments":%q}}]},{"role":"tool","tool_call_id":%q,"content":"line %d"}`,
			id, arguments, id, i)
	}
	if prefilled, cached := p.metric("ossrun:prefilled_tokens_total"),
		p.metric("vllm:prefix_cache_hits_total"); prefilled+cached != float64(total) {
		t.Errorf("%v tokens were prefilled and %v cached, of %d", prefilled, cached, total)
	}
	if n := p.metric("ossrun:rebuilt_tokens_total") +
		p.metric("ossrun:recomputed_tokens_total"); n != 0 {
		t.Errorf("%v tokens were computed again", n)
	}
}

// The header that a client writes into its system text with another value each time does not break
// reuse, in either API.
func TestBillingHeaderThroughThePort(t *testing.T) {
	p := live(t, engine.Settings{})
	for i, body := range []string{
		`{"max_tokens":1,"messages":[{"role":"system","content":"x-anthropic-billing-header: cc_version=2.1.15.abc; cch=%05x;\nYou are a coding agent."},{"role":"user","content":"Hi"}]}`,
		`{"max_tokens":1,"messages":[{"role":"system","content":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.15.abc; cch=%05x;"},{"type":"text","text":"You are another agent."}]},{"role":"user","content":"Hi"}]}`,
	} {
		for turn := range 2 {
			prompt, cached, _ := counted(t, porttest.Decode(t, porttest.Post(t, p.Server, "/v1/chat/completions",
				fmt.Sprintf(body, 77*turn+i)).Body))
			if turn > 0 && cached != kv.WholePages(prompt-1) {
				t.Errorf("body %d: %d of %d tokens are cached", i, cached, prompt)
			}
		}
	}
	for turn := range 2 {
		r := porttest.Post(t, p.Server, "/v1/responses",
			fmt.Sprintf(`{"max_output_tokens":1,"instructions":"x-anthropic-billing-header: cch=%d;\nYou are a third agent.","input":"Hi"}`, turn))
		prompt, cached := countedBy(t, r.Body, "input_tokens", "input_tokens_details",
			"cached_tokens")
		if turn > 0 && cached != kv.WholePages(prompt-1) {
			t.Errorf("responses: %d of %d tokens are cached", cached, prompt)
		}
	}
}

// countedBy is a count of an answer's usage, and how many of these tokens were cached.
func countedBy(t *testing.T, body string, all string, cached ...any) (tokens, found int) {
	t.Helper()
	answer := porttest.Decode(t, body)
	a, _ := porttest.At(answer, "usage", all).(float64)
	c, ok := porttest.At(answer, append([]any{"usage"}, cached...)...).(float64)
	if !ok {
		t.Fatalf("no count of cached tokens in %s", body)
	}
	return int(a), int(c)
}

// Counts of cached tokens tell nothing of a single token: in every API and in the metrics they are
// whole pages, so a right and a wrong guess at the end of another's prompt read alike.
//
// SECURITY.md: Counts of cached tokens are whole pages.
func TestCachedCountsAreWholePages(t *testing.T) {
	p := live(t, engine.Settings{})
	filler := strings.Repeat("The harbour was quiet. ", 30)
	porttest.Post(t, p.Server, "/v1/completions", `{"max_tokens":1,"prompt":"Hi"}`) // makes metrics
	for _, route := range []struct {
		path, body, all string
		cached          []any
		without         bool // all counts no cached tokens
	}{
		{path: "/v1/chat/completions", all: "prompt_tokens",
			body:   `{"max_tokens":1,"messages":[{"role":"user","content":%q}]}`,
			cached: []any{"prompt_tokens_details", "cached_tokens"}},
		{path: "/v1/completions", all: "prompt_tokens", body: `{"max_tokens":1,"prompt":%q}`,
			cached: []any{"prompt_tokens_details", "cached_tokens"}},
		{path: "/v1/responses", all: "input_tokens", body: `{"max_output_tokens":1,"input":%q}`,
			cached: []any{"input_tokens_details", "cached_tokens"}},
		{path: "/v1/messages", all: "input_tokens", without: true,
			body: `{"model":"demo","max_tokens":1,` +
				`"messages":[{"role":"user","content":%q}]}`,
			cached: []any{"cache_read_input_tokens"}},
	} {
		ask := func(word string) int {
			metrics := []string{"vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total",
				"ossrun:prefilled_tokens_total"}
			before := map[string]float64{}
			for _, name := range metrics {
				before[name] = p.metric(name)
			}
			body := porttest.Post(t, p.Server, route.path,
				fmt.Sprintf(route.body, route.path+filler+word)).Body
			prompt, found := countedBy(t, body, route.all, route.cached...)
			if route.without {
				prompt += found
			}
			if found%kv.PageTokens != 0 {
				t.Errorf("%s: %d of %d tokens are cached", route.path, found, prompt)
			}
			for i, want := range []int{found, found, prompt - found} {
				if got := p.metric(metrics[i]) - before[metrics[i]]; got != float64(want) {
					t.Errorf("%s: %s rose by %v, not by %d", route.path, metrics[i], got, want)
				}
			}
			return found
		}
		ask("crimson daybreak")
		// one more token of the prompt is right
		if wrong, right := ask("violet"), ask("crimson sunset"); wrong != right || wrong < 96 {
			t.Errorf("%s: %d tokens are cached after a wrong guess, %d after a right one", route.path,
				wrong, right)
		}
	}
}

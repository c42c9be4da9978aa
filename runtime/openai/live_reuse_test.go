// What agents send again and again is computed once, through the port over the demo model.

package openai_test

import (
	"fmt"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
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
		if i > 0 && cached != known {
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
			if turn > 0 && cached < prompt-1 {
				t.Errorf("body %d: %d of %d tokens are cached", i, cached, prompt)
			}
		}
	}
	for turn := range 2 {
		r := porttest.Post(t, p.Server, "/v1/responses",
			fmt.Sprintf(`{"max_output_tokens":1,"instructions":"x-anthropic-billing-header: cch=%d;\nYou are a third agent.","input":"Hi"}`, turn))
		prompt, _ := porttest.At(porttest.Decode(t, r.Body), "usage", "input_tokens").(float64)
		cached, _ := porttest.At(porttest.Decode(t, r.Body), "usage", "input_tokens_details",
			"cached_tokens").(float64)
		if turn > 0 && cached < prompt-1 {
			t.Errorf("responses: %v of %v tokens are cached", cached, prompt)
		}
	}
}

package openai_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
)

// echo with logprobs, and vLLM's prompt_logprobs: each token of the prompt with what the model gave
// it, which is what it gives the same token when it generates it.
func TestPromptLogprobs(t *testing.T) {
	p := live(t, engine.Settings{})
	const prompt = "How do I serve an OpenAI API? Run `ossrun serve"
	for _, most := range []int{0, 3} {
		m := porttest.Decode(t, porttest.Post(t, p.Server, "/v1/completions", fmt.Sprintf(`{"prompt":%q,"echo":true,`+
			`"logprobs":2,"prompt_logprobs":1,"max_tokens":%d,"temperature":0}`, prompt, most)).Body)
		ids := token.Get().Encode(nil, prompt)
		choice := porttest.At(m, "choices", 0)
		lists := porttest.At(choice, "logprobs").(map[string]any)
		n := len(ids) + most
		for _, name := range []string{"tokens", "token_logprobs", "top_logprobs", "text_offset"} {
			if got := len(lists[name].([]any)); got != n {
				t.Errorf("%d %s, want %d", got, name, n)
			}
		}
		if porttest.At(lists, "token_logprobs", 0) != nil || porttest.At(lists, "top_logprobs", 0) != nil ||
			porttest.At(m, "usage", "completion_tokens") != float64(most) ||
			len(porttest.At(choice, "prompt_logprobs").([]any)) != len(ids) {
			t.Errorf("%v", m)
		}
		text := porttest.At(choice, "text").(string)
		if most == 0 && text != prompt {
			t.Errorf("%q", text)
		}
		for i, id := range ids[1:] {
			entry := porttest.At(choice, "prompt_logprobs", i+1).(map[string]any)[fmt.Sprint(id)]
			lp, _ := porttest.At(entry, "logprob").(float64)
			same, _ := porttest.At(lists, "token_logprobs", i+1).(float64)
			if lp != same || lp > 0 || len(porttest.At(lists, "top_logprobs", i+1).(map[string]any)) > 3 {
				t.Errorf("token %d: %v and %v", i+1, lp, same)
			}
		}
	}
	// the last token of a prompt, scored, and the same one generated
	ids := token.Get().Encode(nil, prompt)
	generated := porttest.Decode(t, porttest.Post(t, p.Server, "/v1/completions", fmt.Sprintf(
		`{"prompt":%s,"logprobs":1,"max_tokens":1,"logit_bias":{"%d":100}}`,
		idList(ids[:len(ids)-1]), ids[len(ids)-1])).Body)
	scored := porttest.Decode(t, porttest.Post(t, p.Server, "/v1/completions", fmt.Sprintf(
		`{"prompt":%s,"echo":true,"logprobs":1,"max_tokens":0}`, idList(ids))).Body)
	a, _ := porttest.At(generated, "choices", 0, "logprobs", "token_logprobs", 0).(float64)
	b, _ := porttest.At(scored, "choices", 0, "logprobs", "token_logprobs", -1).(float64)
	if math.Abs(a-b) > 1e-6 {
		t.Errorf("generated %v, scored %v", a, b)
	}
}

func idList(ids []int32) string {
	var list strings.Builder
	list.WriteString("[")
	for i, id := range ids {
		if i > 0 {
			list.WriteString(",")
		}
		list.WriteString(fmt.Sprint(id))
	}
	return list.String() + "]"
}

package session

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/sample"
)

const endless = 900 // repeated tokens: more than a loop's 512

func analysis(text string) string { return "<|channel|>analysis<|message|>" + text }

// A turn that loops in its thought goes on to its answer, and the repeated tokens are not read
// again; one that loops in its answer too ends with an error that names the loop.
func TestLoopsAreLeft(t *testing.T) {
	m, s := scripted(analysis("First.<|end|><|start|>assistant"+
		analysis(strings.Repeat("again ", endless))), "So: 4.<|return|>")
	_, res := run(t, m, Request{Messages: []Message{User("2+2?")}})
	if res.Answer != "So: 4." || res.Done.Finish != FinishStop || res.Done.Err != nil {
		t.Errorf("%q, %+v", res.Answer, res.Done)
	}
	if p := text(s.prompts[1]); strings.Contains(p, "again") || !strings.Contains(p, "First.") {
		t.Errorf("the answer's prompt is %.2000s", p)
	}
	if !strings.HasPrefix(text(s.forced[1]), "<|channel|>final") {
		t.Errorf("forced: %s", text(s.forced[1]))
	}

	m, _ = scripted(analysis(strings.Repeat("again ", endless)), strings.Repeat("ha ", endless))
	_, res = run(t, m, Request{Messages: []Message{User("2+2?")}})
	if res.Done.Finish != FinishLoop || !errors.Is(res.Done.Err, ErrLoop) ||
		!strings.HasPrefix(res.Answer, "ha ha") || len(res.Answer) > 3*endless {
		t.Errorf("%.30q, %+v", res.Answer, res.Done)
	}
	if last := res.Messages[len(res.Messages)-1]; !isFinal(last) {
		t.Errorf("the answer is not in the history: %+v", last)
	}
}

// A call in a loop is left out, since its arguments are useless, and ends the turn: a reader of the
// events has its beginning, and a following answer would complete it.
func TestLoopsInCalls(t *testing.T) {
	m, _ := scripted("<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":\""+
		strings.Repeat("x ", endless), "No.<|return|>")
	_, res := run(t, m, Request{Messages: []Message{User("?")}})
	if len(res.Calls) != 0 || res.Answer != "" || res.Done.Finish != FinishLoop ||
		!res.Done.CallCut {
		t.Errorf("%+v", res)
	}
}

func TestLoopsThatAreAllowed(t *testing.T) {
	minTokens, ignoreEOS := sample.Defaults(), sample.Defaults()
	minTokens.MinTokens, ignoreEOS.IgnoreEOS = 2000, true
	for name, r := range map[string]Request{"asked": {AllowLoops: true}, "min_tokens": {Params: minTokens},
		"ignore_eos": {Params: ignoreEOS}, "raw": {Prompt: []int32{1}}} {
		says := strings.Repeat("again ", endless)
		if r.Prompt == nil {
			r.Messages, says = []Message{User("?")}, "<|channel|>final<|message|>"+says
		}
		m, _ := scripted(says + "[length]")
		_, res := run(t, m, r)
		if res.Done.Finish != FinishLength || strings.Count(res.Answer, "again") != endless {
			t.Errorf("%s: %s after %d", name, res.Done.Finish, strings.Count(res.Answer, "again"))
		}
	}
}

// An answer with a form that loops is brought to the form's end: it can be read, and the turn still
// says that it looped.
func TestLoopsInAFormAreClosed(t *testing.T) {
	form, err := schema.Compile(t.Context(), []byte(`{"type":"object","properties":{"a":{"type":"string"}},`+
		`"required":["a"],"additionalProperties":false}`), false)
	if err != nil {
		t.Fatal(err)
	}
	begun := `<|channel|>final<|message|>{"a":"` + strings.Repeat("ha ", endless)
	m, s := scripted(begun, `"}<|return|>`)
	_, res := run(t, m, Request{Messages: []Message{User("?")}, Final: form})
	if res.Done.Finish != FinishLoop || !errors.Is(res.Done.Err, ErrLoop) ||
		!json.Valid([]byte(res.Answer)) || !strings.HasPrefix(res.Answer, `{"a":"ha ha `) {
		t.Errorf("%s, %.40q", res.Done.Finish, res.Answer)
	}
	if p := text(s.prompts[1]); !strings.HasSuffix(p, "ha ha") && !strings.HasSuffix(p, "ha ") {
		t.Errorf("it goes on behind %.40q", p[max(0, len(p)-40):])
	}
	if n := res.Done.Usage.Completion; n != len(res.Tokens) || n > 700 {
		t.Errorf("%d tokens, %d counted", len(res.Tokens), n)
	}

	m, _ = scripted(begun, "ha ha ha[length]") // the way out is too long
	_, res = run(t, m, Request{Messages: []Message{User("?")}, Final: form})
	if res.Done.Finish != FinishLength || !strings.HasSuffix(res.Answer, "ha ha ha") {
		t.Errorf("%s, %q", res.Done.Finish, res.Answer[max(0, len(res.Answer)-40):])
	}

	r := Request{Messages: []Message{User("?")}, Final: form, MaxTokens: 620} // used up by the loop
	m, s = scripted(begun, `"}<|return|>`)
	if _, res = run(t, m, r); len(res.Tokens) > 620 || len(s.prompts) > 2 {
		t.Errorf("%d tokens of 620", len(res.Tokens))
	}
	if res.Done.Finish != FinishLength && !json.Valid([]byte(res.Answer)) {
		t.Errorf("%s behind an answer that is cut", res.Done.Finish)
	}

	r.MaxTokens = 544 // nothing is left for the way out
	m, s = scripted(begun, `"}<|return|>`)
	if _, res = run(t, m, r); res.Done.Finish != FinishLength || len(s.prompts) > 1 {
		t.Errorf("%s after %d tokens of 544", res.Done.Finish, len(res.Tokens))
	}
}

// What the demo says with drafts is what it says without: Harmony's headers, tools, schemas,
// bounds of reasoning and stop strings over the model that is in the program.

package cli

import (
	"os"
	"reflect"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/sched/draft"
	"github.com/ossrun/ossrun/runtime/session"
)

// TestDemoWithDrafts plays 12 turns twice, 400 with OSSRUN_LONG.
func TestDemoWithDrafts(t *testing.T) {
	t.Parallel()
	turns := 12
	if os.Getenv("OSSRUN_LONG") != "" {
		turns = 400
	}
	form, err := schema.Compile(t.Context(), []byte(`{"type":"object","properties":{"answer":`+
		`{"type":"string"},"again":{"type":"array","items":{"type":"string"},"maxItems":3}},`+
		`"required":["answer","again"],"additionalProperties":false}`), false)
	if err != nil {
		t.Fatal(err)
	}
	held := readHeldOut(t)
	requests := make([]session.Request, turns)
	for i := range requests {
		p := sample.Defaults()
		p.Seed = uint64(i)
		p.Temperature = []float32{0, 1, 0.5}[i%3]
		if i%4 == 1 {
			p.TopP, p.FrequencyPenalty = 0.9, 0.3
		}
		r := held[i*7%len(held)].request(p)
		r.MaxTokens = 80
		switch i % 6 {
		case 1:
			r.Params.Logprobs = 2
		case 2:
			r.Final, r.Functions, r.Python = form, nil, false
		case 3:
			r.Stop = []string{"e ", "1"}
		case 4:
			r.MaxReasoning = 8
		case 5:
			r.Params.MinTokens, r.Params.TopK = 30, 40
		}
		requests[i] = r
	}
	want := playedWith(t, engine.Settings{}, requests)
	got := playedWith(t, engine.Settings{Drafts: draft.Most}, requests)
	for i := range want {
		a, b := want[i], got[i]
		a.Done.Timing, b.Done.Timing = sched.Timing{}, sched.Timing{}
		a.Done.Usage.Cached, b.Done.Usage.Cached = 0, 0
		if !reflect.DeepEqual(a.Tokens, b.Tokens) || a.Answer != b.Answer ||
			a.Reasoning != b.Reasoning || !reflect.DeepEqual(a.Done, b.Done) {
			t.Errorf("turn %d\nwith drafts %q %+v\nwithout     %q %+v", i, b.Answer, b.Done,
				a.Answer, a.Done)
		}
	}
}

func playedWith(t *testing.T, s engine.Settings, requests []session.Request) []session.Result {
	t.Helper()
	m := loadDemo(t, s)
	defer m.Close()
	results := make([]session.Result, len(requests))
	playAll(t, m, requests, func(i int, res session.Result) { results[i] = res })
	t.Logf("%+v", m.Stats().Counts)
	return results
}

package sched

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/sample"
)

// The logprobs of prompts are those of the golden logits, whatever else runs and however
// small the steps; few logits are held at once; what follows the prompt is the same.
func TestPromptsAreScored(t *testing.T) {
	dev, ckpt, cases := goldenT1(t)
	const top = 5
	for _, o := range []engine.Settings{
		{Pages: 256, MaxNumBatchedTokens: 512},
		{Pages: 64, MaxNumBatchedTokens: 256, MaxNumSeqs: 1},
		{Pages: 24, MaxNumBatchedTokens: 7}, // preempts
	} {
		var here atomic.Pointer[Scheduler]
		var held atomic.Int64 // values of logits, when all is done
		s, end := newReal(t, dev, ckpt, Options{Settings: o, idle: func() {
			if s := here.Load(); s != nil {
				held.Store(max(held.Load(), int64(len(s.logits))))
			}
		}})
		here.Store(s)
		type scored struct {
			golden.Case
			stream *Stream
		}
		var all []scored
		for _, g := range cases {
			if len(g.Tokens) > 200 {
				continue
			}
			r := TokenRequest{Prompt: g.Tokens, MaxTokens: len(g.Greedy),
				Params: sample.Params{Logprobs: -1}}
			submit(t, s, t.Context(), r) // the cache would know the prompt
			r.ScorePrompt, r.PromptTop = true, top
			all = append(all, scored{g, submit(t, s, t.Context(), r)})
		}
		compared := 0
		for _, c := range all {
			got := drain(t, c.stream)
			for i, id := range c.Greedy {
				if got[i] != id {
					t.Errorf("%s: token %d is %d, not %d", c.Name, i, got[i], id)
				}
			}
			scores := c.stream.Prompt()
			if len(c.Tokens) > 1 && len(scores) != len(c.Tokens) {
				t.Fatalf("%s: %d of %d tokens are scored", c.Name, len(scores), len(c.Tokens))
			}
			for i, p := range c.Positions {
				if int(p)+1 >= len(c.Tokens) {
					continue
				}
				want, err := sample.Score(c.Logits[i], c.Tokens[p+1], top)
				if err != nil {
					t.Fatal(err)
				}
				got := scores[p+1]
				compared++
				if got.ID != want.ID || math.Abs(float64(got.Logprob-want.Logprob)) > 0.02 ||
					len(got.Top) != top || got.Top[0].ID != want.Top[0].ID &&
					want.Top[0].Logprob-want.Top[1].Logprob > 0.02 {
					t.Errorf("%s, token %d: %v, want %v", c.Name, p+1, got, want)
				}
			}
		}
		if compared < 20 {
			t.Errorf("only %d tokens were compared", compared)
		}
		end()
		if rows := int(held.Load()) / s.spec.Vocab; rows == 0 || rows > 2*(mostScored+2*len(all)) {
			t.Errorf("%d rows of logits were held", rows)
		}
	}
}

// The simulated engine under the scheduler, and what a request must give: computed from its own
// tokens alone.

package sched

import (
	"slices"

	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

func newSim(o Options, vocab, window int) *simtest.Engine {
	return simtest.New(o.Pages, o.MaxNumBatchedTokens, vocab, window)
}

// alone is what a request must give.
func alone(sim *simtest.Engine, context int, r TokenRequest) (tokens []Token, finish FinishReason) {
	spec := sim.Spec()
	history := slices.Clone(r.Prompt)
	held, _ := again(r).Constraint.(*simtest.Constraint)
	if held == nil {
		held = &simtest.Constraint{}
	}
	s := sample.New(r.Params, spec.Vocab, r.Prompt)
	s.HoldStops(r.Stop)
	forced := held.Forced()
	model, computed := sim.Alone(), 0
	logits := make([]float32, spec.Vocab)
	for {
		var t Token
		sampled := len(forced) == 0
		if !sampled {
			t, forced = forcedToken(forced[0]), forced[1:]
		} else {
			for ; computed < len(history); computed++ {
				model.Push(history[computed])
			}
			model.Logits(logits)
			c, err := s.Next(logits, len(history), held.Mask())
			if err != nil {
				return tokens, FinishError
			}
			t = Token{SampledToken: c}
		}
		s.Accept(t.ID)
		held.Accept(t.ID)
		tokens = append(tokens, t)
		history = append(history, t.ID)
		if slices.Contains(r.Stop, t.ID) && !(r.Params.IgnoreEOS && slices.Contains(spec.EOS,
			t.ID)) {
			return tokens, FinishStop
		}
		if len(tokens) == r.MaxTokens || len(history) == context {
			return tokens, FinishLength
		}
		if sampled {
			forced = held.Forced()
		}
	}
}

// Tokens that leave no choice: fed as input they give the text that sampling them under a mask
// gives, in fewer steps.

package sched

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

func TestFollowIsWhatAMaskWouldForce(t *testing.T) {
	// After every fifth token the next three are known.
	fixed := []int32{11, 12, 13}
	next := func(generated []int32) []int32 {
		if at := len(generated) % 8; at >= 5 {
			return fixed[at-5:]
		}
		return nil
	}
	mask := func(generated []int32) []uint64 {
		ids := next(generated)
		if ids == nil {
			return nil
		}
		m := make([]uint64, 2)
		m[ids[0]>>6] |= 1 << (ids[0] & 63)
		return m
	}
	for _, most := range []int{1, 5, 6, 7, 8, 9, 61, 200} {
		s, _ := start(t, Options{Settings: engine.Settings{Pages: 40}})
		r := TokenRequest{Prompt: prompt(40), MaxTokens: most,
			Constraint: &simtest.Constraint{Allow: mask}}
		r.Params.Temperature, r.Params.TopP, r.Params.Seed = 1, 1, 7
		sampled := drain(t, submit(t, s, t.Context(), r))
		before := s.Stats().Steps
		r.Constraint = &simtest.Constraint{Allow: mask, Follow: next}
		st := submit(t, s, t.Context(), r)
		var fed []int32
		forced := 0
		for tok, ok := st.Next(t.Context()); ok; tok, ok = st.Next(t.Context()) {
			fed = append(fed, tok.ID)
			if tok.Forced {
				forced++
			}
		}
		if !slices.Equal(fed, sampled) || len(fed) != most || st.Finish() != FinishLength {
			t.Errorf("%d tokens: fed %v, sampled %v, %q", most, fed, sampled, st.Finish())
		}
		if want := most/8*3 + max(0, most%8-5); forced != want {
			t.Errorf("%d tokens: %d were forced, want %d", most, forced, want)
		}
		if steps := s.Stats().Steps - before; most > 8 && int(steps) > most-forced+2 {
			t.Errorf("%d tokens took %d steps", most, steps)
		}
	}
}

// A token that follows may be the one that ends the request.
func TestFollowEndsARequest(t *testing.T) {
	s, _ := start(t, Options{})
	r := TokenRequest{Prompt: prompt(5), MaxTokens: 50, Stop: []int32{9},
		Constraint: &simtest.Constraint{Follow: func(generated []int32) []int32 {
			if len(generated) == 0 {
				return nil
			}
			return []int32{8, 9, 8}
		}}}
	r.Params.Temperature, r.Params.TopP = 1, 1
	st := submit(t, s, t.Context(), r)
	got := drain(t, st)
	if n := len(got); st.Finish() != FinishStop || got[n-1] != 9 || n != 3 && n != 1 {
		t.Errorf("%v, %q", got, st.Finish())
	}
}

// Where masks allow few tokens only their logits are computed, and the text stays what it is:
// alone, together, and with sequences that read every logit.
func TestOnlyAllowedLogitsAreComputed(t *testing.T) {
	some := func(generated []int32) []uint64 {
		if len(generated)%5 == 4 {
			return nil
		}
		return []uint64{0x0410_0402 << (len(generated) % 7), 1 << (len(generated) % 30)}
	}
	few := func(seed uint64, most int) TokenRequest {
		r := TokenRequest{Prompt: prompt(int(seed)), MaxTokens: most,
			Constraint: &simtest.Constraint{Allow: some}}
		r.Params = sample.Defaults()
		r.Params.Seed = seed
		return r
	}
	told, free := few(9, 30), few(11, 30)
	told.Params.Logprobs, free.Constraint = 2, nil
	for name, c := range map[string]struct {
		requests []TokenRequest
		narrow   bool
	}{
		"one":            {[]TokenRequest{few(3, 40)}, true},
		"three":          {[]TokenRequest{few(3, 40), few(40, 25), few(70, 33)}, true},
		"with logprobs":  {[]TokenRequest{told}, false},
		"without a mask": {[]TokenRequest{free}, false},
		"all at once":    {[]TokenRequest{few(3, 20), told, free, few(70, 60)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, sim := start(t, Options{})
			var streams []*Stream
			for _, r := range c.requests {
				streams = append(streams, submit(t, s, t.Context(), r))
			}
			for i, st := range streams {
				tokens, _ := alone(sim, s.o.MaxModelLen, c.requests[i])
				var want []int32
				for _, tok := range tokens {
					want = append(want, tok.ID)
				}
				if got := drain(t, st); !slices.Equal(got, want) {
					t.Errorf("request %d: %v, alone %v", i, got, want)
				}
			}
			s.Close()
			if (sim.Spoiled > 0) != c.narrow {
				t.Errorf("%d logits were left out", sim.Spoiled)
			}
		})
	}
}

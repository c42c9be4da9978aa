// Many clients at once, and the oldest promise: whoever has to give its pages away gets its text
// all the same.

package sched

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// 64 goroutines submit, read, cancel and ask for figures at once, over a pool that does not hold
// all: each text is that of the request alone, and at the end nothing is held. The race detector
// watches.
func TestSixtyFourStreams(t *testing.T) {
	s, sim := start(t, Options{Settings: engine.Settings{Pages: 60, MaxNumBatchedTokens: 128,
		MaxNumSeqs: 48}})
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			for turn := range 2 {
				r := TokenRequest{Prompt: append([]int32{int32(i % 8)}, prompt(20+i%5*16)...),
					MaxTokens: 24 + i%7,
					Params: sample.Params{Temperature: 1, TopP: 0.95, Seed: uint64(100*i + turn),
						Logprobs: -1}}
				if i%4 == 0 {
					odd := []uint64{0xAAAAAAAAAAAAAAAA, 0xAAAAAAAAAAAAAAAA}
					r.Constraint = &simtest.Constraint{Allow: func([]int32) []uint64 { return odd }}
				}
				ctx, cancel := context.WithCancel(t.Context())
				st, err := s.Submit(ctx, again(r))
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				leaves := -1
				if i%9 == turn {
					leaves = i % 23
				}
				var got []int32
				for tok, ok := st.Next(t.Context()); ok; tok, ok = st.Next(t.Context()) {
					if got = append(got, tok.ID); len(got) == leaves {
						cancel()
					}
					_, _, _ = s.Stats(), s.RetryAfter(), st.Timing()
				}
				cancel()
				want, finish := alone(sim, s.o.MaxModelLen, r)
				if f := st.Finish(); f != finish && !(f == FinishCancelled && leaves >= 0) {
					t.Errorf("client %d: %q, alone %q: %v", i, f, finish, st.Err())
				}
				for j, id := range got {
					if id != want[j].ID {
						t.Errorf("client %d: token %d is %d, alone %d", i, j, id, want[j].ID)
						break
					}
				}
				if st.Finish() == finish && len(got) != len(want) {
					t.Errorf("client %d: %d tokens, alone %d", i, len(got), len(want))
				}
			}
		})
	}
	clients.Wait()
	if st := s.Stats(); st.Failed != 0 || st.Ahead == 0 {
		t.Errorf("%+v", st.Counts)
	}
}

// A preempted sequence never fails. Pages pushed out of the pool are computed again, or
// brought back where another memory took it, which is always the shorter way; the texts do not show
// which.
func TestPreemptionSwapsOrComputesAgain(t *testing.T) {
	run := func(spill *kv.Spill) Counts {
		all := make(chan struct{})
		step := 0
		s, sim := start(t, Options{Settings: engine.Settings{Pages: 24, MaxNumBatchedTokens: 64},
			Spill: spill, launch: func(*engine.Batch) {
				if step++; step == 1 {
					<-all
				}
			}})
		var streams []*Stream
		var want [][]Token
		for i := range 6 {
			r := TokenRequest{Prompt: append([]int32{int32(i)}, prompt(30)...), MaxTokens: 120,
				Params: sample.Params{Temperature: 1, TopP: 1, Seed: uint64(i), Logprobs: -1}}
			streams = append(streams, submit(t, s, t.Context(), r))
			w, _ := alone(sim, s.o.MaxModelLen, r)
			want = append(want, w)
		}
		close(all)
		for i, st := range streams {
			if got := drain(t, st); !slices.EqualFunc(got, want[i], func(id int32,
				w Token) bool {
				return id == w.ID
			}) || st.Finish() != FinishLength {
				t.Errorf("request %d: %d tokens of %d, %q, %v", i, len(got), len(want[i]),
					st.Finish(), st.Err())
			}
		}
		return s.Stats().Counts
	}
	computes := run(nil)
	spill, err := kv.OpenSpill(kv.SpillOptions{HostBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer spill.Close()
	swaps := run(spill)
	if computes.Preemptions < 2 || computes.Recomputed == 0 || computes.SwappedIn != 0 {
		t.Errorf("without another memory: %+v", computes)
	}
	if swaps.Preemptions < 2 || swaps.SwappedIn == 0 || swaps.Recomputed >= computes.Recomputed ||
		swaps.Failed+computes.Failed != 0 {
		t.Errorf("with another memory: %+v; without %d positions were computed again", swaps,
			computes.Recomputed)
	}
}

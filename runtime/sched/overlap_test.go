// Work during a step is done then, and nothing of it shows in the texts (interleave_test.go
// has that half).

package sched

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// Each step ends only when the mask of its token has been made, the next step planned, and the
// request that came in its middle admitted: if any of that waited for the step, this test would not
// end.
func TestTheNextStepIsPlannedBesideThisOne(t *testing.T) {
	o := Options{Settings: engine.Settings{Pages: 512, MaxNumBatchedTokens: 64}}
	sim := newSim(o, 97, 128)
	masked, planned := make(chan int, 100), make(chan struct{}, 100)
	var s *Scheduler
	var second *Stream
	o.prepared = func() { planned <- struct{}{} }
	r := TokenRequest{Prompt: prompt(9), MaxTokens: 12}
	joined, rows := 0, int32(0)
	sim.Before = func(step int, b *engine.Batch) error {
		if n := <-masked; n != step-1 {
			t.Errorf("in step %d the mask behind %d tokens is made", step, n)
		}
		if <-planned; len(b.Seqs) == 2 && joined == 0 {
			joined, rows = step, b.Seqs[1].Rows
		}
		return nil
	}
	// Submit comes before the plan is made, in the goroutine that will make it.
	tokens := 0
	r.Constraint = &simtest.Constraint{Allow: func(generated []int32) []uint64 {
		if tokens = len(generated); tokens == 4 {
			second = submit(t, s, t.Context(), TokenRequest{Prompt: prompt(40), MaxTokens: 3})
		}
		masked <- len(generated)
		return nil
	}}
	s = New(sim, o)
	defer s.Close()
	first := submit(t, s, t.Context(), r)
	if got := drain(t, first); len(got) != 12 {
		t.Fatalf("%v", got)
	}
	if got := drain(t, second); len(got) != 3 {
		t.Fatalf("%v", got)
	}
	if joined != 6 || rows != 40 {
		t.Errorf("what came in step 5 joined step %d with %d rows", joined, rows)
	}
	if st := s.Stats(); st.Ahead < 8 {
		t.Errorf("%d of %d steps were planned ahead", st.Ahead, st.Steps)
	}
}

// While nothing happens, every step but the first is planned ahead, prompts and answers alike;
// a sequence that ends at its length, as planned, changes nothing.
func TestQuietStepsArePlannedAhead(t *testing.T) {
	all := make(chan struct{})
	step := 0
	s, sim := start(t, Options{Settings: engine.Settings{MaxNumBatchedTokens: 64},
		launch: func(*engine.Batch) {
			if step++; step == 1 {
				<-all
			}
		}})
	var streams []*Stream
	var want [][]Token
	for i := range 8 {
		r := TokenRequest{Prompt: prompt(100 + 10*i), MaxTokens: 20 + i}
		streams = append(streams, submit(t, s, t.Context(), r))
		w, _ := alone(sim, s.o.MaxModelLen, r)
		want = append(want, w)
	}
	close(all)
	for i, st := range streams {
		if got := drain(t, st); !slices.EqualFunc(got, want[i], func(id int32,
			w Token) bool {
			return id == w.ID
		}) {
			t.Errorf("request %d: %v", i, got)
		}
	}
	if st := s.Stats(); st.Ahead+3 < st.Steps {
		t.Errorf("%d of %d steps were planned ahead", st.Ahead, st.Steps)
	}
}

// Beside a step only pages that nobody has are given: what the step reads and writes stays where it
// is, even when there is nothing else to be had.
func TestNothingIsPreemptedBesideAStep(t *testing.T) {
	type held struct{ full, window []int32 }
	var s *Scheduler
	var flying map[*sequence]held
	short := 0
	s, _ = start(t, Options{Settings: engine.Settings{Pages: 20, MaxNumBatchedTokens: 64},
		launch: func(*engine.Batch) {
			flying = map[*sequence]held{}
			for _, q := range s.running {
				if q.inFlight > 0 {
					flying[q] = held{slices.Clone(q.table.Full()), slices.Clone(q.table.Window())}
				}
			}
		}, prepared: func() {
			if s.plan == none {
				short++
			}
			for q, h := range flying {
				if !slices.Contains(s.running, q) || !slices.Equal(q.table.Full()[:len(h.full)],
					h.full) || !slices.Equal(q.table.Window()[:len(h.window)], h.window) {
					t.Errorf("the pages of a sequence in the step changed: %v %v, %v %v", h.full,
						h.window, q.table.Full(), q.table.Window())
				}
			}
		}})
	var streams []*Stream
	for i := range 6 {
		r := TokenRequest{Prompt: append([]int32{int32(i)}, prompt(20)...), MaxTokens: 100}
		streams = append(streams, submit(t, s, t.Context(), r))
	}
	for _, st := range streams {
		if got := drain(t, st); len(got) != 100 {
			t.Errorf("%d tokens, %q", len(got), st.Finish())
		}
	}
	if n := s.Stats().Preemptions; n == 0 || short == 0 {
		t.Errorf("%d preemptions, %d plans that had to be made again", n, short)
	}
}

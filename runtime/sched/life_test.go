// Ends and breaks: closing, faults, and what a rebuild costs the others.

package sched

import (
	"errors"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// Closing refuses new requests, ends those that run and those that wait, and leaves no page in use.
func TestCloseEndsAll(t *testing.T) {
	s, _ := start(t, Options{Settings: engine.Settings{MaxNumSeqs: 1}})
	endless := TokenRequest{Prompt: prompt(3),
		Params: sample.Params{LogitBias: map[int32]float32{3: -100}}}
	runs, waits := submit(t, s, t.Context(), endless), submit(t, s, t.Context(), endless)
	runs.Next(t.Context())
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, st := range []*Stream{runs, waits} {
		drain(t, st)
		if st.Finish() != FinishError || !errors.Is(st.Err(), ErrClosed) {
			t.Errorf("%q %v", st.Finish(), st.Err())
		}
	}
	if _, err := s.Submit(t.Context(), endless); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if st := s.Stats(); st.PagesUsed != 0 || st.Running+st.Waiting != 0 {
		t.Errorf("%+v", st)
	}
}

// A fault costs the running requests; the waiting ones get their tokens from the next engine, and
// nothing of the old one's cache.
func TestRestart(t *testing.T) {
	o := Options{Settings: engine.Settings{Pages: 256, MaxNumBatchedTokens: 64, MaxNumSeqs: 2}}
	broken := errors.New("the device is gone")
	sim := newSim(o, 97, 128)
	var g gate
	g.hold(sim, 1)
	hold := sim.Before
	sim.Before = func(step int, b *engine.Batch) error {
		_ = hold(step, b)
		if step == 4 {
			return broken
		}
		return nil
	}
	restarts := 0
	o.Restart = func(fault error) (StepEngine, error) {
		if restarts++; !errors.Is(fault, broken) {
			t.Error(fault)
		}
		return newSim(Options{Settings: engine.Settings{Pages: 256, MaxNumBatchedTokens: 64}}, 97,
			128), nil
	}
	s := New(sim, o)
	defer s.Close()
	var streams []*Stream
	var want [][]Token
	for range 4 { // of equal prompts: a page of the old engine would be found
		r := TokenRequest{Prompt: prompt(100), MaxTokens: 8}
		streams = append(streams, submit(t, s, t.Context(), r))
		w, _ := alone(sim, s.o.MaxModelLen, r)
		want = append(want, w)
	}
	<-g.in
	close(g.out)
	failed := 0
	for i, st := range streams {
		got := drain(t, st)
		var fault *EngineError
		switch {
		case st.Finish() == FinishError && errors.As(st.Err(), &fault) && errors.Is(st.Err(),
			broken):
			failed++
		case st.Finish() != FinishLength || !slices.EqualFunc(got, want[i], func(id int32,
			t Token) bool {
			return id == t.ID
		}):
			t.Errorf("request %d: %v %q %v", i, got, st.Finish(), st.Err())
		}
	}
	if failed == 0 || failed > 2 || restarts != 1 || s.Stats().Faults != 1 {
		t.Errorf("%d failed, %d restarts, %+v", failed, restarts, s.Stats().Counts)
	}
}

func TestFailedRestartEndsEverything(t *testing.T) {
	o := Options{Settings: engine.Settings{Pages: 64, MaxNumBatchedTokens: 64, MaxNumSeqs: 1}}
	sim := newSim(o, 97, 128)
	sim.Before = func(int, *engine.Batch) error { return errors.New("gone") }
	no := errors.New("no card left")
	o.Restart = func(error) (StepEngine, error) { return nil, no }
	s := New(sim, o)
	defer s.Close()
	for range 3 {
		st, err := s.Submit(t.Context(), TokenRequest{Prompt: prompt(3)})
		if err != nil {
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			continue
		}
		if drain(t, st); st.Finish() != FinishError || st.Err() == nil {
			t.Errorf("%q %v", st.Finish(), st.Err())
		}
	}
	if _, err := s.Submit(t.Context(), TokenRequest{Prompt: prompt(3)}); !errors.Is(err,
		ErrClosed) {
		t.Error(err)
	}
}

// A decode never waits for more than two steps, whatever else is prefilled or rebuilt.
func TestRebuildDelaysNobody(t *testing.T) {
	look := func(*engine.Batch) {}
	o := Options{Settings: engine.Settings{Pages: 200, MaxNumBatchedTokens: 40},
		launch: func(b *engine.Batch) { look(b) }}
	s, _ := start(t, o)
	long := prompt(900)
	drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: long, MaxTokens: 1}))
	decoding := TokenRequest{Prompt: []int32{5}, MaxTokens: 400,
		Params: sample.Params{LogitBias: map[int32]float32{3: -100, 4: -100}}}
	worst, since, rebuilds := 0, 0, 0
	var others []*Stream
	look = func(b *engine.Batch) {
		if len(others) == 0 && b.Seqs[0].Start > 5 { // the decode runs
			// as a full pool would: the window pages that no cut needs are gone
			s.pool.EvictPassing()
			for _, p := range [][]int32{append(slices.Clone(long[:700]), 1, 2, 3),
				prompt(800)[200:]} {
				others = append(others, submit(t, s, t.Context(), TokenRequest{Prompt: p,
					MaxTokens: 1}))
			}
		}
		if since++; b.Rebuild {
			rebuilds++
		} else if b.Seqs[0].Rows == 1 {
			worst, since = max(worst, since), 0
		}
	}
	drain(t, submit(t, s, t.Context(), decoding))
	for _, st := range others {
		drain(t, st)
	}
	s.Close()
	t.Logf("%d steps of rebuilding, a decode is in one step of %d at least: %+v", rebuilds, worst,
		s.Stats().Counts)
	if worst > 2 || worst < 1 || rebuilds < 4 {
		t.Errorf("%d steps of rebuilding, a decode came in one step of %d", rebuilds, worst)
	}
}

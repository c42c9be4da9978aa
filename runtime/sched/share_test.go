package sched

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// endsWithin holds the engine at its fourth step, when many sequences of 300 tokens run and wait,
// submits one of four tokens, and tells whether that ends within so many steps more.
func endsWithin(t *testing.T, steps int, o Options, many int, crowd func() *Share,
	own *Share) bool {
	t.Helper()
	sim := newSim(o, 97, 128)
	var begin, end gate
	begin.hold(sim, 4)
	first := sim.Before
	end.hold(sim, 4+steps)
	last := sim.Before
	sim.Before = func(step int, b *engine.Batch) error {
		return errors.Join(first(step, b), last(step, b))
	}
	s := New(sim, o)
	defer s.Close()
	endless := sample.Params{LogitBias: map[int32]float32{3: -100}}
	var streams []*Stream
	for i := range many {
		streams = append(streams, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(10 + i),
			Params: endless, MaxTokens: 300, Share: crowd()}))
	}
	<-begin.in
	tiny := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(5), Params: endless,
		MaxTokens: 4, Share: own})
	ended := make(chan struct{})
	go func() {
		drain(t, tiny)
		close(ended)
	}()
	close(begin.out)
	<-end.in
	within := true
	select {
	case <-ended:
	case <-time.After(time.Second):
		within = false
	}
	close(end.out)
	for _, st := range streams {
		if ids := drain(t, st); len(ids) != 300 || st.Finish() != FinishLength {
			t.Fatalf("a sequence of the crowd has %d tokens, %q", len(ids), st.Finish())
		}
	}
	<-ended
	return within
}

// One request of many prompts, and one client of many requests, delay another's by a few steps,
// whether places or pages are short; among requests of one client that have one sequence each the
// older still go first.
func TestACrowdDelaysNobody(t *testing.T) {
	batch := &Share{}
	places := Options{Settings: engine.Settings{Pages: 2000, MaxNumBatchedTokens: 64,
		MaxNumSeqs: 8, MaxWaiting: 100}}
	pages := Options{Settings: engine.Settings{Pages: 60, MaxNumBatchedTokens: 64,
		MaxNumSeqs: 50, MaxWaiting: 100}}
	for try := range 4 { // submissions meet the planning of a step in several ways
		name, o := "places", places
		if try > 0 {
			name, o = "pages", pages
		}
		if !endsWithin(t, 12, o, 40, func() *Share { return batch }, &Share{}) {
			t.Errorf("%s are short: one request delays another", name)
		}
		flood := func() *Share { return &Share{Client: "flood"} }
		if !endsWithin(t, 12, o, 40, flood, &Share{Client: "other"}) {
			t.Errorf("%s are short: one client delays another", name)
		}
	}
	if endsWithin(t, 100, places, 40, func() *Share { return nil }, nil) {
		t.Error("it has overtaken older requests")
	}
}

// A sequence has all steps for itself while it runs, whatever waits in the background; that is
// complete and unchanged afterwards. Both kinds of engines, places and pages short or not.
func TestTheBackgroundYields(t *testing.T) {
	for _, o := range []engine.Settings{{Pages: 2000, MaxNumSeqs: 8}, {Pages: 60, MaxNumSeqs: 50},
		{Pages: 2000, MaxNumSeqs: 50}} {
		for _, onDevice := range []bool{false, true} {
			o.MaxNumBatchedTokens, o.MaxWaiting = 64, 1 // the background has no places
			sim := newSim(Options{Settings: o}, 97, 128)
			var begin gate
			begin.hold(sim, 12)
			first := sim.Before
			var mu sync.Mutex
			alone := []int32{} // where the only sequence of a step was
			sim.Before = func(step int, b *engine.Batch) error {
				mu.Lock()
				if step > 12 && step <= 18 && len(b.Seqs) == 1 {
					alone = append(alone, b.Seqs[0].Start)
				}
				mu.Unlock()
				return first(step, b)
			}
			var eng StepEngine = sim
			if onDevice {
				eng = simtest.NewDevice(sim)
			}
			s := New(eng, Options{Settings: o})
			params := sample.Params{LogitBias: map[int32]float32{3: -100}}
			var streams []*Stream
			for i := range 40 {
				streams = append(streams, submit(t, s, t.Context(), TokenRequest{
					Prompt: prompt(40 + i), Params: params, MaxTokens: 100,
					Share: &Share{Background: true}}))
			}
			<-begin.in
			tiny := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(5), Params: params,
				MaxTokens: 4, Share: &Share{Client: "a"}})
			close(begin.out)
			drain(t, tiny)
			for i, st := range streams {
				if ids := drain(t, st); len(ids) != 100 || st.Finish() != FinishLength {
					t.Fatalf("sequence %d of the background: %d tokens, %q", i, len(ids), st.Finish())
				}
			}
			mu.Lock()
			if !slices.Equal(alone, []int32{4, 5, 6, 7}) { // its beginning is cached
				t.Errorf("%+v, device %v: its steps are at %v", o, onDevice, alone)
			}
			mu.Unlock()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

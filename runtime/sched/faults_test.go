// Engines that fail: the step's requests end, or the one whose logits are broken.

package sched

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

func TestEngineErrorEndsTheRunningOnly(t *testing.T) {
	s, sim := start(t, Options{Settings: engine.Settings{MaxNumSeqs: 2}})
	broken := errors.New("the device is gone")
	var g gate
	g.hold(sim, 1)
	hold := sim.Before
	sim.Before = func(step int, b *engine.Batch) error {
		hold(step, b)
		if step == 3 {
			return broken
		}
		return nil
	}
	var streams []*Stream
	var want [][]Token
	for i := range 4 {
		r := TokenRequest{Prompt: prompt(3 + i), MaxTokens: 8}
		streams = append(streams, submit(t, s, t.Context(), r))
		w, _ := alone(sim, s.o.MaxModelLen, r)
		want = append(want, w)
	}
	<-g.in
	close(g.out)
	failed := 0
	for i, st := range streams {
		got := drain(t, st)
		switch st.Finish() {
		case FinishError:
			failed++
			if !errors.Is(st.Err(), broken) {
				t.Errorf("request %d: %v", i, st.Err())
			}
		case FinishLength:
			if len(got) != len(want[i]) || got[7] != want[i][7].ID {
				t.Errorf("request %d: %v", i, got)
			}
		default:
			t.Errorf("request %d: %q", i, st.Finish())
		}
	}
	if failed == 0 || failed > 2 {
		t.Fatalf("%d requests failed", failed)
	}
	if st := s.Stats(); st.PagesUsed != 0 && st.Running == 0 || st.Failed != uint64(failed) {
		t.Fatalf("%+v", st)
	}
}

// brokenRow gives one sequence a NaN.
type brokenRow struct{ *simtest.Engine }

func (e brokenRow) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	err := e.Engine.Step(ctx, b, logits)
	for i, r := range b.LogitRows {
		if b.Tokens[r] == 42 {
			logits[i*e.Spec().Vocab+5] = float32(math.NaN())
		}
	}
	return err
}

func TestNonFiniteLogitsEndOneRequest(t *testing.T) {
	sim := newSim(Options{Settings: engine.Settings{Pages: 64, MaxNumBatchedTokens: 64}}, 97, 128)
	s := New(brokenRow{sim}, Options{Settings: engine.Settings{Pages: 64,
		MaxNumBatchedTokens: 64}})
	defer s.Close()
	never := map[int32]float32{42: -100}
	bad := submit(t, s, t.Context(), TokenRequest{Prompt: []int32{1, 42}, MaxTokens: 5})
	good := submit(t, s, t.Context(), TokenRequest{Prompt: []int32{1, 2}, MaxTokens: 5,
		Params: sample.Params{LogitBias: never}})
	if got := drain(t, bad); len(got) != 0 || bad.Finish() != FinishError || !errors.Is(bad.Err(),
		sample.ErrNonFinite) {
		t.Fatalf("%v %q %v", got, bad.Finish(), bad.Err())
	}
	if got := drain(t, good); len(got) != 5 {
		t.Fatalf("%v %q %v", got, good.Finish(), good.Err())
	}
}

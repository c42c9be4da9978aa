// A base and its tunes in one scheduler, over the real engine.

package sched

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
)

// mixing counts the steps that had rows of several models, and those that rebuilt.
type mixing struct {
	*engine.InProcess
	steps, mixed, rebuilt int
}

func (e *mixing) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	e.steps++
	if b.Seqs[0].Tune != b.Seqs[len(b.Seqs)-1].Tune {
		e.mixed++
	}
	if b.Rebuild {
		e.rebuilt++
	}
	return e.InProcess.Step(ctx, b, logits)
}

// tuned opens T1 with adapters, in the first engine's checkpoint as tunes.
func tuned(t *testing.T, dev engine.Device, s engine.Settings, tunes [][]lora.Ref,
	own []lora.Ref) *mixing {
	t.Helper()
	found := checkpoint.Model{Path: filepath.Join(t1, "checkpoint"), Adapters: own}
	for _, refs := range tunes {
		found.Adapted = append(found.Adapted, checkpoint.Model{Path: found.Path, Adapters: refs})
	}
	ckpt := hosttest.Must(found.Open())(t)
	t.Cleanup(func() { ckpt.Close() })
	eng := hosttest.Must(engine.New(dev, ckpt, s))(t)
	t.Cleanup(func() { eng.Close() })
	return &mixing{InProcess: eng}
}

// TestTunesShareSteps: requests for a base and two tunes, with prompts that begin alike, in a pool
// that is too small for all of them: each gets the tokens that its model gives alone, in steps that
// have rows of several, finds its own model's pages only, and rebuilds their window pages.
func TestTunesShareSteps(t *testing.T) {
	dev := hosttest.Must(cpu.New(2))(t)
	defer dev.Close()
	tunes := [][]lora.Ref{nil}
	for _, name := range []string{"q", "router"} {
		ref := hosttest.Must(lora.Find("../../models/lora/testdata/" + name))(t)
		ref.Scale = 4 // for other tokens, not other logits alone
		tunes = append(tunes, []lora.Ref{ref})
	}
	settings := engine.Settings{Pages: 64, MaxNumBatchedTokens: 64}
	request := func(tune, i int) TokenRequest {
		prompt := append(story(200, 1), story(300-90*i, int32(i))...)
		return TokenRequest{Prompt: prompt, Tune: tune, MaxTokens: 12,
			Params: sample.Params{Logprobs: -1, Temperature: 0.2, Seed: uint64(100*tune + i)}}
	}
	const each = 4
	want := map[[2]int][]int32{}
	for tune, refs := range tunes {
		settings := settings
		settings.NoPrefixCaching = true
		s := New(tuned(t, dev, settings, nil, refs), Options{Settings: settings})
		for i := range each {
			r := request(tune, i)
			r.Tune = 0
			want[[2]int{tune, i}] = drain(t, submit(t, s, t.Context(), r))
		}
		s.Close()
	}
	if slices.Equal(want[[2]int{0, 0}], want[[2]int{1, 0}]) &&
		slices.Equal(want[[2]int{0, 0}], want[[2]int{2, 0}]) {
		t.Fatal("the models answer alike")
	}
	eng := tuned(t, dev, settings, tunes[1:], nil)
	work := make(chan func(), 1) // for the loop, which alone may touch its pool
	s := New(eng, Options{Settings: settings, Model: "base", Tunes: []string{"q", "router"},
		idle: func() {
			select {
			case f := <-work:
				f()
			default:
			}
		}})
	defer s.Close()
	if _, err := s.Submit(t.Context(), TokenRequest{Prompt: story(9, 1), Tune: 3}); err == nil {
		t.Error("a tune that is not there answers")
	}
	for tune := range tunes { // nothing of another model is found
		before := s.Stats().PrefixHits
		got := drain(t, submit(t, s, t.Context(), request(tune, 0)))
		if !slices.Equal(got, want[[2]int{tune, 0}]) {
			t.Errorf("model %d answers %v first, %v alone", tune, got, want[[2]int{tune, 0}])
		}
		if hits := s.Stats().PrefixHits - before; hits > 0 {
			t.Errorf("model %d finds %d tokens of another's", tune, hits)
		}
	}
	shed := make(chan struct{})
	work <- func() { s.pool.EvictPassing(); close(shed) } // window pages are computed again
	s.wake <- struct{}{}
	<-shed
	var all sync.WaitGroup
	for i := range each {
		for tune := range tunes {
			st := submit(t, s, t.Context(), request(tune, i))
			all.Go(func() {
				if got := drain(t, st); !slices.Equal(got, want[[2]int{tune, i}]) {
					t.Errorf("model %d, request %d: %v, and alone %v", tune, i, got,
						want[[2]int{tune, i}])
				}
			})
		}
	}
	all.Wait()
	st := s.Stats()
	if eng.mixed < eng.steps/4 || eng.rebuilt == 0 || st.PrefixHits == 0 {
		t.Errorf("of %d steps %d had rows of several models, %d rebuilt; %d tokens found",
			eng.steps, eng.mixed, eng.rebuilt, st.PrefixHits)
	}
	for tune := range tunes {
		if st := s.StatsOf(tune); st.Running != 0 || st.Waiting != 0 ||
			(st.Steps > 0) != (tune == 0) {
			t.Errorf("model %d: %+v", tune, st)
		}
	}
}

// A base and its adapters in one scheduler, over the real engine.

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
	if b.Seqs[0].Adapter != b.Seqs[len(b.Seqs)-1].Adapter {
		e.mixed++
	}
	if b.Rebuild {
		e.rebuilt++
	}
	return e.InProcess.Step(ctx, b, logits)
}

// adapted opens T1 with adapters of its own, and with those that are models of the same engine.
func adapted(t *testing.T, dev engine.Device, s engine.Settings, adapters [][]lora.Ref,
	own []lora.Ref) *mixing {
	t.Helper()
	found := checkpoint.Model{Path: filepath.Join(t1, "checkpoint"), Refs: own}
	ckpt := hosttest.Must(found.Open())(t)
	for _, refs := range adapters {
		found.Refs = refs
		ckpt.AddAdapter("", hosttest.Must(found.Open())(t))
	}
	t.Cleanup(func() { ckpt.Close() })
	eng := hosttest.Must(engine.New(dev, ckpt, s))(t)
	t.Cleanup(func() { eng.Close() })
	return &mixing{InProcess: eng}
}

// TestAdaptersShareSteps: requests for a base and two adapters, with prompts that begin alike, in a
// pool that is too small for all of them: each gets the tokens that its model gives alone, in steps
// that have rows of several, finds its own model's pages only, and rebuilds their window pages.
func TestAdaptersShareSteps(t *testing.T) {
	dev := hosttest.Must(cpu.New(2))(t)
	defer dev.Close()
	adapters := [][]lora.Ref{nil}
	for _, name := range []string{"q", "router"} {
		ref := hosttest.Must(lora.Find("../../models/lora/testdata/" + name))(t)
		ref.Scale = 4 // for other tokens, not other logits alone
		adapters = append(adapters, []lora.Ref{ref})
	}
	settings := engine.Settings{Pages: 64, MaxNumBatchedTokens: 64}
	request := func(adapter, i int) TokenRequest {
		prompt := append(story(200, 1), story(300-90*i, int32(i))...)
		return TokenRequest{Prompt: prompt, Adapter: adapter, MaxTokens: 12,
			Params: sample.Params{Logprobs: -1, Temperature: 0.2, Seed: uint64(100*adapter + i)}}
	}
	const each = 4
	want := map[[2]int][]int32{}
	for adapter, refs := range adapters {
		settings := settings
		settings.NoPrefixCaching = true
		s := New(adapted(t, dev, settings, nil, refs), Options{Settings: settings})
		for i := range each {
			r := request(adapter, i)
			r.Adapter = 0
			want[[2]int{adapter, i}] = drain(t, submit(t, s, t.Context(), r))
		}
		s.Close()
	}
	if slices.Equal(want[[2]int{0, 0}], want[[2]int{1, 0}]) &&
		slices.Equal(want[[2]int{0, 0}], want[[2]int{2, 0}]) {
		t.Fatal("the models answer alike")
	}
	eng := adapted(t, dev, settings, adapters[1:], nil)
	work := make(chan func(), 1) // for the loop, which alone may touch its pool
	s := New(eng, Options{Settings: settings, Model: "base",
		idle: func() {
			select {
			case f := <-work:
				f()
			default:
			}
		}})
	defer s.Close()
	if _, err := s.Submit(t.Context(), TokenRequest{Prompt: story(9, 1), Adapter: 3}); err == nil {
		t.Error("an adapter that is not there answers")
	}
	for adapter := range adapters { // nothing of another model is found
		before := s.Stats().PrefixHits
		got := drain(t, submit(t, s, t.Context(), request(adapter, 0)))
		if !slices.Equal(got, want[[2]int{adapter, 0}]) {
			t.Errorf("model %d answers %v first, %v alone", adapter, got, want[[2]int{adapter, 0}])
		}
		if hits := s.Stats().PrefixHits - before; hits > 0 {
			t.Errorf("model %d finds %d tokens of another's", adapter, hits)
		}
	}
	shed := make(chan struct{})
	work <- func() { s.pool.EvictPassing(); close(shed) } // window pages are computed again
	s.wake <- struct{}{}
	<-shed
	var all sync.WaitGroup
	for i := range each {
		for adapter := range adapters {
			st := submit(t, s, t.Context(), request(adapter, i))
			all.Go(func() {
				if got := drain(t, st); !slices.Equal(got, want[[2]int{adapter, i}]) {
					t.Errorf("model %d, request %d: %v, and alone %v", adapter, i, got,
						want[[2]int{adapter, i}])
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
	for adapter := range adapters {
		if st := s.StatsOf(adapter); st.Running != 0 || st.Waiting != 0 ||
			(st.Steps > 0) != (adapter == 0) {
			t.Errorf("model %d: %+v", adapter, st)
		}
	}
}

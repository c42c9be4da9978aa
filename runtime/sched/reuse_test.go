// Prefix reuse over the real engine: whatever the cache gives, the logits are those of a cold
// start.

package sched

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
)

// listening keeps the logits of the last row that was asked for.
type listening struct {
	*engine.InProcess
	last    []float32
	rows    int // computed, and of them rebuilt
	rebuilt int
}

func (e *listening) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	err := e.InProcess.Step(ctx, b, logits)
	if n := len(b.LogitRows); n > 0 {
		e.last = append(e.last[:0], logits[(n-1)*e.Spec().Vocab:n*e.Spec().Vocab]...)
	}
	e.rows += len(b.Tokens)
	if b.Rebuild {
		e.rebuilt += len(b.Tokens)
	}
	return err
}

// reuse opens the engine over T1 with a cache of that type.
func reuse(t *testing.T, pages int, kvType string) (*listening, func()) {
	t.Helper()
	dev := hosttest.Must(cpu.New(2))(t)
	ckpt := hosttest.Must(checkpoint.Open(filepath.Join(t1, "checkpoint")))(t)
	eng, err := engine.New(dev, ckpt, engine.Settings{Pages: pages, MaxNumBatchedTokens: 256,
		KVCacheDtype: kvType})
	if err != nil {
		t.Fatal(err)
	}
	return &listening{InProcess: eng}, func() { eng.Close(); ckpt.Close(); dev.Close() }
}

func story(n int, seed int32) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = (int32(i*i)*31 + int32(i)*17 + seed) % 1000
	}
	return ids
}

// A prompt that leaves a cached one at any place gets the logits of a cold start, bit for bit on
// this device, whether the window pages there are still in the pool, or the receptive field has to
// be computed again. The short run takes the cuts at the edges of pages, of the window and of the
// receptive field; the long one takes every cut.
func TestReuseAtEveryCut(t *testing.T) {
	t.Run("edges", func(t *testing.T) {
		reuseAt(t, 450, []int{1, 31, 32, 33, 96, 127, 128, 129, 160, 254, 255, 256, 287, 381, 382,
			450}, "")
	})
	t.Run("edges in fp8", func(t *testing.T) {
		reuseAt(t, 450, []int{1, 33, 128, 255, 287, 450},
			engine.KVFP8)
	})
	if os.Getenv("OSSRUN_LONG") == "" {
		return
	}
	for first := 1; first <= 448; first += 64 {
		t.Run(fmt.Sprint("from ", first), func(t *testing.T) {
			var at []int
			for cut := first; cut < first+64; cut++ {
				at = append(at, cut)
			}
			reuseAt(t, 448, at, "")
		})
	}
}

func reuseAt(t *testing.T, n int, at []int, kvType string) {
	eng, end := reuse(t, 256, kvType)
	defer end()
	field := engine.ReceptiveField(eng.Spec())
	if field != 2*127 {
		t.Fatalf("field %d", field)
	}
	base := story(n, 1)
	o := Options{Settings: engine.Settings{Pages: 256, MaxNumBatchedTokens: 256, MaxNumSeqs: 4}}
	greedy := sample.Params{Logprobs: -1}
	cold := func(prompt []int32) ([]int32, []float32) {
		o := o
		o.NoPrefixCaching = true
		s := New(eng, o)
		defer s.Close()
		ids := drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: prompt, MaxTokens: 2,
			Params: greedy}))
		return ids, slices.Clone(eng.last)
	}
	work := make(chan func(), 1) // for the loop, which alone may touch its pool
	o.idle = func() {
		select {
		case f := <-work:
			f()
		default:
		}
	}
	s := New(eng, o)
	defer func() { s.Close() }()
	saved, rebuilds, fullest, furthest := 0, 0, 0, 0.0
	for _, cut := range at {
		prompt := append(slices.Clone(base[:cut]), story(40, int32(cut))...)
		want, logits := cold(prompt)
		// Each cut meets the pages of the base alone: once with the window pages of its end, once
		// with those of the cut kept too.
		for _, cuts := range [][]int{nil, {cut}} {
			s.Close()
			s = New(eng, o)
			drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: base, MaxTokens: 1,
				Params: greedy,
				Cuts:   cuts}))
			shed := make(chan struct{})
			work <- func() { s.pool.EvictPassing(); close(shed) }
			s.wake <- struct{}{}
			<-shed
			rows, rebuilt := eng.rows, eng.rebuilt
			st := submit(t, s, t.Context(), TokenRequest{Prompt: prompt, MaxTokens: 2,
				Params: greedy})
			got := drain(t, st)
			if !slices.Equal(got, want) {
				t.Fatalf("cut %d: got %v, cold %v", cut, got, want)
			}
			worst := 0.0
			for i := range logits {
				worst = max(worst, math.Abs(float64(logits[i]-eng.last[i])))
			}
			if worst > 1e-3 {
				t.Fatalf("cut %d: a logit is %g off", cut, worst)
			}
			furthest = max(furthest, worst)
			cached := len(prompt) + 1 - (eng.rows - rows) // the last token is not computed
			if told := st.Timing().Cached; told != kv.WholePages(cached) {
				t.Fatalf("cut %d: %d are cached, and counted as %d", cut, cached, told)
			}
			saved += cached
			rebuilt = eng.rebuilt - rebuilt
			if rebuilt > 0 {
				rebuilds++
			}
			if rebuilt > field || rebuilt > 0 && cached+rebuilt < cut {
				t.Fatalf("cut %d: %d cached, %d rebuilt", cut, cached, rebuilt)
			}
			if cuts != nil {
				if cached < cut {
					t.Fatalf("cut %d, known before: only %d tokens are cached", cut, cached)
				}
				fullest++
			} else if cut-cached > field {
				t.Fatalf("cut %d: only %d tokens are cached, more than a receptive field is "+
					"computed", cut, cached)
			}
		}
	}
	t.Logf("%d cuts of %d: %d tokens cached, %d rebuilds, logits at most %g off", fullest, n, saved,
		rebuilds, furthest)
	// there the window pages are gone, and less than all that was cached is in the field
	if rebuilds == 0 && slices.Contains(at, 287) {
		t.Error("nothing was rebuilt")
	}
}

// Pages that went to host memory come back as they were, into a new engine too.
func TestSpillSurvivesReload(t *testing.T) {
	t.Run("f32", func(t *testing.T) { spillSurvives(t, "", 60) })
	t.Run("fp8", func(t *testing.T) { spillSurvives(t, engine.KVFP8, 80) })
}

func spillSurvives(t *testing.T, kvType string, pages int) {
	spill := hosttest.Must(kv.OpenSpill(kv.SpillOptions{HostBytes: 64 << 20}))(t)
	defer spill.Close()
	o := Options{Settings: engine.Settings{Pages: pages, MaxNumBatchedTokens: 256}, Spill: spill,
		Model: "T1"}
	first := story(400, 1)
	follow := append(slices.Clone(first), story(50, 9)...)
	greedy := sample.Params{Logprobs: -1}
	var want []int32
	for reload := range 2 {
		eng, end := reuse(t, o.Pages, kvType)
		if reload == 0 {
			cold := o
			cold.NoPrefixCaching = true
			s := New(eng, cold)
			want = drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: follow, MaxTokens: 8,
				Params: greedy}))
			s.Close()
		}
		s := New(eng, o)
		if reload == 0 {
			drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: first, MaxTokens: 1,
				Params: greedy}))
			for i := range 6 { // pushes the first one out
				drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: story(500, int32(i*100+50)),
					MaxTokens: 1, Params: greedy}))
			}
		}
		st := submit(t, s, t.Context(), TokenRequest{Prompt: follow, MaxTokens: 8, Params: greedy})
		if got := drain(t, st); !slices.Equal(got, want) {
			t.Errorf("load %d: got %v, cold %v", reload, got, want)
		}
		stats := s.Stats()
		if cached := st.Timing().Cached; cached < 384-127 || stats.SwappedIn == 0 {
			t.Errorf("load %d: %d cached, %+v", reload, cached, stats)
		}
		if host, _ := spill.Bytes(); host == 0 {
			t.Error("nothing was swapped out")
		}
		s.Close()
		end()
	}
}

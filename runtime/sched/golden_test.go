// The scheduler over the real engine on the host CPU, with the tiny checkpoint T1: the reference's
// greedy continuations must be the same whatever else runs, and sampled texts must be those of
// a request alone.

package sched

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
)

const t1 = "../../testdata/model/T1"

// newReal makes a scheduler over the engine; close it before the next one.
func newReal(t *testing.T, dev engine.Device, ckpt *checkpoint.Checkpoint, o Options) (s *Scheduler,
	close func()) {
	t.Helper()
	eng := hosttest.Must(engine.New(dev, ckpt, engine.Settings{Pages: o.Pages,
		MaxNumBatchedTokens: o.MaxNumBatchedTokens, Deterministic: o.Deterministic}))(t)
	s = New(eng, o)
	return s, func() {
		s.Close()
		if s.pool.Used() != 0 {
			t.Errorf("%d pages are lost", s.pool.Used())
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}
}

// goldenT1 opens the first golden model, its cases and a device for it.
func goldenT1(t *testing.T) (engine.Device, *checkpoint.Checkpoint, []golden.Case) {
	t.Helper()
	dev := hosttest.Must(cpu.New(2))(t)
	t.Cleanup(func() { dev.Close() })
	ckpt := hosttest.Must(checkpoint.Open(filepath.Join(t1, "checkpoint")))(t)
	t.Cleanup(func() { ckpt.Close() })
	cases := hosttest.Must(golden.Read(t1, ckpt.Spec.Vocab))(t)
	return dev, ckpt, cases
}

func TestGoldenThroughTheScheduler(t *testing.T) {
	dev, ckpt, cases := goldenT1(t)
	var alone [][]int32 // sampled texts, by case
	for _, c := range []struct {
		o       Options
		longest int  // prompts up to this length
		copies  int  // of each prompt
		preempt bool // the pool is too small for all
	}{
		// one by one
		{Options{Settings: engine.Settings{Pages: 64, MaxNumBatchedTokens: 256, MaxNumSeqs: 1}},
			200, 1, false},
		// all at once
		{Options{Settings: engine.Settings{Pages: 256, MaxNumBatchedTokens: 512}}, 200, 2, false},
		{Options{Settings: engine.Settings{Pages: 24, MaxNumBatchedTokens: 7}}, 200, 2, true},
		// small pool, small chunks
		{Options{Settings: engine.Settings{Pages: 80, MaxNumBatchedTokens: 100}}, 700, 1, false},
		{Options{Settings: engine.Settings{Pages: 200, MaxNumBatchedTokens: 512}}, 5000, 1, false},
		// the longest takes most of the pool
	} {
		if c.longest == 5000 && testing.Short() {
			continue
		}
		t.Run(fmt.Sprintf("pages=%d,rows=%d,seqs=%d", c.o.Pages, c.o.MaxNumBatchedTokens,
			c.o.MaxNumSeqs),
			func(t *testing.T) {
				s, end := newReal(t, dev, ckpt, c.o)
				defer end()
				type running struct {
					golden          int
					greedy, sampled *Stream
				}
				var all []running
				for range c.copies {
					for i, g := range cases {
						if len(g.Tokens) > c.longest {
							continue
						}
						r := TokenRequest{Prompt: g.Tokens, MaxTokens: len(g.Greedy),
							Params: sample.Params{Logprobs: -1}}
						run := running{golden: i, greedy: submit(t, s, t.Context(), r)}
						if len(g.Tokens) <= 200 {
							r.Params.Temperature, r.Params.TopP, r.Params.Seed = 1, 0.95, uint64(i)
							run.sampled = submit(t, s, t.Context(), r)
						}
						all = append(all, run)
					}
				}
				for _, run := range all {
					g := cases[run.golden]
					if got := drain(t, run.greedy); !slices.Equal(got, g.Greedy) {
						t.Errorf("%s (%v):\ngot  %v\nwant %v", g.Name, run.greedy.Err(), got,
							g.Greedy)
					}
					if run.sampled == nil {
						continue
					}
					got := drain(t, run.sampled)
					if len(alone) == run.golden {
						alone = append(alone, got)
					}
					if !slices.Equal(got, alone[run.golden]) || len(got) != len(g.Greedy) {
						t.Errorf("%s, sampled (%v):\ngot   %v\nalone %v", g.Name, run.sampled.Err(),
							got, alone[run.golden])
					}
				}
				if n := s.Stats().Preemptions; c.preempt && n == 0 {
					t.Error("nothing was preempted")
				} else {
					t.Logf("%+v", s.Stats())
				}
			})
	}
}

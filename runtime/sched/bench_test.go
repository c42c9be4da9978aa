// What scheduling costs.

package sched

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// nullEngine takes no processor time, so that a benchmark measures the scheduler alone. Its steps
// may take time, as a card's do.
type nullEngine struct {
	*simtest.Engine
	vocab int
	takes time.Duration
}

func (e nullEngine) Spec() models.Spec {
	return models.Spec{Vocab: e.vocab, Window: 128, MaxPosition: 1 << 30}
}

func (e nullEngine) Step(context.Context, *engine.Batch, []float32) error {
	if e.takes > 0 {
		time.Sleep(e.takes)
	}
	return nil
}

// BenchmarkStep is the cost of scheduling a step of 256 decodes: everything but the engine and the
// size of the vocabulary. Readers are the worst case of a server: one goroutine each.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		takes   time.Duration
		readers bool
	}{{0, false}, {2 * time.Millisecond, false}, {2 * time.Millisecond, true}} {
		readers := c.readers
		b.Run(fmt.Sprintf("step=%v,readers=%v", c.takes, readers), func(b *testing.B) {
			const seqs = 256
			s := New(nullEngine{Engine: new(simtest.Engine), vocab: 16, takes: c.takes},
				Options{Settings: engine.Settings{Pages: 1 << 20, MaxNumSeqs: seqs}})
			ctx, cancel := context.WithCancel(context.Background())
			var all sync.WaitGroup
			for range seqs {
				st, err := s.Submit(ctx, TokenRequest{Prompt: []int32{1},
					Params: sample.Params{Logprobs: -1}})
				if err != nil {
					b.Fatal(err)
				}
				if readers {
					all.Go(func() {
						for _, ok := st.Next(ctx); ok; _, ok = st.Next(ctx) {
						}
					})
				}
			}
			waitUntil(func() bool { return s.Stats().Running == seqs })
			b.ReportAllocs()
			b.ResetTimer()
			from, cpu := s.Stats().Steps, hosttest.ProcessTime()
			waitUntil(func() bool { return s.Stats().Steps >= from+uint64(b.N) })
			b.StopTimer()
			spent := hosttest.ProcessTime() - cpu
			b.ReportMetric(float64(spent.Microseconds())/float64(s.Stats().Steps-from),
				"cpu-us/step")
			cancel()
			all.Wait()
			s.Close()
		})
	}
}

// waitUntil polls until condition holds.
func waitUntil(condition func() bool) {
	for !condition() {
		time.Sleep(time.Millisecond)
	}
}

// newStopped is a scheduler with seqs waiting decodes whose goroutines have ended, so that tests
// call the parts of a step one by one.
func newStopped(seqs int) *Scheduler {
	s := New(nullEngine{Engine: new(simtest.Engine), vocab: 16}, Options{Settings: engine.Settings{
		Pages: 1 << 18, MaxNumSeqs: seqs}})
	s.Close()
	for range seqs {
		r := TokenRequest{Prompt: []int32{1}}
		s.waiting = append(s.waiting, newSequence(r, nil, s.spec, s.o.MaxModelLen,
			newStream(context.Background(), 1, s.o.now)))
	}
	return s
}

// scheduleStep makes the decisions of a step, without engine, sampling and readers. It returns the
// processor time between two steps, and that of the work that overlaps a step.
func (s *Scheduler) scheduleStep() (loop, overlap time.Duration) {
	began := hosttest.ThreadTime()
	s.finishPlan()
	s.assemble()
	s.publish()
	planning := hosttest.ThreadTime()
	s.prepare()
	ran := hosttest.ThreadTime()
	for _, q := range s.sampling {
		q.newTokens = append(q.newTokens, Token{SampledToken: engine.SampledToken{ID: 5}})
	}
	s.counts.Steps++
	s.advance()
	s.out = s.out[:0]
	return hosttest.ThreadTime() - ran + planning - began, ran - planning
}

func BenchmarkScheduling(b *testing.B) {
	s := newStopped(256)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var loop, overlap time.Duration
	b.ReportAllocs()
	for b.Loop() {
		l, p := s.scheduleStep()
		loop, overlap = loop+l, overlap+p
	}
	b.ReportMetric(float64(loop.Nanoseconds())/1000/float64(b.N), "loop-us")
	b.ReportMetric(float64(overlap.Nanoseconds())/1000/float64(b.N), "beside-us")
}

// Scheduling a step of 256 sequences takes few allocations, independent of the length of the
// history, and happens during the previous step. BenchmarkScheduling measures its time.
func TestSchedulingIsCheap(t *testing.T) {
	const seqs, steps, mostAllocations, mostBytes = 256, 400, 8, 64 << 10
	s := newStopped(seqs)
	for _, history := range []int{100, 8000} {
		for s.counts.Steps < uint64(history) {
			s.scheduleStep()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocations := testing.AllocsPerRun(steps, func() { s.scheduleStep() })
		runtime.ReadMemStats(&after)
		bytes := (after.TotalAlloc - before.TotalAlloc) / steps
		t.Logf("after %d steps: %.0f allocations and %d bytes a step", history, allocations, bytes)
		if allocations > mostAllocations || bytes > mostBytes {
			t.Errorf("after %d steps %.0f allocations and %d bytes a step, not %d and %d", history,
				allocations, bytes, mostAllocations, mostBytes)
		}
	}
	if len(s.running) != seqs || s.counts.Ahead+2 < s.counts.Steps {
		t.Errorf("%d sequences run, %d of %d steps were planned ahead", len(s.running),
			s.counts.Ahead, s.counts.Steps)
	}
}

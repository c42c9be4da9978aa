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

// nullEngine costs no processor time, so that a benchmark sees the scheduler alone; its steps may
// take time, as a card's do.
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
			until(func() bool { return s.Stats().Running == seqs })
			b.ReportAllocs()
			b.ResetTimer()
			from, cpu := s.Stats().Steps, hosttest.ProcessTime()
			until(func() bool { return s.Stats().Steps >= from+uint64(b.N) })
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

// until waits for what the scheduler says of itself.
func until(is func() bool) {
	for !is() {
		time.Sleep(time.Millisecond)
	}
}

// byHand is a scheduler of that many decodes whose goroutines have ended, so that the parts of a
// step can be called one by one.
func byHand(seqs int) *Scheduler {
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

// scheduleStep makes only the decisions of a step: no engine, no sampling and no
// readers. It gives the processor time of the part between two steps, and of the part during the
// step.
func (s *Scheduler) scheduleStep() (loop, beside time.Duration) {
	began := hosttest.ThreadTime()
	s.settle()
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
	s := byHand(256)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var loop, beside time.Duration
	b.ReportAllocs()
	for b.Loop() {
		l, p := s.scheduleStep()
		loop, beside = loop+l, beside+p
	}
	b.ReportMetric(float64(loop.Nanoseconds())/1000/float64(b.N), "loop-us")
	b.ReportMetric(float64(beside.Nanoseconds())/1000/float64(b.N), "beside-us")
}

// A step of 256 sequences is scheduled with few allocations, as many with a long history as with a
// short one, and ahead of the one before it. What it takes is BenchmarkScheduling's.
func TestSchedulingIsCheap(t *testing.T) {
	const seqs, steps, mostAllocations, mostBytes = 256, 400, 8, 64 << 10
	s := byHand(seqs)
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

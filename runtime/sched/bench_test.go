// What scheduling costs.

package sched

import (
	"context"
	"fmt"
	"runtime"
	"slices"
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
			for s.Stats().Running < seqs {
				time.Sleep(time.Millisecond)
			}
			b.ReportAllocs()
			b.ResetTimer()
			from, cpu := s.Stats().Steps, hosttest.ProcessTime()
			for s.Stats().Steps < from+uint64(b.N) {
				time.Sleep(time.Millisecond)
			}
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

// scheduleStep is what is decided for a step, and nothing else: no engine, no sampling and no
// readers. It gives the processor time of the part between two steps, and of the part beside the
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
		q.got = append(q.got, Token{SampledToken: engine.SampledToken{ID: 5}})
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

// yardstick is work that a busy neighbour slows as it does scheduling: counting in a map, and
// sorting.
func yardstick(counts map[string]int, names []string, order []int) time.Duration {
	began := hosttest.ThreadTime()
	for range 4 {
		clear(counts)
		for i, name := range names {
			counts[name]++
			order[i] = i * 7919 % len(names)
		}
		slices.Sort(order)
	}
	return hosttest.ThreadTime() - began
}

// A step of 256 sequences is scheduled in less than 1.8 yardsticks of processor time, the part
// beside the engine included. It takes one, 38 microseconds on a core of its own and 61 beside a
// busy one; three programs on two cores, which take its caches away, make it 1.4. The best of
// several rounds counts, of both.
func TestSchedulingIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: a time is measured, and -short runs go with the race detector")
	}
	const seqs, rounds, steps = 256, 8, 400
	s := byHand(seqs)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	counts, names, order := map[string]int{}, make([]string, seqs), make([]int, seqs)
	for i := range names {
		names[i] = fmt.Sprint(i % 64)
	}
	best, least := time.Hour, time.Hour
	for range rounds {
		var sum, stick time.Duration
		for range steps {
			loop, beside := s.scheduleStep()
			sum += loop + beside
			stick += yardstick(counts, names, order)
		}
		best, least = min(best, sum/steps), min(least, stick/steps)
	}
	if len(s.running) != seqs || s.counts.Ahead+2 < s.counts.Steps {
		t.Fatalf("%d sequences run, %d of %d steps were planned ahead", len(s.running),
			s.counts.Ahead, s.counts.Steps)
	}
	ratio := float64(best) / float64(least)
	if t.Logf("%v a step, %.2f of %v", best, ratio, least); ratio > 1.8 {
		t.Errorf("a step of %d sequences takes %v to schedule, %.2f times the yardstick's %v", seqs,
			best, ratio, least)
	}
}

// What scheduling costs.

package sched

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// nullEngine costs no processor time, so that a benchmark sees the scheduler alone; its steps may take time, as a card's do.
type nullEngine struct {
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

// cpuTime is what the process has used of all cores. On a machine that others use too it is what counts.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStep is the cost of scheduling a step of 256 decodes: everything but the engine and the size of the
// vocabulary. Readers are the worst case of a server: one goroutine each.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		takes   time.Duration
		readers bool
	}{{0, false}, {2 * time.Millisecond, false}, {2 * time.Millisecond, true}} {
		readers := c.readers
		b.Run(fmt.Sprintf("step=%v,readers=%v", c.takes, readers), func(b *testing.B) {
			const seqs = 256
			s := New(nullEngine{vocab: 16, takes: c.takes}, Options{Pages: 1 << 20, MaxSeqs: seqs})
			ctx, cancel := context.WithCancel(context.Background())
			var all sync.WaitGroup
			for range seqs {
				st, err := s.Submit(ctx, Request{Prompt: []int32{1}, Params: sample.Params{Logprobs: -1}})
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
			from, cpu := s.Stats().Steps, cpuTime()
			for s.Stats().Steps < from+uint64(b.N) {
				time.Sleep(time.Millisecond)
			}
			b.StopTimer()
			b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(s.Stats().Steps-from), "cpu-us/step")
			cancel()
			all.Wait()
			s.Close()
		})
	}
}

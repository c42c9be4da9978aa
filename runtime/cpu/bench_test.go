package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// BenchmarkOps: each operation at the published width, in GB/s of what it has to move and as a part
// of the bandwidth that plain reads reach.
//
//	go test ./runtime/cpu -run '^$' -bench Ops -benchtime 1x
func BenchmarkOps(b *testing.B) {
	read := measureBandwidth(b)
	for _, isa := range cpu.ISAs() {
		for _, rows := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d rows", isa, rows), func(b *testing.B) {
				for b.Loop() {
					err := enginetest.Ops(b.Context(), open(b, 0),
						engine.Settings{ISA: isa, KVCacheDtype: "bf16"},
						nil, []enginetest.Shape{enginetest.Published(rows)},
						func(r enginetest.OpResult) {
							fmt.Fprintf(os.Stderr,
								"%-6s %-22s %d rows %10v %8.2f GB/s %5.1f %% of reads\n", isa, r.Op,
								rows, r.Time, r.GBs(), 100*r.GBs()*1e9/read)
						})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// measureBandwidth is the best of a few reads of memory that no cache holds, bytes a second.
func measureBandwidth(b testing.TB) (best float64) {
	dev := open(b, 0).(*cpu.Device)
	data := make([]byte, 512<<20)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1 // a page of its own
	}
	for range 5 {
		best = max(best, dev.Bandwidth(data))
	}
	fmt.Fprintf(os.Stderr, "plain reads: %.1f GB/s on %d threads\n", best/1e9, cpu.Cores())
	return best
}

// BenchmarkFewLogits: the unembedding of the 20b in 8 bits where masks allow so many tokens, as a
// part of what all of them take.
//
//	go test ./runtime/cpu -run '^$' -bench FewLogits -benchtime 20x
func BenchmarkFewLogits(b *testing.B) {
	spec := models.Spec20B()
	spec.Layers = 1
	ckpt, err := checkpoint.Synthetic(spec, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer ckpt.Close()
	eng, err := engine.New(open(b, 0), ckpt, engine.Settings{Dense: engine.DenseQ8, Pages: 2,
		Compute: engine.Int8, MaxNumBatchedTokens: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer eng.Close()
	batch := engine.Batch{Tokens: []int32{1}, LogitRows: []int32{0},
		Seqs: []engine.SeqRows{{Rows: 1, Full: []int32{0}, Window: []int32{1}}}}
	logits := make([]float32, spec.Vocab)
	unembed := func(wanted func() []uint64) int64 {
		batch.LogitMask = wanted
		times, err := eng.Measure(b.Context(), &batch, logits)
		if err != nil {
			b.Fatal(err)
		}
		return times[len(times)-1].Nanoseconds
	}
	for _, few := range []int{1, 30, 1000, 25_000, 200_000} {
		b.Run(fmt.Sprintf("%d tokens", few), func(b *testing.B) {
			mask := make([]uint64, (spec.Vocab+63)/64)
			for range few {
				id := rand.IntN(spec.Vocab)
				mask[id/64] |= 1 << (id % 64)
			}
			var ratios []float64
			for b.Loop() {
				all := unembed(nil)
				ratios = append(ratios, float64(unembed(func() []uint64 { return mask }))/
					float64(all))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "of-all")
			b.ReportMetric(0, "ns/op")
		})
	}
}

package cpu_test

import (
	"fmt"
	"os"
	"testing"

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
						[]enginetest.Shape{enginetest.Published(rows)}, true,
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

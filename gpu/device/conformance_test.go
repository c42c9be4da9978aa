package device

import (
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// The suite that every Device passes, with the real kernels run by emulation.

// TestOps: every operation alone, on both vendors' warps and both kinds of cache.
func TestOps(t *testing.T) {
	for i, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			dev, _ := open(t, api)
			o := engine.Options{KV: []string{"f32", "bf16"}[i]}
			start := time.Now()
			err := enginetest.Ops(t.Context(), dev, o, enginetest.Small(), false, func(r enginetest.OpResult) {
				t.Logf("%-24s %-32s %.1e of %.1e, %v", r.Op, r.Shape, r.Error, r.Bound, time.Since(start).Round(time.Millisecond))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

package cpu_test

import (
	"fmt"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// TestOps: every operation alone, on every instruction set, cache type and number of threads.
func TestOps(t *testing.T) {
	for _, isa := range isas {
		for threads, kv := range map[int]string{1: "f32", 2: "bf16", 3: engine.KVFP8} {
			t.Run(fmt.Sprintf("%s/%d threads/%s", isa, threads, kv), func(t *testing.T) {
				needISA(t, isa)
				err := enginetest.Ops(t.Context(), open(t, threads),
					engine.Settings{ISA: isa, KVCacheDtype: kv}, enginetest.Small(), nil,
					func(enginetest.OpResult) {})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

package cpu

import (
	"fmt"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// TestOps: every operation alone, on every instruction set, cache type and number of threads.
func TestOps(t *testing.T) {
	for _, isa := range []string{"scalar", "avx2", "avx512"} {
		for threads := 1; threads <= 3; threads++ {
			for _, kv := range []string{"f32", "bf16"} {
				t.Run(fmt.Sprintf("%s/%d threads/%s", isa, threads, kv), func(t *testing.T) {
					needISA(t, isa)
					dev := open(t, threads)
					enginetest.Ops(dev, engine.Options{ISA: isa, KV: kv}, enginetest.Small(), false, func(r enginetest.OpResult) {
						if r.Failure != nil {
							t.Errorf("%s, %s: %v", r.Op, r.Shape, r.Failure)
						}
					})
				})
			}
		}
	}
}

// open makes a device that the test closes.
func open(t testing.TB, threads int) engine.Device {
	t.Helper()
	dev, err := New(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// needISA skips, by name, what this machine cannot run.
func needISA(t testing.TB, isa string) {
	t.Helper()
	if _, err := chooseISA(isa); err != nil {
		t.Skip(err)
	}
}

package cpu_test

import (
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Helpers of this folder's tests. They are outside of package cpu: a test file inside would
// have the go command compile all of the engine's C++ a second time, for the package under test.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testdata = "../../testdata/model/"

// isas are all the instruction sets there are kernels for; what this machine lacks is skipped by
// name.
var isas = []string{"scalar", "neon", "i8mm", "bf16", "avx2", "avxvnni", "avx512", "vbmi", "amx"}

// long skips a test that takes minutes, unless OSSRUN_LONG asks for those.
func long(t testing.TB) {
	t.Helper()
	if os.Getenv("OSSRUN_LONG") == "" {
		t.Skip("slow: set OSSRUN_LONG=1")
	}
}

// open makes a device that the test closes.
func open(t testing.TB, threads int) engine.Device {
	t.Helper()
	dev, err := cpu.New(threads)
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
	if have := cpu.ISAs(); !slices.Contains(have, isa) {
		t.Skipf("instruction set %q is not to be had here: this machine has %v", isa, have)
	}
}

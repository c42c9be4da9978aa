package drivertest

// A machine for tests that open GPUs as the program does, by the driver library's name.

import (
	"os"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
)

// Use makes the fake the only driver of the test, as NVIDIA's; no kernels are proved on it.
// What the test does not give back fails it.
func Use(t testing.TB, m Machine) *Fake {
	t.Helper()
	f, err := Open(driver.CUDA, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OSSRUN_LIBCUDA", f.Path)
	t.Setenv("OSSRUN_LIBAMDHIP64", "")
	t.Setenv("OSSRUN_UNPROVED", "1")
	t.Cleanup(func() {
		if left := f.Leaks(); left != "" {
			t.Errorf("not given back: %s", left)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Long skips a test that takes its time by emulation, unless OSSRUN_LONG asks for it. CI's step gpu
// names it, or its name ends in Long: then .ci/long alone runs it.
func Long(t testing.TB) {
	t.Helper()
	if !long() {
		t.Skip("slow by emulation: set OSSRUN_LONG=1")
	}
}

// Some are the first n of a test's cases; all of them with OSSRUN_LONG, as in CI's step gpu, which
// names the test.
func Some[T any](n int, cases []T) []T {
	if long() {
		return cases
	}
	return cases[:n]
}

func long() bool { return os.Getenv("OSSRUN_LONG") != "" }

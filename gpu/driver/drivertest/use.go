package drivertest

// A machine for tests that open GPUs as the program does, by the driver library's name.

import (
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

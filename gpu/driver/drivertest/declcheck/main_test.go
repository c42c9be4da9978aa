package main

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
)

// TestSource: every name of the table is checked, with its own arguments. That headers agree is
// .ci/run's to find.
func TestSource(t *testing.T) {
	for _, api := range []driver.API{driver.CUDA, driver.HIP} {
		source, n := Source(api)
		if got := strings.Count(source, "\nstatic_assert("); got != n || n < 50 {
			t.Errorf("%s: %d checks are written, %d counted", api, got, n)
		}
	}
	source, _ := Source(driver.HIP)
	for _, want := range []string{`static_cast<decltype(&hipMemcpyPeerAsync)>(nullptr), "wiwiww")`,
		"static_cast<int>(hipErrorNotReady) == 600"} {
		if !strings.Contains(source, want) {
			t.Errorf("no %s", want)
		}
	}
}

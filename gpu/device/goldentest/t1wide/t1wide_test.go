// T1 on warps of 64.
package t1wide_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/device/goldentest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGolden: prompts prefilled on the matrix unit and continued by the decode kernels.
func TestGolden(t *testing.T) {
	goldentest.Hold(t, golden.Options{Only: goldentest.To700}, device.Options{Arch: "gfx942"}, "T1",
		[]string{engine.Exact})
}

// T1 on warps of 32, prompts to 128 tokens.
package t1_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/device/goldentest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGolden: prompts prefilled on the matrix unit and continued by the decode kernels,
// as the numbers are and in the mode that rounds, which is a card's own choice.
func TestGolden(t *testing.T) {
	goldentest.Hold(t, golden.Options{Only: goldentest.To128}, device.Options{Arch: "sm_90"}, "T1",
		[]string{engine.Exact, engine.Rounded})
}

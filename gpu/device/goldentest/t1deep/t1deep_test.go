// T1 on warps of 32, prompts from 129 to 700 tokens.
package t1deep_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/device/goldentest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGolden: prompts prefilled on the matrix unit and continued by the decode kernels,
// as the numbers are and, in CI's step long-forms, in the mode that rounds, a card's own choice.
func TestGolden(t *testing.T) {
	modes := []string{engine.Exact}
	if os.Getenv("OSSRUN_LONG") != "" {
		modes = append(modes, engine.Rounded)
	}
	goldentest.Hold(t, golden.Options{Only: goldentest.From129}, device.Options{Arch: "sm_90"}, "T1",
		modes)
}

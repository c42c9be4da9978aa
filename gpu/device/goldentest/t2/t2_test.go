// T2 on warps of 32 and of 64.
package t2_test

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
// as the numbers are and, on warps of 32, in the mode that rounds, which is a card's own choice.
func TestGolden(t *testing.T) {
	for arch, modes := range map[string][]string{"sm_90": {engine.Exact, engine.Rounded},
		"gfx942": {engine.Exact}} {
		t.Run(arch, func(t *testing.T) {
			goldentest.Hold(t, golden.Options{Only: goldentest.To700}, device.Options{Arch: arch},
				"T2", modes)
		})
	}
}

// TestGoldenFP8: keys and values of the full layers in 8 bits, on a short prompt and what follows
// it, within the bounds of a bfloat16 engine.
func TestGoldenFP8(t *testing.T) {
	o := golden.Options{Only: []string{"len31"},
		Engine: engine.Settings{KVCacheDtype: engine.KVFP8}}
	goldentest.Hold(t, o, device.Options{Arch: "sm_90"}, "T2", []string{engine.Exact})
}

package device

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/modeltest"
)

// TestProveWidth: all rows of the self-test, on a model that emulation has the time for; a launch
// that is lost in one of its rounds is found and named, and the kernel is out of use.
func TestProveWidth(t *testing.T) {
	spec := modeltest.Tiny()
	spec.MaxPosition = 1000
	for _, x := range drivertest.Some(2, []struct {
		kernel, variant string
		rows            int
	}{
		{"", "", 1}, {"decode_gate_up", "decode_gate_up", 1},
		{"", "", 4}, {"", "", 16}, {"", "", 17}, {"", "", 129},
		{"decode_route", "decode_route", 17},
		{"prefill_down_wgmma", "prefill_gate_up_wgmma", 17},
	}) {
		t.Run(x.kernel, func(t *testing.T) {
			dev, f := openWith(t, driver.CUDA, Options{Arch: "sm_90"})
			if x.kernel != "" {
				f.Skip(x.kernel, 3)
			}
			got, err := dev.ProveWidth(t.Context(), spec, x.rows, 3)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Proofs) < 4 {
				t.Errorf("%+v", got)
			}
			for _, p := range got.Proofs {
				wrong := string(p.Variant) == x.variant
				if p.OK == wrong || wrong != strings.Contains(p.Why, "has other bits") ||
					wrong == dev.enabled(p.Variant) {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

package device

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
)

// TestProveSampling: the card's choices are the host's in every way to choose; kernels that leave
// something else are found, and the host chooses from then on.
func TestProveSampling(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			dev, _ := open(t, api)
			p, err := dev.proveSampling(t.Context(), 333, []int{1, 9, 24})
			if err != nil || !p.OK || p.Error <= 0 || p.Error > p.Bound || !dev.Caps().Samples {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	// kernels of the same arguments
	for wrong, instead := range map[string]string{"edit_logits": "logit_stats"} {
		t.Run(wrong, func(t *testing.T) {
			dev, _ := open(t, driver.CUDA)
			f, err := dev.function(instead)
			if err != nil {
				t.Fatal(err)
			}
			dev.kernels.functions[wrong] = f
			p, err := dev.ProveSampling(t.Context(), 200)
			if err != nil || p.OK || !strings.Contains(p.Why, "the host's is") ||
				dev.Caps().Samples {
				t.Errorf("%+v, %v, chooses on: %v", p, err, dev.Caps().Samples)
			}
		})
	}
}

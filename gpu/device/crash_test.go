package device

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestCrashedVariant: a kernel that loses the card is named, everything is given back, and the card
// can be opened again.
func TestCrashedVariant(t *testing.T) {
	f := hosttest.Must(drivertest.Open(driver.CUDA, drivertest.Machine{}))(t)
	for kernel, want := range map[string][]Variant{"decode_qkv_f32_4": {DecodeQKV},
		"matrix_rate_wgmma": variantsOf(kernels.WGMMA)} {
		dev, err := Open(f.Driver, Options{Arch: "sm_90"})
		if err != nil {
			t.Fatalf("%s: %v", kernel, err)
		}
		f.Break(kernel)
		_, err = dev.Prove(t.Context(), func(Trial) {})
		var crash *CrashError
		if !errors.As(err, &crash) || !slices.Equal(crash.Variants, want) ||
			!errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), kernel+
			": touched memory") {
			t.Fatalf("%s: %v", kernel, err)
		}
		if _, err := dev.Alloc(1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the card goes on: %v", err)
		}
		if err := dev.Close(); !errors.Is(err, driver.ErrLost) {
			t.Errorf("close: %v", err)
		}
		if left := f.Leaks(); left != "" {
			t.Errorf("not given back: %s", left)
		}
		f.Break("")
	}
	dev := hosttest.Must(Open(f.Driver, Options{Arch: "sm_90"}))(t)
	r := hosttest.Must(dev.Alloc(1))(t)
	hosttest.Check(t, errors.Join(r.Free(), dev.Close(), f.Close()))
}

// Package goldentest compares a card with what other implementations computed from the same
// prompts: all of golden/model through the fake driver, which runs the real kernels by emulation.
// CI's step gpu runs all parts (OSSRUN_LONG), go test the first, twelve tokens after its prompt.
package goldentest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// to700 are the prompts but T1's one of 5,000 tokens, which takes as long as all others together.
var to700 = []string{"len1", "len2", "len31", "len128", "len129", "len200", "len700"}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGolden: prompts prefilled on the matrix unit and continued by the decode kernels, as the
// numbers are and in the mode that rounds, which is a card's own choice; and keys and values of the
// full layers in 8 bits on a short prompt, within the bounds of a bfloat16 engine.
func TestGolden(t *testing.T) {
	exact, both := []string{engine.Exact}, []string{engine.Exact, engine.Rounded}
	fp8 := engine.Settings{KVCacheDtype: engine.KVFP8}
	steady := engine.Settings{Deterministic: true}
	for _, part := range drivertest.Some(1, []struct {
		name, arch, model string
		o                 golden.Options
		modes             []string
	}{
		{"T2 short", "sm_90", "T2", golden.Options{Only: []string{"len31"}, Greedy: 12}, exact},
		{"T2 FP8", "sm_90", "T2", golden.Options{Only: []string{"len31"}, Engine: fp8}, exact},
		{"T2 deterministic", "sm_90", "T2", golden.Options{Only: to700[2:6], Greedy: 12,
			Engine: steady}, both},
		{"T2 wide", "gfx942", "T2", golden.Options{Only: to700}, exact},
		{"T2", "sm_90", "T2", golden.Options{Only: to700}, both},
		{"T1 wide", "gfx942", "T1", golden.Options{Only: to700}, exact},
		{"T1", "sm_90", "T1", golden.Options{Only: to700}, both},
	}) {
		t.Run(part.name, func(t *testing.T) {
			hold(t, part.o, device.Options{Arch: part.arch}, part.model, part.modes)
		})
	}
}

// coarsest is MXFP4 on both sides if the card has it, else rounding to bfloat16.
const coarsest = "coarsest"

// hold runs cases of a model in modes (nil: all that the device has) on a fake card, and checks
// that nothing stays allocated.
func hold(t *testing.T, o golden.Options, how device.Options, model string, modes []string) {
	t.Helper()
	f := open(t, how.Arch)
	dev := hosttest.Must(device.Open(f.Driver, how))(t)
	if slices.Equal(modes, []string{coarsest}) {
		modes = []string{engine.Rounded}
		if dev.Caps().Has(engine.MX) {
			modes = []string{engine.MX}
		}
	}
	folder := filepath.Join(drivertest.Root(), "testdata", "model", model)
	ok, err := o.Run(t.Context(), folder, engine.On(dev), modes,
		func(r golden.CaseResult) {
			t.Logf("%-6s %-8s max abs %.1e, KL mean %.1e, median %.1e, max %.1e, largest logit "+
				"%d/%d, greedy %d/%d, %v %v",
				r.Mode, r.Case, r.MaxAbs, r.KLMean, r.KLMedian, r.KLMax, r.Agree, r.Of, r.Greedy,
				r.GreedyOf, r.Elapsed.Round(1e6), r.Misses)
		})
	if err != nil || !ok {
		t.Errorf("passed: %v, error: %v", ok, err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if left := f.Leaks(); left != "" {
		t.Errorf("not given back: %s", left)
	}
}

// open opens the fake driver of a card's vendor. NVIDIA's reports the card's capability; AMD's has
// no field for it.
func open(t *testing.T, arch string) *drivertest.Fake {
	t.Helper()
	api, m := driver.HIP, drivertest.Machine{}
	if digits, nvidia := strings.CutPrefix(arch, "sm_"); nvidia {
		card := hosttest.Must(strconv.Atoi(digits))(t)
		api, m = driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake " + arch, Major: card / 10,
			Minor: card % 10, Memory: 64 << 30}
	}
	f := hosttest.Must(drivertest.Open(api, m))(t)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

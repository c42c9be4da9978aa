// Package goldentest compares a card with what other implementations computed from the same
// prompts: all of golden/model through the fake driver, which runs the real kernels by emulation.
// The tests lie in folders below. Each is a process of its own, so that they run side by side and
// none exceeds go test's time limit on a busy machine. The long ones are here. With OSSRUN_LONG, as
// in CI's step long-forms, all 48 tokens behind a prompt are decoded, else the first twelve; warps
// of 64 get all prompts, else those to 128 tokens.
package goldentest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The prompts but T1's one of 5,000 tokens, which takes as long as all the others together.
var (
	To128   = []string{"len1", "len2", "len31", "len128"}
	From129 = []string{"len129", "len200", "len700"}
	To700   = append(slices.Clone(To128), From129...)
)

// Coarsest stands for MXFP4 on both sides where the card has it, else for rounding to bfloat16.
const Coarsest = "coarsest"

// Hold runs cases of a model in modes (nil: all that the device has) on a fake card, and checks
// that nothing stays allocated.
func Hold(t *testing.T, o golden.Options, how device.Options, model string, modes []string) {
	t.Helper()
	if os.Getenv("OSSRUN_LONG") == "" {
		o.Greedy = 12
		if how.Arch == "gfx942" {
			o.Only = To128
		}
	}
	f := open(t, how.Arch)
	dev, err := device.Open(f.Driver, how)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(modes, []string{Coarsest}) {
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
		card, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		api, m = driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake " + arch, Major: card / 10,
			Minor: card % 10, Memory: 64 << 30}
	}
	f, err := drivertest.Open(api, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

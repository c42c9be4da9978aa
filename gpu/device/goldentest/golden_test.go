// Package goldentest compares a card with what other implementations computed from the same
// prompts: all of golden/model through the fake driver, which runs the real kernels by emulation.
// With OSSRUN_LONG, as in CI's step long-forms, all 48 tokens behind a prompt are decoded, else the
// first twelve; warps of 64 get all prompts, else those to 128 tokens.
package goldentest

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The prompts but T1's one of 5,000 tokens, which takes as long as all the others together.
var (
	to128   = []string{"len1", "len2", "len31", "len128"}
	from129 = []string{"len129", "len200", "len700"}
	to700   = append(slices.Clone(to128), from129...)
)

var here = flag.Bool("here", false, "the parts of TestGolden run in this process")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGolden: prompts prefilled on the matrix unit and continued by the decode kernels, as the
// numbers are and in the mode that rounds, which is a card's own choice; and keys and values of the
// full layers in 8 bits on a short prompt, within the bounds of a bfloat16 engine. Each part is a
// process of its own, so that they run side by side: a process has one fake driver of a vendor.
func TestGolden(t *testing.T) {
	exact, both := []string{engine.Exact}, []string{engine.Exact, engine.Rounded}
	deep := exact
	if os.Getenv("OSSRUN_LONG") != "" {
		deep = both
	}
	fp8 := engine.Settings{KVCacheDtype: engine.KVFP8}
	asked(t)
	for _, part := range []struct {
		name, arch, model string
		o                 golden.Options
		modes             []string
	}{ // those that take longest first
		{"T1 deep", "sm_90", "T1", golden.Options{Only: from129}, deep},
		{"T1", "sm_90", "T1", golden.Options{Only: to128}, both},
		{"T1 wide", "gfx942", "T1", golden.Options{Only: to700}, exact},
		{"T2", "sm_90", "T2", golden.Options{Only: to700}, both},
		{"T2 wide", "gfx942", "T2", golden.Options{Only: to700}, exact},
		{"T2 FP8", "sm_90", "T2", golden.Options{Only: []string{"len31"}, Engine: fp8}, exact},
	} {
		t.Run(part.name, func(t *testing.T) {
			if *here {
				hold(t, part.o, device.Options{Arch: part.arch}, part.model, part.modes)
				return
			}
			t.Parallel()
			arguments := []string{"-here", "-test.v", "-test.run=^TestGolden$/^" +
				strings.ReplaceAll(part.name, " ", "_") + "$"}
			if until, ok := t.Deadline(); ok {
				arguments = append(arguments, "-test.timeout="+time.Until(until).String())
			}
			out, err := exec.CommandContext(t.Context(), os.Args[0], arguments...).CombinedOutput()
			if t.Logf("%s", out); err != nil || !strings.Contains(string(out), "max abs") {
				t.Error("it failed: ", err)
			}
		})
	}
}

// asked looks at what the parts are made of: go test keeps a result while the files are the same
// that the test's own process has asked for.
func asked(t *testing.T) {
	for _, folder := range []string{"testdata/model", "gpu/kernels", "gpu/driver/drivertest/library"} {
		err := filepath.WalkDir(filepath.Join(drivertest.Root(), folder),
			func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					_, err = os.Stat(path)
				}
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// coarsest stands for MXFP4 on both sides where the card has it, else for rounding to bfloat16.
const coarsest = "coarsest"

// hold runs cases of a model in modes (nil: all that the device has) on a fake card, and checks
// that nothing stays allocated.
func hold(t *testing.T, o golden.Options, how device.Options, model string, modes []string) {
	t.Helper()
	if os.Getenv("OSSRUN_LONG") == "" {
		o.Greedy = 12
		if how.Arch == "gfx942" {
			o.Only = to128
		}
	}
	f := open(t, how.Arch)
	dev, err := device.Open(f.Driver, how)
	if err != nil {
		t.Fatal(err)
	}
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

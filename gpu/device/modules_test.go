package device

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// openCard opens a fake card of an architecture; prepare may tell the fake to fail.
func openCard(t *testing.T, arch string, prepare func(*drivertest.Fake)) (*Device, *drivertest.Fake,
	error) {
	t.Helper()
	card := smOf(arch)
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake " + arch,
		Major: card / 10, Minor: card % 10, Memory: 1 << 30})
	hosttest.Check(t, err)
	if prepare != nil {
		prepare(f)
	}
	dev, err := Open(f.Driver, Options{})
	t.Cleanup(func() {
		if dev != nil {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
		if left := f.Leaks(); left != "" {
			t.Errorf("not given back: %s", left)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev, f, err
}

// TestKernelsOfEachCard: machine code if it is shipped, else PTX that the driver compiles.
func TestKernelsOfEachCard(t *testing.T) {
	for arch, want := range map[string]string{"sm_80": "machine code sm_80",
		"sm_86": "machine code sm_86", "sm_89": "machine code sm_89",
		"sm_90":  "machine code sm_90a",
		"sm_100": "machine code sm_100a", "sm_120": "machine code sm_120a",
		"sm_121": "machine code sm_121a", "sm_87": "PTX sm_80, compiled by the driver",
		"sm_130": "PTX sm_120, compiled by the driver"} {
		t.Run(arch, func(t *testing.T) {
			dev, _, err := openCard(t, arch, nil)
			if err != nil || dev.Kernels() != want {
				t.Errorf("%v, %v", dev, err)
			}
		})
	}
}

// TestRefusedMachineCode: a driver that does not take the machine code gets the text that any card
// runs, of the kernels that are used, once each, including all launched ones.
func TestRefusedMachineCode(t *testing.T) {
	const noBinary = 209
	dev, f, err := openCard(t, "sm_90", func(f *drivertest.Fake) {
		f.FailCall("cuModuleLoadDataEx",
			1, noBinary)
	})
	hosttest.Check(t, err)
	if !strings.HasPrefix(dev.Kernels(),
		"PTX sm_80, compiled by the driver (it refused the machine code for sm_90a: "+
			"cuModuleLoadDataEx") || dev.target.Unit != kernels.MMA {
		t.Error(dev.Kernels(), dev.target)
	}
	if got := f.Calls("cuModuleLoadDataEx"); got != 2 {
		t.Errorf("%d modules were loaded before anything is compiled", got)
	}
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	loaded := f.Calls("cuModuleLoadDataEx")
	if loaded < 8 || loaded > 20 {
		t.Errorf("%d modules for the kernels of a step", loaded)
	}
	logits := make([]float32, eng.Spec().Vocab)
	if err := errors.Join(eng.Step(t.Context(), prompt(), logits), eng.Close()); err != nil {
		t.Error(err)
	}
	if f.Calls("cuModuleLoadDataEx") != loaded || slices.Max(logits) == slices.Min(logits) {
		t.Error("a step loads kernels, or gives nothing")
	}
	if _, err := dev.function("no such kernel"); err == nil ||
		!strings.Contains(err.Error(), "no such kernel") {
		t.Errorf("%v", err)
	}
}

// TestNoMemoryForKernels: an error that is not about the image is no reason to try another.
func TestNoMemoryForKernels(t *testing.T) {
	const outOfMemory = 2
	if _, _, err := openCard(t, "sm_90", func(f *drivertest.Fake) {
		f.FailCall("cuModuleLoadDataEx",
			1, outOfMemory)
	}); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("%v", err)
	}
}

package goldentest

import (
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The goldens in all modes on all kinds of cards: about half an hour of a processor.

// TestGoldenReferenceLong: the reference kernels alone.
func TestGoldenReferenceLong(t *testing.T) {
	drivertest.Long(t)
	hold(t, golden.Options{Only: []string{"len1"}}, device.Options{Arch: "sm_90", Reference: true},
		"T2", []string{engine.Exact})
}

// TestGoldenOf5000Long: the longest prompt, 157 pages, as the numbers are.
func TestGoldenOf5000Long(t *testing.T) {
	drivertest.Long(t)
	hold(t, golden.Options{Only: []string{"len5000"}}, device.Options{Arch: "sm_90"}, "T1",
		[]string{engine.Exact})
}

// TestGoldenLong: every case of both models in all modes, prompts to 5,000 tokens.
func TestGoldenLong(t *testing.T) {
	drivertest.Long(t)
	for _, arch := range []string{"sm_90", "gfx942"} {
		for _, model := range []string{"T2", "T1"} {
			t.Run(arch+"/"+model,
				func(t *testing.T) {
					hold(t, golden.Options{}, device.Options{Arch: arch}, model,
						nil)
				})
		}
	}
}

// TestGoldenFP8Long: keys and values of the full layers in 8 bits: the prompts that the CPU engine
// is held to in every run, in the mode that rounds as well, within the bounds of a bfloat16 engine.
func TestGoldenFP8Long(t *testing.T) {
	drivertest.Long(t)
	for _, arch := range []string{"sm_90", "gfx942"} {
		for _, model := range []string{"T2", "T1"} {
			t.Run(arch+"/"+model, func(t *testing.T) {
				o := golden.Options{Only: []string{"len1", "len2", "len31", "len128", "len129",
					"len200"}, Engine: engine.Settings{KVCacheDtype: engine.KVFP8}}
				hold(t, o, device.Options{Arch: arch}, model,
					[]string{engine.Exact, engine.Rounded})
			})
		}
	}
}

// TestGoldenModesLong: the modes that round, by each kind of matrix unit, and dense weights in 8
// bits. The bounds are those of a bfloat16 engine.
func TestGoldenModesLong(t *testing.T) {
	drivertest.Long(t)
	for _, arch := range []string{"sm_80", "sm_90", "sm_120", "gfx942", "gfx950"} {
		for _, model := range []string{"T2", "T1"} {
			for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
				t.Run(arch+"/"+model+"/"+dense, func(t *testing.T) {
					hold(t, golden.Options{Engine: engine.Settings{Dense: dense}},
						device.Options{Arch: arch}, model, []string{coarsest})
				})
			}
		}
	}
}

// TestGoldenQ8Long: experts' activations and dense weights in 8 bits, on a short prompt and what
// follows it: within the bounds of the 8-bit mode, which TestGoldenLong judges over all cases.
func TestGoldenQ8Long(t *testing.T) {
	drivertest.Long(t)
	o := golden.Options{Only: []string{"len31"}, Engine: engine.Settings{Dense: engine.DenseQ8}}
	hold(t, o, device.Options{Arch: "sm_90"}, "T2", []string{engine.Int8})
}

package device

import (
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The suite that every Device passes, with the real kernels run by emulation.

// TestOps: every operation alone, on both vendors' warps and all kinds of cache: a step of one row
// has the decode kernels, one of 133 rows those of the matrix unit, heads of 32 the reference ones.
// Attention takes most of the time, so the other shapes are for long runs.
func TestOps(t *testing.T) {
	s := enginetest.Small()
	for _, x := range drivertest.Some(1, []struct {
		api    driver.API
		kv     string
		shapes []enginetest.Shape
	}{{driver.CUDA, "f32", s[:1]}, {driver.CUDA, "f32", []enginetest.Shape{s[2], s[5]}},
		{driver.HIP, "bf16", []enginetest.Shape{s[0], s[5]}},
		{driver.CUDA, engine.KVFP8, []enginetest.Shape{s[0], s[5]}},
		{driver.HIP, engine.KVFP8, s[:1]}}) {
		t.Run(string(x.api)+"/"+x.kv, func(t *testing.T) {
			dev, _ := open(t, x.api)
			holdOps(t, dev, engine.Settings{KVCacheDtype: x.kv}, x.shapes)
		})
	}
}

// TestOpsLong: all shapes, and the threads of a block in the other order.
func TestOpsLong(t *testing.T) {
	drivertest.Long(t)
	for i, api := range apis {
		for _, reverse := range []bool{false, true} {
			dev, f := open(t, api)
			f.Reverse(reverse)
			holdOps(t, dev, engine.Settings{KVCacheDtype: []string{"bf16", "f32"}[i]},
				enginetest.Small())
			holdOps(t, dev, engine.Settings{KVCacheDtype: engine.KVFP8}, enginetest.Small())
		}
	}
}

func holdOps(t *testing.T, dev *Device, o engine.Settings, shapes []enginetest.Shape) {
	t.Helper()
	n := 0
	report := func(r enginetest.OpResult) {
		if r.Skipped == "" {
			n++
		}
	}
	if err := enginetest.Ops(t.Context(), dev, o, shapes, nil, report); err != nil {
		t.Error(err)
	}
	if n < 23*len(shapes) {
		t.Errorf("only %d operations were run", n)
	}
}

// TestUnits: angles, SwiGLU and MXFP4 decoding as the references have them.
func TestUnits(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			dev, _ := open(t, api)
			for _, check := range enginetest.Units(dev, engine.Settings{}, testdata+"units") {
				t.Run(check.Name, func(t *testing.T) {
					hosttest.Check(t, check.Run(t.Context()))
				})
			}
		})
	}
}

// quick are the checks of whole models that take seconds by emulation; the others cut, share and
// widen long prompts.
var quick = []string{"bad steps are refused and harm nothing", "a cancelled step does not run",
	"a closed engine says so", "memory is as planned"}

// betweenKernels is how far a logit of the golden models may move with its batch: steps of few rows
// and of many have other kernels, which sum in another order. The reference kernels may not move
// one by a bit.
const betweenKernels = 1e-4

// TestPrograms: whole models, held against themselves.
func TestPrograms(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	ran := 0
	for _, check := range enginetest.Programs(enginetest.Config{Backend: engine.On(dev),
		Dir: testdata + "T2", Tolerance: betweenKernels}) {
		if !slices.Contains(quick, check.Name) {
			continue
		}
		ran++
		t.Run(check.Name, func(t *testing.T) {
			hosttest.Check(t, check.Run(t.Context()))
		})
	}
	if ran != len(quick) {
		t.Errorf("%d of %d checks were there", ran, len(quick))
	}
}

// TestProgramsFP8: with a cache of 8 bits, whose window pages have twins.
func TestProgramsFP8(t *testing.T) {
	dev, _ := open(t, driver.HIP)
	for _, check := range enginetest.Programs(enginetest.Config{Backend: engine.On(dev),
		Dir: testdata + "T2", Options: engine.Settings{KVCacheDtype: engine.KVFP8},
		Tolerance: betweenKernels}) {
		if check.Name == quick[0] || check.Name == quick[3] {
			t.Run(check.Name, func(t *testing.T) {
				hosttest.Check(t, check.Run(t.Context()))
			})
		}
	}
}

// TestProgramsLong: all of them on both vendors' warps, and to the bit with the reference kernels,
// in both modes and with a cache of 8 bits.
func TestProgramsLong(t *testing.T) {
	drivertest.Long(t)
	for i, api := range apis {
		for _, x := range []struct {
			name, compute string
			how           Options
			tolerance     float64
			kv            string
		}{{"exact", engine.Exact, Options{}, betweenKernels, ""},
			{"reference", engine.Exact, Options{Reference: true}, 0, ""},
			{"reference int8", engine.Int8, Options{Reference: true}, 0, ""}, {"reference fp8",
				engine.Exact, Options{Reference: true}, 0, engine.KVFP8},
			{"deterministic", engine.Rounded, Options{}, 0, "bf16"}} {
			t.Run(string(api)+"/"+x.name, func(t *testing.T) {
				dev, _ := openWith(t, api, x.how)
				for _, check := range enginetest.Programs(enginetest.Config{Backend: engine.On(dev),
					Dir: testdata + []string{"T2", "T1"}[i],
					Options: engine.Settings{Compute: x.compute, KVCacheDtype: x.kv,
						Deterministic: x.name == "deterministic"},
					Tolerance: x.tolerance}) {
					t.Run(check.Name, func(t *testing.T) {
						hosttest.Check(t, check.Run(t.Context()))
					})
				}
			})
		}
	}
}

// TestIntermediatesLong: T1's prompt of 200, inside.
func TestIntermediatesLong(t *testing.T) {
	drivertest.Long(t)
	dev, _ := open(t, driver.CUDA)
	if err := enginetest.Intermediates(t.Context(), enginetest.Config{Backend: engine.On(dev),
		Dir: testdata + "T1"}, func(name string, worst float64) {
		t.Logf("%-32s %.2e", name,
			worst)
	}); err != nil {
		t.Error(err)
	}
}

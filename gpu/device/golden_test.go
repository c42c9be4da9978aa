package device

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The goldens: what other implementations computed after the same prompts.

// TestGolden: on warps of 32 T2's prompts of 1, 31 and 128 tokens, prefilled on the matrix unit, and their continuations of 48 tokens by the decode kernels; on
// warps of 64 the decode kernels alone. The modes that round are judged over all cases together, which is a long run.
func TestGolden(t *testing.T) {
	for api, names := range map[driver.API][]string{driver.CUDA: {"len1", "len31", "len128"}, driver.HIP: {"len1"}} {
		t.Run(string(api), func(t *testing.T) {
			holdGolden(t, golden.Options{Only: names}, api, Options{}, testdata+"T2", []string{engine.Exact})
		})
	}
}

// TestGoldenFP8: keys and values of the full layers in 8 bits, on a short prompt and what follows it, within the bounds of a bfloat16 engine.
func TestGoldenFP8(t *testing.T) {
	o := golden.Options{Only: []string{"len31"}, Engine: engine.Options{KV: engine.KVFP8}}
	holdGolden(t, o, driver.CUDA, Options{}, testdata+"T2", []string{engine.Exact})
}

// TestGoldenFP8Long: the prompts that the CPU engine is held to in every run, in the modes that round as well, on both vendors' warps.
func TestGoldenFP8Long(t *testing.T) {
	long(t)
	for _, api := range apis {
		for _, model := range []string{"T2", "T1"} {
			t.Run(string(api)+"/"+model, func(t *testing.T) {
				o := golden.Options{Only: []string{"len1", "len2", "len31", "len128", "len129", "len200"}, Engine: engine.Options{KV: engine.KVFP8}}
				holdGolden(t, o, api, Options{}, testdata+model, []string{engine.Exact, engine.Rounded})
			})
		}
	}
}

// TestGoldenPlainLong: the plain kernels alone.
func TestGoldenPlainLong(t *testing.T) {
	long(t)
	holdGolden(t, golden.Options{Only: []string{"len1"}}, driver.CUDA, Options{Plain: true}, testdata+"T2", []string{engine.Exact})
}

// TestGoldenLong: every case of both models in both modes, prompts to 5,000 tokens.
func TestGoldenLong(t *testing.T) {
	long(t)
	for _, api := range apis {
		for _, model := range []string{"T2", "T1"} {
			t.Run(string(api)+"/"+model, func(t *testing.T) { holdGolden(t, golden.Options{}, api, Options{}, testdata+model, nil) })
		}
	}
}

// TestGoldenModesLong: the modes that round, by each kind of matrix unit, and dense weights in 8 bits. The bounds are those of a bfloat16 engine.
func TestGoldenModesLong(t *testing.T) {
	long(t)
	for _, arch := range []string{"sm_80", "sm_90", "sm_120", "gfx942", "gfx950"} {
		api, modes := driver.CUDA, []string{engine.Rounded}
		if !strings.HasPrefix(arch, "sm_") {
			api = driver.HIP
		}
		if a, err := choose(arch); err != nil {
			t.Fatal(err)
		} else if a.Unit == kernels.MX {
			modes = []string{engine.MX}
		}
		for _, model := range []string{"T2", "T1"} {
			for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
				t.Run(arch+"/"+model+"/"+dense, func(t *testing.T) {
					holdGolden(t, golden.Options{Engine: engine.Options{Dense: dense}}, api, Options{Arch: arch}, testdata+model, modes)
				})
			}
		}
	}
}

func holdGolden(t *testing.T, o golden.Options, api driver.API, how Options, dir string, modes []string) {
	t.Helper()
	dev, _ := openWith(t, api, how)
	ok, err := o.Run(t.Context(), dir, dev, modes, func(r golden.CaseResult) {
		t.Logf("%-6s %-8s max abs %.1e, KL mean %.1e, median %.1e, max %.1e, largest logit %d/%d, greedy %d/%d, %v %v",
			r.Mode, r.Case, r.MaxAbs, r.KLMean, r.KLMedian, r.KLMax, r.Agree, r.Of, r.Greedy, r.GreedyOf, r.Elapsed.Round(1e6), r.Misses)
	})
	if err != nil || !ok {
		t.Errorf("passed: %v, error: %v", ok, err)
	}
}

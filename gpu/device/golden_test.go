package device

import (
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The goldens: what other implementations computed after the same prompts.

// TestGolden: on warps of 32 a short prompt, prefilled on the matrix unit, and its continuation of 48 tokens by the decode kernels; on warps of 64 the
// decode kernels alone. The 8-bit mode is judged over all cases together, which is a long run.
func TestGolden(t *testing.T) {
	for api, name := range map[driver.API]string{driver.CUDA: "len31", driver.HIP: "len1"} {
		t.Run(string(api), func(t *testing.T) {
			holdGolden(t, golden.Options{Only: []string{name}}, api, Options{}, testdata+"T2", []string{engine.Exact})
		})
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

func holdGolden(t *testing.T, o golden.Options, api driver.API, how Options, dir string, modes []string) {
	t.Helper()
	dev, _ := openWith(t, api, how)
	ok, err := o.Run(t.Context(), dir, dev, modes, func(r golden.CaseResult) {
		t.Logf("%-6s %-8s max abs %.1e, KL max %.1e, largest logit %d/%d, greedy %d/%d, %v %v",
			r.Mode, r.Case, r.MaxAbs, r.KLMax, r.Agree, r.Of, r.Greedy, r.GreedyOf, r.Elapsed.Round(1e6), r.Misses)
	})
	if err != nil || !ok {
		t.Errorf("passed: %v, error: %v", ok, err)
	}
}

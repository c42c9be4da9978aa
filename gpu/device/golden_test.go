package device

import (
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The goldens: what other implementations computed after the same prompts.

// short are the goldens of prompts up to 200 tokens, which a test run has time for; each has a continuation of 48 tokens by the decode kernels.
var short = []string{"len1", "len2", "len31", "len128", "len129", "len200"}

// TestGolden: on warps of 32 all short ones of T2, as they are and in the mode that is the default on cards; the 8-bit mode is a long run. Of T1, and of T2 on
// warps of 64, the one that is the day's turn.
func TestGolden(t *testing.T) {
	turn := short[time.Now().YearDay()%len(short)]
	for _, x := range []struct {
		api   driver.API
		model string
		modes []string
		cases []string
	}{
		{driver.CUDA, "T2", []string{engine.Exact, engine.Rounded}, short},
		{driver.CUDA, "T1", []string{engine.Exact}, []string{turn}},
		{driver.HIP, "T2", []string{engine.Exact}, []string{turn}},
	} {
		t.Run(string(x.api)+"/"+x.model, func(t *testing.T) {
			holdGolden(t, golden.Options{Only: x.cases}, x.api, Options{}, testdata+x.model, x.modes)
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

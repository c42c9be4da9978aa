package cpu_test

import (
	"os"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// shortPrompts are what an instruction set gets that is slow, as the plain loops and all under
// emulation are.
var shortPrompts = []string{"len1", "len2", "len31", "len128", "len129", "len200"}

// TestGolden: every case of T1 and T2 in both modes, prompts to 5000 tokens.
func TestGolden(t *testing.T) {
	for _, isa := range isas {
		for _, model := range []string{"T1", "T2"} {
			t.Run(isa+"/"+model, func(t *testing.T) {
				needISA(t, isa)
				var o golden.Options
				o.Engine.ISA = isa
				if isa == "scalar" || testing.Short() {
					o.Only = shortPrompts
				}
				holdGolden(t, o, testdata+model)
			})
		}
	}
}

// TestGoldenDenseQ8: 8-bit dense weights keep the bounds of the 8-bit mode.
func TestGoldenDenseQ8(t *testing.T) {
	for _, isa := range isas {
		for _, model := range []string{"T1", "T2"} {
			t.Run(isa+"/"+model, func(t *testing.T) {
				needISA(t, isa)
				o := golden.Options{Engine: engine.Settings{ISA: isa, Dense: engine.DenseQ8}}
				if isa == "scalar" || testing.Short() {
					o.Only = shortPrompts
				}
				holdGoldenModes(t, o, testdata+model, []string{engine.Int8, engine.Int8Fast})
			})
		}
	}
}

// TestGoldenFP8: keys and values of the full layers in 8 bits, within the bounds of a bfloat16
// engine.
func TestGoldenFP8(t *testing.T) {
	for _, isa := range isas {
		for _, model := range []string{"T1", "T2"} {
			t.Run(isa+"/"+model, func(t *testing.T) {
				needISA(t, isa)
				o := golden.Options{Engine: engine.Settings{ISA: isa, KVCacheDtype: engine.KVFP8}}
				switch {
				case isa == "scalar":
					o.Only = []string{"len31", "len129"}
				case os.Getenv("OSSRUN_LONG") == "":
					o.Only = shortPrompts
				}
				holdGoldenModes(t, o, testdata+model, []string{engine.Exact, engine.Int8})
			})
		}
	}
}

func TestGoldenLong(t *testing.T) {
	long(t)
	for _, chunk := range []int{1, 31, 512} {
		holdGolden(t, golden.Options{Chunk: chunk}, testdata+"T1")
	}
	var o golden.Options
	o.Engine.ISA = "scalar"
	holdGolden(t, o, testdata+"T1")
	holdGolden(t, o, testdata+"T2")
}

func holdGolden(t *testing.T, o golden.Options, dir string) {
	t.Helper()
	holdGoldenModes(t, o, dir, nil)
}

func holdGoldenModes(t *testing.T, o golden.Options, dir string, modes []string) {
	t.Helper()
	ok, err := o.Run(t.Context(), dir, engine.On(open(t, 2)), modes, func(r golden.CaseResult) {
		t.Logf("%-6s %-8s max abs %.1e, KL mean %.1e median %.1e max %.1e, largest logit %d/%d, "+
			"greedy %d/%d, lead lost %.2f, %v %v",
			r.Mode, r.Case, r.MaxAbs, r.KLMean, r.KLMedian, r.KLMax, r.Agree, r.Of, r.Greedy,
			r.GreedyOf, r.GapLost, r.Elapsed.Round(1e6), r.Misses)
	})
	if err != nil || !ok {
		t.Errorf("passed: %v, error: %v", ok, err)
	}
}

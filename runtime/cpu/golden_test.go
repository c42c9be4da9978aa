package cpu

import (
	"testing"

	"github.com/ossrun/ossrun/runtime/engine/golden"
)

func TestGolden(t *testing.T) {
	dev, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, isa := range ISAs() {
		for _, m := range []string{"T1", "T2"} {
			t.Run(isa+"/"+m, func(t *testing.T) {
				var o golden.Options
				o.Engine.ISA = isa
				if isa == "scalar" {
					o.Only = []string{"len1", "len2", "len31", "len128", "len129", "len200"}
				}
				ok, err := o.Run(t.Context(), "../../testdata/model/"+m, dev, nil, func(r golden.CaseResult) {
					t.Logf("%-6s %-8s max %.2e kl %.2e/%.2e/%.2e agree %d/%d greedy %d/%d lost %.2f %v %v", r.Mode, r.Case, r.MaxAbs, r.KLMean, r.KLMedian, r.KLMax, r.Agree, r.Of, r.Greedy, r.GreedyOf, r.GapLost, r.Elapsed, r.Misses)
				})
				if err != nil || !ok {
					t.Errorf("ok %v: %v", ok, err)
				}
			})
		}
	}
}

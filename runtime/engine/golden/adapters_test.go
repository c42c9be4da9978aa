package golden_test

// LoRA adapters against PEFT's own logits (models/lora/testdata/oracle.py), on the golden T1.

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

const peft = "../../../models/lora/testdata/"

// TestAdaptersArePEFTs: each kind of adapter gives the logits of PEFT's merge_and_unload, and those
// of its forward pass next to the weights as far as bfloat16 weights can.
func TestAdaptersArePEFTs(t *testing.T) {
	for name, adapters := range map[string][]string{
		"q": {"q"}, "k": {"k"}, "v": {"v"}, "o": {"o"}, "router": {"router"},
		"lm_head": {"lm_head"}, "patterns": {"patterns"}, "saved": {"saved"}, "bias": {"bias"},
		"q-and-half-patterns": {"q", "patterns:0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			link(t, "../../../testdata/model/T1/checkpoint", filepath.Join(dir, "checkpoint"))
			link(t, filepath.Join(peft, name, "golden"), filepath.Join(dir, "golden"))
			o := golden.Options{}
			for _, a := range adapters {
				ref := hosttest.Must(lora.Find(peft + a))(t)
				o.Lora = append(o.Lora, ref)
			}
			seen := 0
			report := func(r golden.CaseResult) {
				switch r.Case {
				case "merged":
					seen++
					if !(r.MaxAbs <= 1e-4) {
						t.Errorf("a logit is %.3g from PEFT's merged model", r.MaxAbs)
					}
				case "unmerged":
					seen++
					if !(r.KLMax <= 5e-3) {
						t.Errorf("KL of %.3g to PEFT's forward pass", r.KLMax)
					}
				}
			}
			b := engine.On(device(t))
			hosttest.Must(o.Run(t.Context(), dir, b, []string{engine.Exact}, report))(t)
			if seen != 2 {
				t.Errorf("%d cases were compared", seen)
			}
			o.Lora = nil // the goldens notice a missing adapter
			hosttest.Must(o.Run(t.Context(), dir, b, []string{engine.Exact},
				func(r golden.CaseResult) {
					if r.Case == "unmerged" && !(r.KLMax > 5e-3) {
						t.Errorf("without the adapter KL is %.3g", r.KLMax)
					}
				}))(t)
		})
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	to, err := filepath.Abs(to)
	if err == nil {
		err = os.Symlink(to, at)
	}
	hosttest.Check(t, err)
}

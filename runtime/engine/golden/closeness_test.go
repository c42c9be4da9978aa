package golden_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestCloseness: the modes keep their bounds at 2,400 further positions of T1 and as many of each
// of two models of its recipe with other weights, and of a wider one.
func TestCloseness(t *testing.T) {
	if os.Getenv("OSSRUN_LONG") == "" {
		t.Skip("slow: set OSSRUN_LONG=1")
	}
	model := func(seed string, hidden, layers int) *checkpoint.Checkpoint {
		return made(t, fmt.Sprintf(`{"name": "it", "seed": %q, "hidden": %d, "intermediate": %[2]d, `+
			`"layers": %d, "heads": 8, "kv_heads": 2, "head_dim": 64, "experts": 8, "top_k": 4, `+
			`"vocab": 1024, "shards": 1, "max_position": 131072}`, seed, hidden, layers))
	}
	for name, models := range map[string][]*checkpoint.Checkpoint{
		"T1":   {model("ossrun-T1", 128, 4), model("other", 128, 4), model("third", 128, 4)},
		"wide": {model("wide", 768, 6)},
	} {
		for _, isa := range cpu.ISAs() {
			for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
				t.Run(isa+"/"+name+"/"+dense, func(t *testing.T) {
					o := golden.Options{Engine: engine.Settings{ISA: isa, Dense: dense}}
					results := hosttest.Must(o.Further(t.Context(), models,
						engine.On(device(t)), 8, 300,
						[]string{engine.Int8, engine.Int8Fast}))(t)
					for _, r := range results {
						t.Logf("%s: KL median %.2e mean %.2e, largest logit %d/%d, %v", r.Mode,
							r.KLMedian, r.KLMean, r.Agree, r.Of, r.Misses)
						if !r.OK() || 100*r.Agree < 93*r.Of {
							t.Error("outside of its bounds")
						}
					}
				})
			}
		}
	}
}

// made is a checkpoint by the recipe of the goldens' models.
func made(t *testing.T, spec string) *checkpoint.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	hosttest.Check(t, os.WriteFile(dir+"/spec.json", []byte(spec), 0o600))
	make := exec.Command("python3", "../../../testdata/model/make_checkpoint.py", dir+"/spec.json", dir+"/it")
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ckpt := hosttest.Must(checkpoint.Open(dir + "/it"))(t)
	t.Cleanup(func() { _ = ckpt.Close() })
	return ckpt
}

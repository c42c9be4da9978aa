// What happens when a step fails: the running turns end with the error, a new engine is made on the same checkpoint, on a
// new device where one can be opened, and the waiting turns go on with it.

package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched"
)

// mostRestarts is how often an engine is made anew without a single good step between.
const mostRestarts = 3

// restart is the scheduler's Options.Restart. It runs in the scheduler's loop, which alone uses the engine then.
func (m *Model) restart(fault error) (sched.Engine, error) {
	if steps := m.sched.Stats().Steps; steps > m.goodSteps {
		m.goodSteps, m.lame = steps, 0
	}
	if m.lame++; m.lame > mostRestarts {
		return nil, fmt.Errorf("%d engines in a row failed at their first step, the last one with: %w", mostRestarts, fault)
	}
	o := m.engine.Settings()
	_ = m.engine.Close() // a device that failed may refuse that too
	if m.reopen != nil {
		dev, err := m.reopen(m.dev)
		if err != nil {
			return nil, fmt.Errorf("open the device again: %w", err)
		}
		m.dev = dev
	}
	eng, err := engine.New(m.dev, m.ckpt, o)
	if err != nil {
		return nil, err
	}
	m.engine = eng
	return eng, nil
}

// kvType turns the words of --kv-cache-dtype into the engine's.
func kvType(dtype string) (string, error) {
	switch dtype {
	case "", "auto":
		return "", nil
	case "bf16", "bfloat16":
		return "bf16", nil
	case "f32", "float32":
		return "f32", nil
	case "fp8", "fp8_e4m3":
		return engine.KVFP8, nil
	}
	return "", fmt.Errorf("--kv-cache-dtype must be auto, bf16, fp8 or f32, not %q", dtype)
}

// fingerprint names the weights and all else that KV pages depend on. It reads little of a checkpoint, but from tensors
// that every training changes; where a card has its own copy, these give back what they took.
func fingerprint(ckpt *checkpoint.Checkpoint, o engine.Settings, discrete bool) string {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %s %s %s %t", ckpt.Spec, o.KVCacheDtype, o.Compute, o.Dense, o.Deterministic)
	last := ckpt.Spec.Layers - 1
	for _, name := range []string{"model.norm.weight", "model.embed_tokens.weight", "model.layers.0.self_attn.k_proj.weight",
		fmt.Sprintf("model.layers.%d.self_attn.k_proj.weight", last), fmt.Sprintf("model.layers.%d.mlp.router.weight", last)} {
		data := ckpt.Tensor(name).Data
		h.Write(data[:min(len(data), 16<<10)])
		if discrete {
			ckpt.Release(name)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

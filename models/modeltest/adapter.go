package modeltest

// Small LoRA adapters, as saved by PEFT. Wrong ones are made by changing a NewAdapter.

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models"
)

// Adapter is the content that Write writes. All of it may be changed.
type Adapter struct {
	Config  map[string]any
	Tensors []Tensor
}

// NewAdapter makes an adapter of rank 4 for the matrices of a Spec with one of the endings, such as
// "q_proj.weight". Its numbers are as large as the weights.
func NewAdapter(s models.Spec, endings ...string) *Adapter {
	const rank = 4
	a := &Adapter{Config: map[string]any{"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank,
		"base_model_name_or_path": "someone/tiny", "task_type": "CAUSAL_LM", "bias": "none"}}
	for _, t := range s.Tensors() {
		for _, ending := range endings {
			module, is := strings.CutSuffix(t.Name, ".weight")
			if !is || !strings.HasSuffix(t.Name, ending) {
				continue
			}
			a.add(module+".lora_A.weight", rank, t.Shape[1])
			a.add(module+".lora_B.weight", t.Shape[0], rank)
		}
	}
	return a
}

func (a *Adapter) add(name string, shape ...int) {
	t := models.TensorSpec{Name: "base_model.model." + name, DType: models.BF16, Shape: shape}
	a.Tensors = append(a.Tensors, Tensor{t.Name, string(t.DType), shape, values(t)})
}

// Write writes the adapter into a folder, creating it.
func (a *Adapter) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "adapter_model.safetensors"),
		Encode(a.Tensors, nil), 0o644); err != nil {
		return err
	}
	return writeObjects(folder, map[string]any{"adapter_config.json": a.Config})
}

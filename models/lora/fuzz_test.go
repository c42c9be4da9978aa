package lora_test

// Adapters of random bytes.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// FuzzOpen: any two files are an adapter whose every tensor can be added, or are refused in one
// sentence.
func FuzzOpen(f *testing.F) {
	spec := modeltest.Tiny()
	a := modeltest.NewAdapter(spec, "q_proj.weight", "lm_head.weight")
	a.Config["rank_pattern"] = map[string]any{"lm_head": 4}
	config := hosttest.Must(json.Marshal(a.Config))(f)
	f.Add(config, modeltest.Encode(a.Tensors, nil))
	f.Add([]byte(`{"peft_type":"LORA","r":1,"use_rslora":true,"alpha_pattern":{"(":1}}`), []byte{})
	experts := modeltest.NewAdapter(spec, "layers.0.self_attn.q_proj.weight")
	for i, shape := range [][]int{{16, 64}, {64, 16}} { // gate_up_proj's
		t := &experts.Tensors[i]
		t.Name = strings.Replace(t.Name, "self_attn.q_proj", "mlp.experts.base_layer", 1)
		t.Shape, t.Data = shape, make([]byte, 2*16*64)
	}
	f.Add(config, modeltest.Encode(experts.Tensors, nil))
	f.Add(config, modeltest.Encode([]modeltest.Tensor{
		{Name: "base_model.model.model.norm.weight", DType: "F32", Shape: []int{64},
			Data: make([]byte, 256)},
		{Name: "base_model.model.model.norm.lora_A.weight", DType: "F16"}}, nil))
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		folder := t.TempDir()
		for name, data := range map[string][]byte{models.LoRAConfig: config,
			lora.WeightsName: weights} {
			hosttest.Check(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
		}
		opened, err := lora.Ref{Name: "x", Path: folder, Scale: 1}.OpenAll(spec)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 2000 {
				t.Errorf("no sentence: %q", err)
			}
			return
		}
		defer opened.Close()
		for _, to := range spec.Tensors() {
			if matrix, expert := strings.CutSuffix(to.Name, "_blocks"); expert {
				lora.AddExpert(matrix, spec.Experts-1, spec.Experts,
					make([]float32, 2*to.Bytes()/int64(spec.Experts)), []*lora.Adapter{opened})
				continue
			}
			if !opened.Changes(to.Name) {
				continue
			}
			base := models.Tensor{Name: to.Name, DType: to.DType, Shape: to.Shape,
				Data: make([]byte, to.Bytes())}
			// a value too large for bfloat16 is refused here
			_ = lora.Add(base, []*lora.Adapter{opened}).Rows(0, to.Shape[0],
				make([]byte, to.Bytes()))
		}
	})
}

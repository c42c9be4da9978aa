package modeltest

// The original/ layout of a checkpoint, as OpenAI ships it next to the other: one file, q, k and v
// in one tensor.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

// WriteOriginal writes an open checkpoint into a folder.
func WriteOriginal(c *checkpoint.Checkpoint, folder string) error {
	return writeOriginal(c, folder, false)
}

// WriteOriginal16 writes it with experts as bfloat16, as in OpenAI's own code: not packed, not
// transposed.
func WriteOriginal16(c *checkpoint.Checkpoint, folder string) error {
	return writeOriginal(c, folder, true)
}

// reader returns a function that reads tensors of c and joins errors to err.
func reader(c *checkpoint.Checkpoint, err *error) func(name string) models.Tensor {
	return func(name string) models.Tensor {
		t, e := c.Tensor(name)
		*err = errors.Join(*err, e)
		return t
	}
}

func writeOriginal(c *checkpoint.Checkpoint, folder string, wide bool) error {
	s := c.Spec
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"num_hidden_layers": s.Layers,
		"num_experts": s.Experts, "experts_per_token": s.ExpertsPerToken,
		"vocab_size": s.Vocab, "hidden_size": s.Hidden, "intermediate_size": s.Intermediate,
		"swiglu_limit": s.SwigluLimit, "head_dim": s.HeadDim,
		"num_attention_heads": s.Heads, "num_key_value_heads": s.KVHeads,
		"sliding_window": s.Window, "initial_context_length": s.RopeOriginal,
		"rope_theta": s.RopeTheta, "rope_scaling_factor": s.RopeFactor,
		"rope_ntk_alpha": s.RopeBetaSlow, "rope_ntk_beta": s.RopeBetaFast})
	if err != nil {
		return err
	}
	var list []Tensor
	read := reader(c, &err)
	add := func(name string, from ...string) {
		t := read(from[0])
		out := Tensor{name, string(t.DType), slices.Clone(t.Shape), slices.Clone(t.Data)}
		for _, more := range from[1:] {
			t := read(more)
			out.Shape[0] += t.Shape[0]
			out.Data = append(out.Data, t.Data...)
		}
		list = append(list, out)
	}
	add("embedding.weight", "model.embed_tokens.weight")
	for layer := range s.Layers {
		to, of := fmt.Sprintf("block.%d.", layer), fmt.Sprintf("model.layers.%d.", layer)
		add(to+"attn.norm.scale", of+"input_layernorm.weight")
		add(to+"attn.sinks", of+"self_attn.sinks")
		add(to+"mlp.norm.scale", of+"post_attention_layernorm.weight")
		for _, kind := range []string{"weight", "bias"} {
			add(to+"attn.qkv."+kind, of+"self_attn.q_proj."+kind, of+"self_attn.k_proj."+kind,
				of+"self_attn.v_proj."+kind)
			add(to+"attn.out."+kind, of+"self_attn.o_proj."+kind)
			add(to+"mlp.gate."+kind, of+"mlp.router."+kind)
		}
		for _, m := range [][2]string{{"mlp1", "gate_up_proj"}, {"mlp2", "down_proj"}} {
			blocks, scales := of+"mlp.experts."+m[1]+"_blocks", of+"mlp.experts."+m[1]+"_scales"
			if t := read(blocks); wide {
				list = append(list, Tensor{to + "mlp." + m[0] + "_weight", "BF16",
					[]int{t.Shape[0], t.Shape[1], t.Shape[2] * models.BlockSize},
					Dequantised(t, read(scales))})
			} else {
				add(to+"mlp."+m[0]+"_weight.blocks", blocks)
				add(to+"mlp."+m[0]+"_weight.scales", scales)
			}
			add(to+"mlp."+m[0]+"_bias", of+"mlp.experts."+m[1]+"_bias")
		}
	}
	add("norm.scale", "model.norm.weight")
	add("unembedding.weight", "lm_head.weight")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "config.json"), config, 0o644),
		os.WriteFile(filepath.Join(folder, "dtypes.json"), []byte("{}"), 0o644),
		os.WriteFile(filepath.Join(folder, "model.safetensors"), Encode(list, nil), 0o644))
}

package checkpoint

// The original/ layout, which OpenAI ships next to the Hugging Face one: the same bytes under other
// names, q, k and v in one tensor, and a config.json with other keys. Every tensor, also q, k and
// v, is a view of the mapped file; nothing is copied.

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
)

// originalNames maps the Hugging Face layout's names within a layer, and outside of them, to those
// of the original/ layout.
var originalNames = strings.NewReplacer(
	"model.embed_tokens.weight", "embedding.weight",
	"lm_head.weight", "unembedding.weight",
	"model.norm.weight", "norm.scale",
	"model.layers.", "block.",
	"input_layernorm.weight", "attn.norm.scale",
	"self_attn.q_proj.", "attn.qkv.",
	"self_attn.k_proj.", "attn.qkv.",
	"self_attn.v_proj.", "attn.qkv.",
	"self_attn.o_proj.", "attn.out.",
	"self_attn.sinks", "attn.sinks",
	"post_attention_layernorm.weight", "mlp.norm.scale",
	"mlp.router.", "mlp.gate.",
	"mlp.experts.gate_up_proj_bias", "mlp.mlp1_bias",
	"mlp.experts.down_proj_bias", "mlp.mlp2_bias",
	"mlp.experts.gate_up_proj_", "mlp.mlp1_weight.",
	"mlp.experts.down_proj_", "mlp.mlp2_weight.",
)

// OriginalName returns the name of a tensor in the original/ layout. For q, k and v it also returns
// the first row in the combined tensor and its total rows; otherwise total is 0.
func OriginalName(s models.Spec, name string) (original string, first, total int) {
	query, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	switch original = originalNames.Replace(name); {
	case strings.Contains(name, ".q_proj."):
		return original, 0, query + 2*kv
	case strings.Contains(name, ".k_proj."):
		return original, query, query + 2*kv
	case strings.Contains(name, ".v_proj."):
		return original, query + kv, query + 2*kv
	}
	return original, 0, 0
}

// fromOriginal renames a checkpoint's tensors from the original/ layout to the Hugging Face layout.
func fromOriginal(s models.Spec, tensors map[string]models.Tensor) (map[string]models.Tensor,
	error) {
	out := make(map[string]models.Tensor, len(tensors))
	used := map[string]bool{}
	for _, want := range s.Tensors() {
		name, first, total := OriginalName(s, want.Name)
		t, ok := tensors[name]
		if wide, is := tensors[strings.TrimSuffix(name, ".blocks")]; !ok && is {
			return nil, fmt.Errorf("%s: tensor %s is %s: %s", wide.File, wide.Name, wide.DType,
				models.DequantisedExperts)
		}
		if !ok {
			return nil, fmt.Errorf("tensor %s, which config.json calls for, is in no file", name)
		}
		used[name] = true
		if total > 0 {
			var err error
			if t, err = part(t, first, want.Shape[0], total); err != nil {
				return nil, err
			}
		}
		t.Name = want.Name
		out[want.Name] = t
	}
	for name, t := range tensors {
		if !used[name] {
			if strings.HasPrefix(name, "block.") {
				return nil, fmt.Errorf(
					"%s holds tensor %s, which no gpt-oss of this config.json has: computing "+
						"without it would be another model", t.File, safetensors.Printable(name))
			}
			out[name] = t
		}
	}
	return out, nil
}

// part is a view of count rows of a tensor of total rows, starting at row first.
func part(t models.Tensor, first, count, total int) (models.Tensor, error) {
	if len(t.Shape) == 0 || t.Shape[0] != total {
		return t, fmt.Errorf("%s: tensor %s has shape %v, config.json calls for %d rows", t.File,
			t.Name, t.Shape, total)
	}
	row := len(t.Data) / total
	t.Data = t.Data[first*row : (first+count)*row : (first+count)*row]
	t.Shape = append([]int{count}, t.Shape[1:]...)
	return t, nil
}

// OriginalIn returns the folder with the original/ layout: folder, or original/ in it if folder has
// no config.json. "" if neither is one.
func OriginalIn(folder string) string {
	for _, path := range [...]string{folder, filepath.Join(folder, "original")} {
		if is, hasConfig := models.IsOriginal(path); is {
			return path
		} else if hasConfig {
			return ""
		}
	}
	return ""
}

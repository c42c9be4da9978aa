package models

// The original/ layout, which OpenAI ships beside the Hugging Face one: the same bytes under other names, q, k and v in one tensor, and a
// config.json with other keys. Everything is a view of the mapped file, also the thirds of that tensor; nothing is copied.

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models/safetensors"
)

// isOriginal tells whether a config.json is of the original/ layout.
func (f fields) isOriginal() bool {
	return !f.has("model_type") && f.has("num_experts") && f.has("swiglu_limit")
}

// originalConfig rewrites a config.json of the original/ layout as one of the Hugging Face layout, which has one reader. What it does not say
// (the longest context, the tokens that end a turn) is as released.
func originalConfig(f fields) (config, generation []byte, err error) {
	released := Spec20B()
	c := map[string]any{
		"architectures": []string{"GptOssForCausalLM"}, "model_type": "gpt_oss", "hidden_act": "silu", "attention_bias": true,
		"tie_word_embeddings": false, "max_position_embeddings": released.MaxPosition, "rms_norm_eps": 1e-5,
		"quantization_config": map[string]any{"quant_method": "mxfp4"},
	}
	rope := map[string]any{"rope_type": "yarn", "truncate": false}
	for _, field := range [...]struct {
		to        map[string]any
		name, was string
	}{
		{c, "num_hidden_layers", "num_hidden_layers"}, {c, "hidden_size", "hidden_size"}, {c, "intermediate_size", "intermediate_size"},
		{c, "num_attention_heads", "num_attention_heads"}, {c, "num_key_value_heads", "num_key_value_heads"}, {c, "head_dim", "head_dim"},
		{c, "num_local_experts", "num_experts"}, {c, "num_experts_per_tok", "experts_per_token"}, {c, "vocab_size", "vocab_size"},
		{c, "sliding_window", "sliding_window"}, {c, "swiglu_limit", "swiglu_limit"}, {c, "rope_theta", "rope_theta"},
		{rope, "factor", "rope_scaling_factor"}, {rope, "original_max_position_embeddings", "initial_context_length"},
		{rope, "beta_slow", "rope_ntk_alpha"}, {rope, "beta_fast", "rope_ntk_beta"},
	} {
		if f.has(field.was) {
			field.to[field.name] = f.object[field.was]
		}
	}
	c["rope_scaling"] = rope
	if config, err = json.Marshal(c); err != nil {
		return nil, nil, err
	}
	if f.integer("vocab_size", 1, maxVocab) == released.Vocab {
		generation, err = json.Marshal(map[string]any{"eos_token_id": released.EOS})
	}
	return config, generation, err
}

// originalNames maps the Hugging Face layout's names within a layer, and outside of them, to those of the original/ layout.
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

// fromOriginal gives a checkpoint's tensors their names in the Hugging Face layout; held are those of the original/ layout by their names.
func fromOriginal(s Spec, held map[string]Tensor) (map[string]Tensor, error) {
	query, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	out := make(map[string]Tensor, len(held))
	used := map[string]bool{}
	for _, want := range s.Tensors() {
		name := originalNames.Replace(want.Name)
		t, ok := held[name]
		if !ok {
			return nil, fmt.Errorf("tensor %s, which config.json calls for, is in no file", name)
		}
		used[name] = true
		first := -1
		switch {
		case strings.Contains(want.Name, ".q_proj."):
			first = 0
		case strings.Contains(want.Name, ".k_proj."):
			first = query
		case strings.Contains(want.Name, ".v_proj."):
			first = query + kv
		}
		if first >= 0 {
			var err error
			if t, err = part(t, first, want.Shape[0], query+2*kv); err != nil {
				return nil, err
			}
		}
		t.Name = want.Name
		out[want.Name] = t
	}
	for name, t := range held {
		if !used[name] {
			if strings.HasPrefix(name, "block.") {
				return nil, fmt.Errorf("%s holds tensor %s, which no gpt-oss of this config.json has: computing without it would be another model", t.File, safetensors.Show(name))
			}
			out[name] = t
		}
	}
	return out, nil
}

// part is a view of count rows of a tensor of total rows, from the first on.
func part(t Tensor, first, count, total int) (Tensor, error) {
	if len(t.Shape) == 0 || t.Shape[0] != total {
		return t, fmt.Errorf("%s: tensor %s has shape %v, config.json calls for %d rows", t.File, t.Name, t.Shape, total)
	}
	row := len(t.Data) / total
	t.Data = t.Data[first*row : (first+count)*row : (first+count)*row]
	t.Shape = append([]int{count}, t.Shape[1:]...)
	return t, nil
}

// originalIn is the folder of the original/ layout that a folder is, or holds beside nothing else; "" when it is neither.
func originalIn(folder string) string {
	for _, path := range [...]string{folder, filepath.Join(folder, "original")} {
		text, err := readFile(filepath.Join(path, "config.json"))
		if err != nil {
			continue
		}
		if f, err := parseFields("config.json", text); err == nil && f.isOriginal() {
			return path
		}
		return ""
	}
	return ""
}

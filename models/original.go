package models

// The config.json of OpenAI's original/ layout, which has other keys than the Hugging Face one.

import (
	"encoding/json"
	"path/filepath"
)

func (f fields) isOriginal() bool {
	return !f.has("model_type") && f.has("num_experts") && f.has("swiglu_limit")
}

// originalConfig rewrites a config.json of the original/ layout in the Hugging Face layout, so that
// there is one reader. Values that it lacks (longest context, end tokens) are the released ones.
func originalConfig(f fields) (config, generation []byte, err error) {
	released := Spec20B()
	c := map[string]any{
		"architectures": []string{"GptOssForCausalLM"}, "model_type": "gpt_oss",
		"hidden_act": "silu", "attention_bias": true,
		"tie_word_embeddings": false, "max_position_embeddings": released.MaxPosition,
		"rms_norm_eps":        1e-5,
		"quantization_config": map[string]any{"quant_method": "mxfp4"},
	}
	rope := map[string]any{"rope_type": "yarn", "truncate": false}
	for _, field := range [...]struct {
		to        map[string]any
		name, was string
	}{
		{c, "num_hidden_layers", "num_hidden_layers"}, {c, "hidden_size", "hidden_size"},
		{c, "intermediate_size", "intermediate_size"},
		{c, "num_attention_heads", "num_attention_heads"},
		{c, "num_key_value_heads", "num_key_value_heads"}, {c, "head_dim", "head_dim"},
		{c, "num_local_experts", "num_experts"}, {c, "num_experts_per_tok", "experts_per_token"},
		{c, "vocab_size", "vocab_size"},
		{c, "sliding_window", "sliding_window"}, {c, "swiglu_limit", "swiglu_limit"},
		{c, "rope_theta", "rope_theta"},
		{rope, "factor", "rope_scaling_factor"}, {rope, "original_max_position_embeddings",
			"initial_context_length"},
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

// HuggingFaceConfig returns config.json and generation_config.json in the Hugging Face layout.
// Files in that layout are returned unchanged.
func HuggingFaceConfig(text, generation []byte) ([]byte, []byte, error) {
	f, err := parseFields("config.json", text)
	if err != nil || !f.isOriginal() {
		return text, generation, err
	}
	config, released, err := originalConfig(f)
	if generation == nil {
		generation = released
	}
	return config, generation, err
}

// IsOriginal reports whether a folder's config.json is of the original/ layout, and whether there
// is one.
func IsOriginal(folder string) (is, exists bool) {
	text, err := ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		return false, false
	}
	f, err := parseFields("config.json", text)
	return err == nil && f.isOriginal(), true
}

package gguf

// A GGUF file's keys of a gpt-oss, rewritten as the config.json of the Hugging Face layout, so that
// there is one reader and one check of a model's shape.

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
)

// IsGPTOSS reports whether a GGUF file's keys are those of a gpt-oss, by llama.cpp's and ollama's
// names of the architecture.
func IsGPTOSS(keys map[string]any) (architecture string, ok bool) {
	architecture, _ = keys["general.architecture"].(string)
	return architecture, architecture == "gpt-oss" || architecture == "gptoss"
}

// otherModel returns an error that describes a file of another model. In a set of files, only the
// first has these keys.
func otherModel(keys map[string]any) error {
	switch kind, _ := keys["general.type"].(string); kind {
	case "", "model":
	case "adapter":
		return errorf("is an adapter for llama.cpp, not a model: give --lora the folder that " +
			"PEFT saved")
	default:
		return errorf("is of type %s, a part beside a model and none itself: point at the model",
			safetensors.Printable(kind))
	}
	if name, ok := IsGPTOSS(keys); !ok && name != "" {
		return errorf("%s", models.OtherArchitecture(name))
	}
	return nil
}

// describe returns a GGUF model's config.json and generation_config.json.
func describe(set *Set) (config, generation []byte, err error) {
	file := filepath.Base(set.Files[0])
	architecture, ok := IsGPTOSS(set.Keys)
	if !ok {
		return nil, nil, fmt.Errorf("%s names no architecture: it is not a whole model", file)
	}
	embedding, ok := set.Tensors["token_embd.weight"]
	if !ok || len(embedding.Shape) != 2 {
		return nil, nil, fmt.Errorf(
			"%s does not hold tensor token_embd.weight [vocabulary, hidden]", file)
	}
	c := map[string]any{
		"architectures": []string{"GptOssForCausalLM"}, "model_type": "gpt_oss",
		"vocab_size": embedding.Shape[0],
		"hidden_act": "silu", "attention_bias": true, "tie_word_embeddings": false,
		"swiglu_limit":        models.SwigluLimit,
		"quantization_config": map[string]any{"quant_method": "mxfp4"},
	}
	// llama.cpp's own constants for gpt-oss
	rope := map[string]any{"rope_type": "yarn", "truncate": false, "beta_fast": 32.0,
		"beta_slow": 1.0}
	// Missing keys stay missing: the reader of config.json reports them.
	take := func(to map[string]any, field string, keys ...string) {
		for _, key := range keys {
			if v, ok := set.Keys[architecture+"."+key]; ok {
				switch v.(type) {
				case int64, float64:
					to[field] = v
				}
				return
			}
		}
	}
	for field, key := range map[string]string{
		"num_hidden_layers": "block_count", "hidden_size": "embedding_length",
		"num_attention_heads": "attention.head_count",
		"num_key_value_heads": "attention.head_count_kv", "head_dim": "attention.key_length",
		"num_local_experts": "expert_count", "num_experts_per_tok": "expert_used_count",
		"max_position_embeddings": "context_length", "sliding_window": "attention.sliding_window",
		"rms_norm_eps": "attention.layer_norm_rms_epsilon", "rope_theta": "rope.freq_base",
	} {
		take(c, field, key)
	}
	take(c, "intermediate_size", "expert_feed_forward_length", "feed_forward_length")
	take(rope, "factor", "rope.scaling.factor")
	take(rope, "original_max_position_embeddings", "rope.scaling.original_context_length")
	if kind, _ := set.Keys[architecture+".rope.scaling.type"].(string); kind != "" {
		rope["rope_type"] = kind
	}
	c["rope_scaling"] = rope
	ends := endTokens(set, embedding.Shape[0])
	if len(ends) > 0 {
		c["eos_token_id"] = ends[0]
	}
	if config, err = json.MarshalIndent(c, "", "  "); err != nil {
		return nil, nil, err
	}
	g := map[string]any{"eos_token_id": ends}
	for field, key := range map[string]string{"temperature": "temp", "top_k": "top_k",
		"top_p": "top_p", "min_p": "min_p", "repetition_penalty": "penalty_repeat"} {
		switch v := set.Keys["general.sampling."+key].(type) {
		case int64:
			g[field] = v
		case float64:
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				g[field] = json.Number(strconv.FormatFloat(v, 'g', -1, 32)) // as it was written
			}
		}
	}
	generation, err = json.MarshalIndent(g, "", "  ")
	return config, generation, err
}

// endTokens lists the tokens that end a turn: those of the file, and with the published vocabulary
// all three of OpenAI's generation_config.json. llama.cpp's files name only one; llama.cpp finds
// the others by text.
func endTokens(set *Set, vocab int) []int64 {
	all, _ := set.Keys["tokenizer.ggml.eos_token_ids"].([]int64)
	all = slices.Clone(all)
	for _, kind := range [...]string{"eos", "eot", "eom"} {
		n, ok := set.Keys["tokenizer.ggml."+kind+"_token_id"].(int64)
		if ok && (kind == "eos" || n >= 0 && n < int64(vocab)) { // the others are optional
			all = append(all, n)
		}
	}
	if published := models.Spec20B(); vocab == published.Vocab {
		for _, id := range published.EOS {
			all = append(all, int64(id))
		}
	}
	var ends []int64
	for _, id := range all {
		if !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	return ends
}

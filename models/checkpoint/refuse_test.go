package checkpoint_test

// Every way in which a checkpoint can be wrong, truncated or foreign, with its error. Each case
// changes a valid checkpoint, so a case that opens as well, or fails for another reason, is
// detected.

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// write writes a checkpoint into a new folder called "tune".
func write(t *testing.T, c *modeltest.Checkpoint) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tune")
	hosttest.Check(t, c.Write(folder))
	return folder
}

func TestOpenWritten(t *testing.T) {
	for _, files := range []int{1, 2, 3, 41} {
		c, err := checkpoint.Open(write(t, modeltest.New(modeltest.Tiny(), files)))
		if err != nil {
			t.Fatalf("in %d files: %v", files, err)
		}
		if !c.Spec.SameShape(modeltest.Tiny()) || c.Spec.Name != "tune" {
			t.Errorf("in %d files: spec %+v", files, c.Spec)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// refuse opens a folder that must be refused with exactly want.
func refuse(t *testing.T, folder, want string) {
	t.Helper()
	c, err := checkpoint.Open(folder)
	if err == nil {
		c.Close()
		t.Fatalf("it opens, want: %s", want)
	}
	if got := err.Error(); got != want {
		t.Errorf("\n got: %s\nwant: %s", got, want)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("the error has several lines")
	}
}

const (
	Advice = "use openai/gpt-oss-20b or openai/gpt-oss-120b, or a fine-tune with " +
		"MXFP4 experts or in 16 bits"
	dequant = "its experts are not MXFP4: `ossrun import` makes a checkpoint of it that ossrun runs"
)

func TestRefuseConfig(t *testing.T) {
	type object = map[string]any
	for _, test := range []struct {
		name   string
		change func(c object)
		want   string
	}{
		{"activation", func(c object) { c["hidden_act"] = "gelu" },
			`config.json: hidden_act is "gelu", gpt-oss has silu`},
		{"window", func(c object) { c["sliding_window"] = 256 },
			"config.json: sliding_window is 256, gpt-oss has 128"},
		{"no window", func(c object) { delete(c, "sliding_window") },
			"config.json: sliding_window is missing, gpt-oss has 128"},
		{"head_dim", func(c object) { c["head_dim"] = 80 },
			"config.json: head_dim is 80, gpt-oss has 64"},
		{"limit", func(c object) { c["swiglu_limit"] = 6.5 },
			"config.json: swiglu_limit is 6.5, gpt-oss has 7"},
		{"no bias", func(c object) { c["attention_bias"] = false },
			"config.json: attention_bias is false, gpt-oss has true"},
		{"tied", func(c object) { c["tie_word_embeddings"] = true },
			"config.json: tie_word_embeddings is true, gpt-oss has false"},
		{"truncate", func(c object) { c["rope_scaling"].(object)["truncate"] = true },
			"config.json: rope_scaling.truncate is true, gpt-oss has false"},
		{"no truncate", func(c object) { delete(c["rope_scaling"].(object), "truncate") },
			"config.json: rope_scaling.truncate is missing, gpt-oss has false"},
		{"linear rope", func(c object) { c["rope_scaling"].(object)["rope_type"] = "linear" },
			`config.json: rope_scaling.rope_type is "linear", gpt-oss has yarn`},
		{"no rope", func(c object) { delete(c, "rope_scaling") },
			"config.json: rope_scaling is missing, gpt-oss has yarn"},
		{"attention factor", func(c object) { c["rope_scaling"].(object)["attention_factor"] = 1 },
			"config.json: rope_scaling.attention_factor is 1, gpt-oss has 0.1 ln(factor) + 1"},
		{"mscale", func(c object) { c["rope_scaling"].(object)["mscale"] = 1 },
			"config.json: rope_scaling.mscale is 1, gpt-oss has none"},
		{"rope is a list", func(c object) { c["rope_scaling"] = []int{1} },
			"config.json: rope_scaling is [1], not an object"},
		{"layer types", func(c object) {
			c["layer_types"] = []string{"full_attention",
				"sliding_attention"}
		},
			`config.json: layer_types[0] is "full_attention", gpt-oss has sliding_attention`},
		{"too few layer types", func(c object) { c["layer_types"] = []string{"sliding_attention"} },
			"config.json: layer_types names 1 layers, num_hidden_layers is 2"},
		{"no layers", func(c object) { delete(c, "num_hidden_layers") },
			"config.json: num_hidden_layers is missing"},
		{"zero layers", func(c object) { c["num_hidden_layers"] = 0 },
			"config.json: num_hidden_layers is 0, outside 1..1024"},
		{"a million layers", func(c object) { c["num_hidden_layers"] = 1e6 },
			"config.json: num_hidden_layers is 1000000, outside 1..1024"},
		{"half a layer", func(c object) { c["num_hidden_layers"] = 2.5 },
			"config.json: num_hidden_layers is 2.5, not a whole number"},
		{"layers in words", func(c object) { c["num_hidden_layers"] = "two" },
			`config.json: num_hidden_layers is "two", not a whole number`},
		{"odd width", func(c object) { c["hidden_size"] = 72 },
			"config.json: hidden_size is 72, not a multiple of the 32 elements of an MXFP4 block"},
		{"odd experts", func(c object) { c["intermediate_size"] = 40 },
			"config.json: intermediate_size is 40, not a multiple of the 32 elements of an MXFP4 " +
				"block"},
		{"groups", func(c object) { c["num_key_value_heads"] = 4 },
			"config.json: num_attention_heads is 2, not a multiple of num_key_value_heads 4"},
		{"more per token than there are", func(c object) { c["num_experts_per_tok"] = 5 },
			"config.json: num_experts_per_tok is 5, outside 1..4"},
		{"two numbers per token", func(c object) { c["experts_per_token"] = 3 },
			"config.json: experts_per_token is 3, gpt-oss has 2"},
		{"eps", func(c object) { c["rms_norm_eps"] = 0 },
			"config.json: rms_norm_eps is 0, outside 0..0.1"},
		{"theta", func(c object) { c["rope_theta"] = 0.5 },
			"config.json: rope_theta is 0.5, not above 1"},
		{"eos", func(c object) { c["eos_token_id"] = 96 },
			"config.json: eos_token_id holds 96, outside the vocabulary of 96"},
		{"eos in words", func(c object) { c["eos_token_id"] = "end" },
			`config.json: eos_token_id is "end", not a token id or a list of them`},
		{"not quantised", func(c object) { delete(c, "quantization_config") },
			"config.json: quantization_config is missing: " + dequant},
		{"llama", func(c object) {
			c["model_type"], c["architectures"] = "llama",
				[]string{"LlamaForCausalLM"}
		},
			"config.json: model_type is llama (LlamaForCausalLM), and ossrun runs gpt-oss only: " +
				"run it with llama.cpp, Ollama or vLLM, or run ossrun pull 20b"},
		{"no type", func(c object) { delete(c, "model_type") },
			"config.json: model_type is missing: this is not a gpt-oss checkpoint"},
		{"other head", func(c object) { c["architectures"] = []string{"GptOssForSequenceClassification"} }, "config.json: architectures holds GptOssForSequenceClassification, gpt-oss has GptOssForCausalLM"},
		{"eagle", func(c object) {
			c["model_type"], c["architectures"], c["eagle_config"] = "llama",
				[]string{"LlamaForCausalLMEagle3"}, object{}
		}, "config.json describes an EAGLE-3 draft (LlamaForCausalLMEagle3), a helper that " +
			"guesses tokens for a model and is none itself: point at the model"},
		{"speculators", func(c object) {
			c["model_type"], c["speculators_model_type"] = "",
				"eagle3"
		}, "config.json describes a draft for speculative decoding, not a model: " +
			"point at the model"},
		{"original", func(c object) {
			for key := range c {
				delete(c, key)
			}
			c["num_experts"], c["swiglu_limit"] = 32, 7.0
		}, "config.json: num_hidden_layers is missing"},
		{"quark", func(c object) { c["quantization_config"] = object{"quant_method": "quark"} },
			"config.json: quantization_config.quant_method is quark: AMD's conversion with 8-bit " +
				"activations stores the weights differently; " + Advice},
		{"bitsandbytes", func(c object) { c["quantization_config"] = object{"quant_method": "bitsandbytes"} }, "config.json: its weights are in bitsandbytes' 4 bits, which are rounded already: export it " +
			"merged in 16 bits (unsloth: save_method=\"merged_16bit\"; PEFT: merge_and_unload on " +
			"the 16-bit base) and run ossrun import on that"},
		{"no method", func(c object) { c["quantization_config"] = object{} },
			"config.json: quantization_config.quant_method is missing, gpt-oss has mxfp4"},
		{"mlx", func(c object) {
			c["quantization"] = object{"group_size": 32, "bits": 4}
			delete(c, "quantization_config")
		}, "config.json describes an MLX conversion: " + Advice},
		{"type is a number", func(c object) { c["model_type"] = 4 },
			"config.json: model_type is 4, not a string"},
		{"control characters", func(c object) { c["model_type"] = "\x1b[2Jllama" },
			`config.json: model_type is "\x1b[2Jllama" (GptOssForCausalLM), and ossrun runs gpt-oss ` +
				"only: run it with llama.cpp, Ollama or vLLM, or run ossrun pull 20b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := modeltest.New(modeltest.Tiny(), 2)
			// Through JSON, so that nested objects are the checkpoint's own.
			text := hosttest.Must(json.Marshal(c.Config))(t)
			c.Config = nil
			hosttest.Check(t, json.Unmarshal(text, &c.Config))
			test.change(c.Config)
			refuse(t, write(t, c), test.want)
		})
	}
}

// Configs with the same meaning and other spellings.
func TestConfigVariants(t *testing.T) {
	type object = map[string]any
	for name, change := range map[string]func(c object){
		"transformers 5": func(c object) {
			rope := c["rope_scaling"].(object)
			rope["rope_theta"] = c["rope_theta"]
			c["rope_parameters"] = rope
			delete(c, "rope_scaling")
			delete(c, "rope_theta")
		},
		"only experts_per_token": func(c object) { delete(c, "num_experts_per_tok") },
		"only the numbers": func(c object) {
			delete(c, "layer_types")
			delete(c,
				"hidden_act")
			delete(c, "attention_bias")
		},
		"nulls": func(c object) {
			c["tie_word_embeddings"],
				c["swiglu_limit"] = nil, nil
		},
		"attention factor stated": func(c object) {
			c["rope_scaling"].(object)["attention_factor"] = 1.3465735902799727
		},
		"type for rope_type": func(c object) {
			r := c["rope_scaling"].(object)
			r["type"] = "yarn"
			delete(r, "rope_type")
		},
		"list of eos": func(c object) { c["eos_token_id"] = []int{95, 95} },
		"fields of other tools": func(c object) {
			c["unsloth_fixed"], c["dtype"] = true,
				"bfloat16"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := modeltest.New(modeltest.Tiny(), 1)
			c.Generation = nil
			change(c.Config)
			got := hosttest.Must(checkpoint.Open(write(t, c)))(t)
			defer got.Close()
			if !got.Spec.SameShape(modeltest.Tiny()) || len(got.Spec.EOS) != 1 ||
				got.Spec.EOS[0] != 95 {
				t.Errorf("spec is %+v", got.Spec)
			}
		})
	}
}

func TestRefuseTensors(t *testing.T) {
	const (
		scales = "model.layers.0.mlp.experts.gate_up_proj_scales"
		first  = "model-00000-of-00001.safetensors"
		second = "model-00001-of-00001.safetensors"
	)
	for _, test := range []struct {
		name   string
		files  int
		change func(c *modeltest.Checkpoint)
		want   string
	}{
		{"missing in one file", 1,
			func(c *modeltest.Checkpoint) { c.Drop(func(n string) bool { return n == scales }) },
			"model.safetensors does not hold tensor " + scales + ", which config.json calls for"},
		{"missing in the index", 2,
			func(c *modeltest.Checkpoint) { c.Drop(func(n string) bool { return n == scales }) },
			"model.safetensors.index.json does not list tensor " + scales +
				", which config.json calls for"},
		{"type", 2, func(c *modeltest.Checkpoint) { c.Tensor("model.norm.weight").DType = "F16" },
			second + ": tensor model.norm.weight is F16, gpt-oss has BF16"},
		{"float scales", 2, func(c *modeltest.Checkpoint) { c.Tensor(scales).DType = "F8_E8M0" },
			first + ": tensor " + scales + " is F8_E8M0, gpt-oss has U8"},
		{"transposed", 2,
			func(c *modeltest.Checkpoint) {
				c.Tensor("model.embed_tokens.weight").Shape = []int{64,
					96}
			},
			first + ": tensor model.embed_tokens.weight has shape [64 96], config.json calls for " +
				"[96 64]"},
		{"flat blocks", 2, func(c *modeltest.Checkpoint) {
			t := c.Tensor("model.layers.0.mlp.experts.down_proj_blocks")
			t.Shape = []int{4, 64, 16}
		}, first + ": tensor model.layers.0.mlp.experts.down_proj_blocks has shape [4 64 16], " +
			"config.json calls for [4 64 1 16]"},
		{"a layer too many", 2,
			func(c *modeltest.Checkpoint) {
				c.Add("model.layers.2.input_layernorm.weight", "BF16",
					2, 64)
			},
			second + " holds tensor model.layers.2.input_layernorm.weight, which no gpt-oss of " +
				"this config.json has: computing without it would be another model"},
		{"query norm", 2,
			func(c *modeltest.Checkpoint) {
				c.Add("model.layers.1.self_attn.q_norm.weight", "BF16",
					2, 64)
			},
			second + " holds tensor model.layers.1.self_attn.q_norm.weight, which no gpt-oss of " +
				"this config.json has: computing without it would be another model"},
		{"held twice", 2, func(c *modeltest.Checkpoint) {
			c.Add("model.embed_tokens.weight", "BF16",
				2, 96, 64)
		},
			first + " and " + second + " both hold tensor model.embed_tokens.weight"},
		{"lora", 2, func(c *modeltest.Checkpoint) {
			c.Add("model.layers.1.self_attn.q_proj.lora_A.weight", "BF16", 2, 8, 64)
		},
			second + " holds tensor model.layers.1.self_attn.q_proj.lora_A.weight of a LoRA " +
				"adapter: merge the adapter into its base model and keep the experts in MXFP4"},
		{"dequantised", 2, func(c *modeltest.Checkpoint) {
			c.Drop(func(n string) bool { return strings.Contains(n, "down_proj_") })
			c.Add("model.layers.0.mlp.experts.down_proj", "BF16", 2, 4, 32, 64)
		}, second + ": tensor model.layers.0.mlp.experts.down_proj is BF16: " + dequant},
		{"quantised activations", 2, func(c *modeltest.Checkpoint) {
			c.Add("model.layers.0.mlp.experts.0.down_proj.input_scale", "F32", 4)
		}, second + " holds tensor model.layers.0.mlp.experts.0.down_proj.input_scale of a " +
			"conversion with quantised activations: " + Advice},
		{"original tensors", 1, func(c *modeltest.Checkpoint) {
			c.Drop(func(string) bool { return true })
			c.Add("block.0.mlp.mlp1_weight.blocks", "U8", 1, 4, 64, 2, 16)
		}, "model.safetensors holds tensor block.0.mlp.mlp1_weight.blocks of the original/ " +
			"layout, and its config.json is not of that layout"},
		{"no tensors", 1,
			func(c *modeltest.Checkpoint) { c.Drop(func(string) bool { return true }) },
			"model.safetensors does not hold tensor model.embed_tokens.weight, which config.json " +
				"calls for"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := modeltest.New(modeltest.Tiny(), test.files)
			test.change(c)
			refuse(t, write(t, c), test.want)
		})
	}
}

func TestIgnoredTensors(t *testing.T) {
	c := modeltest.New(modeltest.Tiny(), 2)
	c.Add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", 4, 32)
	c.Add("trainer.step", "I64", 8)
	got := hosttest.Must(checkpoint.Open(write(t, c)))(t)
	defer got.Close()
	if want := "model.layers.0.self_attn.rotary_emb.inv_freq trainer.step"; strings.Join(
		got.Ignored, " ") != want {
		t.Errorf("ignored are %q, want %s", got.Ignored, want)
	}
}

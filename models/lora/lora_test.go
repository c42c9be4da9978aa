package lora_test

// Refused adapters, each in one sentence, and adapters' names. That the numbers are PEFT's is
// tested with an engine, in runtime/engine/golden.

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestRefused: an adapter that cannot be added as by PEFT is refused before anything is computed.
func TestRefused(t *testing.T) {
	set := func(field string, value any) func(*modeltest.Adapter) {
		return func(a *modeltest.Adapter) { a.Config[field] = value }
	}
	first := func(change func(*modeltest.Tensor)) func(*modeltest.Adapter) {
		return func(a *modeltest.Adapter) { change(&a.Tensors[0]) }
	}
	renamed := func(from, to string) func(*modeltest.Adapter) {
		return first(func(t *modeltest.Tensor) { t.Name = strings.Replace(t.Name, from, to, 1) })
	}
	for _, test := range []struct {
		name   string
		change func(*modeltest.Adapter)
		want   string
	}{
		{"IA3", set("peft_type", "IA3"), `peft_type is "IA3": only LORA adapters are supported`},
		{"no type", set("peft_type", nil), "peft_type is missing"},
		{"no rank", set("r", nil), "adapter_config.json: r is missing"},
		{"rank of 0", set("r", 0), "r is 0, outside 1..65536"},
		{"alpha of 0", set("lora_alpha", 0), "lora_alpha is 0, outside 0..1e+09"},
		{"DoRA", set("use_dora", true), "use_dora is true, which is not supported: merge it with " +
			"PEFT's merge_and_unload, then run ossrun import on the result"},
		{"fan-in", set("fan_in_fan_out", true), "fan_in_fan_out is true, which is not supported"},
		{"a bias of B", set("lora_bias", true), "lora_bias is true, which is not supported"},
		{"layers twice", set("layer_replication", [][]int{{0, 1}}),
			"layer_replication is [[0,1]], which is not supported"},
		{"tokens", set("trainable_token_indices", []int{3}),
			"trainable_token_indices is [3], which is not supported"},
		{"a newer field", set("use_what\x1bever", 1),
			`"use_what\x1bever" is 1, which is not supported`},
		{"PiSSA", set("init_lora_weights", "pissa_niter_4"),
			`init_lora_weights is "pissa_niter_4", which changes the base model too`},
		{"rsLoRA of a text", set("use_rslora", "yes"), `use_rslora is "yes", not true or false`},
		{"a broken pattern", set("rank_pattern", map[string]any{"q_(": 4}),
			"rank_pattern holds q_(, which is not a pattern"},
		{"half a rank", set("rank_pattern", map[string]any{"q_proj": 4.5}),
			"rank_pattern holds a value for q_proj that is not a whole number above 0"},
		{"patterns in a list", set("alpha_pattern", []int{1}),
			"alpha_pattern is [1], not an object"},
		{"another rank", set("r", 8), "lora_A.weight has shape [4 64], tiny needs [8 64]; it was " +
			"trained on someone/tiny"},
		{"another model", func(a *modeltest.Adapter) {
			a.Config["base_model_name_or_path"], a.Config["r"] = "meta-llama/Llama-3.1-8B", 8
		}, "tiny needs [8 64]; it was trained on meta-llama/Llama-3.1-8B; no gpt-oss by its name, " +
			"and ossrun runs gpt-oss only: run it with llama.cpp, Ollama or vLLM, or run ossrun pull 20b"},
		{"another width", first(func(t *modeltest.Tensor) {
			t.Shape, t.Data = []int{4, 32}, t.Data[:256]
		}), "lora_A.weight has shape [4 32], tiny needs [4 64]; it was trained on someone/tiny"},
		{"more layers", func(a *modeltest.Adapter) {
			for i := range a.Tensors[:2] {
				a.Tensors[i].Name = strings.Replace(a.Tensors[i].Name, "layers.0", "layers.7", 1)
			}
		},
			"adapter_model.safetensors changes model.layers.7.self_attn.q_proj.weight, which tiny " +
				"does not have"},
		{"half a pair", func(a *modeltest.Adapter) { a.Tensors = a.Tensors[1:] },
			"adapter_model.safetensors does not hold a pair of lora_A and lora_B for " +
				"model.layers.0.self_attn.q_proj"},
		{"nothing", func(a *modeltest.Adapter) { a.Tensors = nil },
			"adapter_model.safetensors holds no tensor"},
		{"experts", renamed("self_attn.q_proj", "mlp.experts"),
			"it changes the experts (tensor base_model.model.model.layers.0.mlp.experts.lora_A." +
				"weight), whose weights are MXFP4: run ossrun import MODEL --lora /"},
		{"embedding", renamed("lora_A.weight", "lora_embedding_A"),
			"lora_embedding_A, which is not supported: merge it"},
		{"a magnitude", renamed("lora_A.weight", "lora_magnitude_vector"),
			"lora_magnitude_vector, which is not supported: merge it"},
		{"another prefix", renamed("base_model.model.", ""),
			"holds tensor model.layers.0.self_attn.q_proj.lora_A.weight, which PEFT would call"},
		{"integers", first(func(t *modeltest.Tensor) { t.DType = "I16" }),
			"lora_A.weight is I16, not BF16, F16 or F32"},
		{"NaN", first(func(t *modeltest.Tensor) { t.Data[7], t.Data[6] = 0x7f, 0xc0 }),
			"lora_A.weight holds NaN: only finite numbers can be added"},
		{"infinity", first(func(t *modeltest.Tensor) { t.Data[1], t.Data[0] = 0xff, 0x80 }),
			"lora_A.weight holds -Inf: only finite numbers can be added"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			a := modeltest.NewAdapter(modeltest.Tiny(), "q_proj.weight")
			test.change(a)
			hosttest.Check(t, a.Write(folder))
			refused(t, folder, modeltest.Tiny(), test.want)
		})
	}
}

// refused opens the adapter in a folder and compares the sentence.
func refused(t *testing.T, folder string, spec models.Spec, want string) {
	t.Helper()
	ref, err := lora.Find(folder)
	if err == nil {
		var a *lora.Adapter
		if a, err = ref.Open(spec); err == nil {
			a.Close()
		}
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("gives   %v\nwant it to have %s", err, want)
	}
	if text := err.Error(); strings.ContainsAny(text, "\n\x1b") || len(text) > 400 {
		t.Errorf("is no sentence: %q", text)
	}
}

// TestOtherBase: the matrices of 20b's and 120b's attention have the same shapes, so the base's
// name decides; unknown names are accepted.
func TestOtherBase(t *testing.T) {
	for base, ok := range map[string]bool{"openai/gpt-oss-20b": true, "unsloth/gpt-oss-20b-BF16": true,
		"/models/GPT-OSS-20B": true, "": true, "someone/tune": true,
		"openai/gpt-oss-safeguard-20b": true, "openai/gpt-oss-120b": false,
		"/gpt-oss-20b/unsloth/gpt-oss-120b-unsloth-bnb-4bit": false} {
		if err := lora.OtherBase(base, models.Spec20B()); (err == nil) != ok {
			t.Errorf("%q for 20b: %v", base, err)
		} else if err != nil && !strings.Contains(err.Error(), "--model 120b") {
			t.Errorf("%q: %v", base, err)
		}
	}
	if err := lora.OtherBase("openai/gpt-oss-20b", modeltest.Tiny()); err != nil {
		t.Errorf("a shape of nobody's: %v", err) // its tensors decide
	}
}

func TestFind(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	folder := filepath.Join(t.TempDir(), "tune")
	odd := folder + ":0.25"
	for _, f := range []string{folder, odd} {
		hosttest.Check(t, os.Mkdir(f, 0o755))
	}
	for text, want := range map[string]lora.Ref{folder: {"tune", folder, 1},
		folder + ":0.5": {"tune", folder, 0.5}, folder + ":-1": {"tune", folder, -1},
		odd: {"tune:0.25", odd, 1}, odd + ":2": {"tune:0.25", odd, 2}} {
		if got, err := lora.Find(text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		folder + ":NaN":      "must lie between -100 and 100, not NaN",
		folder + ":101":      "must lie between -100 and 100, not 101",
		"hf:someone":         "is not a Hugging Face repository",
		"hf:someone/tune":    "someone/tune is not downloaded: run ossrun pull hf:someone/tune",
		"hf:someone/tune:.5": "run ossrun pull hf:someone/tune",
	} {
		if got, err := lora.Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

// TestTooLarge: a value above bfloat16's range is refused, not made infinite.
func TestTooLarge(t *testing.T) {
	folder, spec := t.TempDir(), modeltest.Tiny()
	a := modeltest.NewAdapter(spec, "router.weight")
	for i := range a.Tensors {
		for j := range len(a.Tensors[i].Data) / 2 {
			bits := uint16(math.Float32bits(1e30) >> 16)
			a.Tensors[i].Data[2*j], a.Tensors[i].Data[2*j+1] = byte(bits), byte(bits>>8)
		}
	}
	hosttest.Check(t, a.Write(folder))
	opened := hosttest.Must(lora.Ref{Name: "huge", Path: folder, Scale: 1}.Open(spec))(t)
	defer opened.Close()
	for _, t2 := range spec.Tensors() {
		if !opened.Changes(t2.Name) {
			continue
		}
		base := models.Tensor{Name: t2.Name, DType: t2.DType, Shape: t2.Shape,
			Data: make([]byte, t2.Bytes())}
		err := lora.Add(base, []*lora.Adapter{opened}).Rows(0, 1, make([]byte, t2.Bytes()))
		if err == nil || !strings.Contains(err.Error(), "which no bfloat16 holds") {
			t.Errorf("%s: %v", t2.Name, err)
		}
	}
}

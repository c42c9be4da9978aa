package models

// Errors about a config.json of another model, or of a gpt-oss in a form that ossrun does not run.
// Order matters: the more specific sign is checked first.

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/models/safetensors"
)

// Advice ends sentences about models in a form that ossrun does not run.
const Advice = "use openai/gpt-oss-20b or openai/gpt-oss-120b, or a fine-tune with MXFP4 experts " +
	"or in 16 bits"

// foreignAdvice ends sentences about models that are not gpt-oss.
const foreignAdvice = "ossrun runs gpt-oss only: run it with llama.cpp, Ollama or vLLM, or run " +
	"ossrun pull 20b"

// OtherArchitecture describes a file with another architecture.
func OtherArchitecture(name string) string {
	return fmt.Sprintf("is a model of architecture %s, and %s", safetensors.Printable(name),
		foreignAdvice)
}

// OtherBase describes an adapter's base model that is not gpt-oss by its name, or returns "".
func OtherBase(base string) string {
	lower := strings.ToLower(base)
	if base == "" || strings.Contains(lower, "gpt-oss") || strings.Contains(lower, "gpt_oss") {
		return ""
	}
	return "; no gpt-oss by its name, and " + foreignAdvice
}

// ForeignError returns an error for a config.json of another model, or of a gpt-oss that neither
// runs nor can be imported.
func ForeignError(config []byte) error {
	f, err := parseFields("config.json", config)
	if err != nil || f.isOriginal() {
		return err
	}
	return foreignConfig(f)
}

// IsGPTOSS reports whether a config.json in the Hugging Face layout is that of a gpt-oss.
func IsGPTOSS(config []byte) bool {
	f, err := parseFields("config.json", config)
	return err == nil && f.text("model_type") == "gpt_oss"
}

// DequantisedExperts describes a checkpoint without MXFP4 experts.
const DequantisedExperts = "its experts are not MXFP4: `ossrun import` makes a checkpoint of it " +
	"that ossrun runs"

// foreignConfig returns an error for a config.json of another model, or of a gpt-oss in a form that
// ossrun does not run.
func foreignConfig(f fields) error {
	name := strings.TrimSuffix(f.where, ": ")
	architecture := ""
	if f.has("architectures") {
		// Anything but a list of strings leaves this empty, and model_type decides.
		var list []string
		if json.Unmarshal(f.object["architectures"], &list) == nil && len(list) > 0 {
			architecture = list[0]
		}
	}
	kind := f.text("model_type")
	if *f.err != nil {
		return *f.err
	}
	switch {
	case f.has("eagle_config"), f.has("draft_vocab_size"),
		strings.Contains(strings.ToLower(architecture), "eagle"):
		return fmt.Errorf(
			"%s describes an EAGLE-3 draft (%s), a helper that guesses tokens for a model and is "+
				"none itself: point at the model", name, safetensors.Printable(architecture))
	case f.has("speculators_model_type"), f.has("speculators_config"):
		return fmt.Errorf(
			"%s describes a draft for speculative decoding, not a model: point at the model", name)
	case kind == "":
		return fmt.Errorf("%s: model_type is missing: this is not a gpt-oss checkpoint", name)
	case kind != "gpt_oss":
		described := safetensors.Printable(kind)
		if architecture != "" {
			described += " (" + safetensors.Printable(architecture) + ")"
		}
		return fmt.Errorf("%s: model_type is %s, and %s", name, described, foreignAdvice)
	case architecture != "" && architecture != "GptOssForCausalLM":
		return fmt.Errorf("%s: architectures holds %s, gpt-oss has GptOssForCausalLM", name,
			safetensors.Printable(architecture))
	}
	if f.has("quantization") && !f.has("quantization_config") ||
		f.sub("quantization_config").has("group_size") &&
			!f.sub("quantization_config").has("quant_method") {
		return fmt.Errorf("%s describes an MLX conversion: %s", name, Advice)
	}
	method := f.sub("quantization_config").text("quant_method")
	if *f.err != nil {
		return *f.err
	}
	switch method {
	case "mxfp4", "":
		return nil
	case "quark":
		return fmt.Errorf(
			"%s: quantization_config.quant_method is quark: AMD's conversion with 8-bit "+
				"activations stores the weights differently; %s", name, Advice)
	case "bitsandbytes":
		return fmt.Errorf("%s: its weights are in bitsandbytes' 4 bits, which are rounded "+
			"already: export it merged in 16 bits (unsloth: save_method=\"merged_16bit\"; PEFT: "+
			"merge_and_unload on the 16-bit base) and run ossrun import on that", name)
	}
	return fmt.Errorf("%s: quantization_config.quant_method is %s, not mxfp4: %s", name,
		safetensors.Printable(method), Advice)
}

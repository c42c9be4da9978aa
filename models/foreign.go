package models

// What people point at that is not a gpt-oss checkpoint in the Hugging Face layout, each named for what it is with what to
// do. Order matters in both lists: the more telling sign comes first.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models/safetensors"
)

// advice ends sentences about models in a form that ossrun does not run.
const advice = "use openai/gpt-oss-20b or openai/gpt-oss-120b, or a fine-tune that kept their MXFP4 experts"

// bf16Experts says what a checkpoint without MXFP4 experts is.
const bf16Experts = "the experts of this checkpoint were dequantised; " + advice

// foreignConfig names a config.json that is no gpt-oss's, or a gpt-oss's in a form that ossrun does not run.
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
	case f.has("eagle_config"), f.has("draft_vocab_size"), strings.Contains(strings.ToLower(architecture), "eagle"):
		return fmt.Errorf("%s describes an EAGLE-3 draft (%s), a helper that guesses tokens for a model and is none itself: point at the model", name, safetensors.Show(architecture))
	case f.has("speculators_model_type"), f.has("speculators_config"):
		return fmt.Errorf("%s describes a draft for speculative decoding, not a model: point at the model", name)
	case kind == "":
		return fmt.Errorf("%s: model_type is missing: this is no gpt-oss checkpoint", name)
	case kind != "gpt_oss":
		described := safetensors.Show(kind)
		if architecture != "" {
			described += " (" + safetensors.Show(architecture) + ")"
		}
		return fmt.Errorf("%s: model_type is %s: ossrun runs gpt-oss only", name, described)
	case architecture != "" && architecture != "GptOssForCausalLM":
		return fmt.Errorf("%s: architectures holds %s, gpt-oss has GptOssForCausalLM", name, safetensors.Show(architecture))
	}
	if f.has("quantization") && !f.has("quantization_config") || f.sub("quantization_config").has("group_size") && !f.sub("quantization_config").has("quant_method") {
		return fmt.Errorf("%s describes an MLX conversion: %s", name, advice)
	}
	method := f.sub("quantization_config").text("quant_method")
	if *f.err != nil {
		return *f.err
	}
	switch method {
	case "mxfp4", "":
		return nil
	case "quark":
		return fmt.Errorf("%s: quantization_config.quant_method is quark: AMD's conversion with 8-bit activations stores the weights differently; %s", name, advice)
	}
	return fmt.Errorf("%s: quantization_config.quant_method is %s, not mxfp4: %s", name, safetensors.Show(method), advice)
}

// foreignFile names a file that somebody gave where a folder belongs.
func foreignFile(path string) error {
	name := filepath.Base(path)
	begin := make([]byte, 8)
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch begin = begin[:n]; {
	case strings.EqualFold(filepath.Ext(name), ".gguf") && !bytes.HasPrefix(begin, []byte("GGUF")):
		return fmt.Errorf("%s is no GGUF file, whatever its name: it begins with %q", name, begin)
	case bytes.HasPrefix(begin, []byte("GGUF")):
		return fmt.Errorf("%s is a GGUF file, llama.cpp's format: give its own path to --model", name)
	case strings.HasSuffix(name, ".safetensors"), strings.HasSuffix(name, ".json"):
		return fmt.Errorf("%s is one file of a checkpoint: point at its folder", name)
	}
	return fmt.Errorf("%s is a file: point at a folder with config.json and model.safetensors", name)
}

// foreignFolder says what a folder without config.json is.
func foreignFolder(path string) error {
	name := filepath.Base(path)
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	holds := func(match func(string) bool) bool {
		for _, e := range entries {
			if match(e.Name()) {
				return true
			}
		}
		return false
	}
	suffix := func(end string) func(string) bool {
		return func(file string) bool { return strings.HasSuffix(strings.ToLower(file), end) }
	}
	is := func(want string) func(string) bool { return func(file string) bool { return file == want } }
	switch {
	case holds(is("adapter_config.json")):
		return fmt.Errorf("%s holds a LoRA adapter, not a model: merge it into its base model and keep the experts in MXFP4", name)
	case holds(suffix(".gguf")):
		return fmt.Errorf("%s holds GGUF files, llama.cpp's format: give the path of the file to --model", name)
	case holds(is("model.bin")):
		return fmt.Errorf("%s holds the weights for Metal, which OpenAI ships beside the ones that ossrun reads: point at the folder above it", name)
	case holds(is("original")) && !holds(suffix(".safetensors")):
		return fmt.Errorf("%s has an original/ folder without a config.json of that layout: download original/ again", name)
	case holds(suffix(".safetensors")):
		return fmt.Errorf("%s has no config.json beside its safetensors: download config.json too", name)
	case holds(suffix(".pt")), holds(suffix(".pth")), holds(suffix(".ckpt")), holds(suffix(".bin")):
		return fmt.Errorf("%s holds PyTorch files without a config.json: %s", name, advice)
	case len(entries) == 0:
		return fmt.Errorf("%s is an empty folder: point at one with config.json and model.safetensors", name)
	}
	return fmt.Errorf("%s has no config.json: point at a folder with config.json and model.safetensors", name)
}

// exists tells whether a file or folder stands at path, following links.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

package convert

// Sources of random bytes: a folder in 16 bits with all files next to its weights, a GGUF file in
// two parts.

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// readable reads a little of every tensor of a source and imports it, or checks that its error is a
// sentence.
func readable(t *testing.T, path string) {
	t.Helper()
	sentence := func(text string) {
		if strings.ContainsAny(text, "\n\x1b") || len(text) > 2000 {
			t.Errorf("no sentence: %q", text)
		}
	}
	about, err := checkpoint.Describe(path)
	if sentence(about.String()); err != nil {
		sentence(err.Error())
	}
	from, err := open(disk(path))
	if err != nil {
		sentence(err.Error())
		return
	}
	defer from.Close()
	for _, tensor := range from.spec.Tensors() {
		matrix, expert := strings.CutSuffix(tensor.Name, "_blocks")
		switch {
		case expert:
			values := make([]float32, tensor.Bytes()*2/int64(tensor.Shape[0]))
			err = from.Expert(matrix, tensor.Shape[0]-1, values)
		case !strings.HasSuffix(tensor.Name, "_scales"):
			last := tensor.Shape[0] - 1
			err = from.Rows(tensor.Name, last, 1, make([]byte, tensor.Bytes()/int64(last+1)))
		}
		if err != nil {
			sentence(err.Error())
			return
		}
	}
	if _, err := Run(t.Context(), path,
		Options{Out: filepath.Join(t.TempDir(), "out")}); err != nil {
		sentence(err.Error())
	}
}

// small is a Spec of few bytes, so that a fuzzer makes progress.
func small() models.Spec {
	s := modeltest.Tiny()
	s.Layers, s.Hidden, s.Heads, s.Experts, s.ExpertsPerToken, s.Vocab = 1, 32, 1, 2, 1, 8
	s.EOS = []int32{7}
	return s
}

func FuzzFolder(f *testing.F) {
	c := modeltest.New(small(), 1)
	delete(c.Config, "quantization_config")
	wide(c)
	config := hosttest.Must(json.Marshal(c.Config))(f)
	weights := modeltest.Encode(c.Shards[0], nil)
	card := []byte("---\nbase_model:\n- a/b\n---\n")
	f.Add(config, []byte(`{"eos_token_id": [7, 1], "top_k": 1}`), []byte("{{ x }}"), card, weights)
	original := f.TempDir()
	hosttest.Check(f, modeltest.New(small(), 1).Write(original))
	source := hosttest.Must(checkpoint.Open(original))(f)
	defer source.Close()
	for _, write := range []func(*checkpoint.Checkpoint, string) error{modeltest.WriteOriginal,
		modeltest.WriteOriginal16} {
		folder := f.TempDir()
		hosttest.Check(f, write(source, folder))
		config := hosttest.Must(os.ReadFile(filepath.Join(folder, "config.json")))(f)
		weights := hosttest.Must(os.ReadFile(filepath.Join(folder, "model.safetensors")))(f)
		f.Add(config, []byte("{}"), []byte("x"), card, weights)
	}
	f.Add([]byte(`{"model_type":"gpt_oss","quantization_config":[]}`), []byte(`{"eos_token_id":`),
		[]byte(`{"chat_template":[{"name":1}]}`), []byte("---\nbase_model:"), weights[:100])
	f.Fuzz(func(t *testing.T, config, generation, template, card, weights []byte) {
		folder := t.TempDir()
		for name, data := range map[string][]byte{"config.json": config,
			"generation_config.json": generation, "chat_template.jinja": template,
			"tokenizer_config.json": template, "README.md": card, "model.safetensors": weights,
			checkpoint.ImportRecord: card} {
			hosttest.Check(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
		}
		readable(t, folder)
	})
}

// wide replaces MXFP4 experts by 16-bit ones, transposed.
func wide(c *modeltest.Checkpoint) {
	var list []modeltest.Tensor
	for _, t := range c.Shards[0] {
		matrix, expert := strings.CutSuffix(t.Name, "_blocks")
		switch {
		case expert:
			in, out := t.Shape[2]*models.BlockSize, t.Shape[1]
			list = append(list, modeltest.Tensor{Name: matrix, DType: "BF16",
				Shape: []int{t.Shape[0], in, out}, Data: make([]byte, 2*t.Shape[0]*in*out)})
		case !strings.HasSuffix(t.Name, "_scales"):
			list = append(list, t)
		}
	}
	c.Shards[0] = list
}

func FuzzSplit(f *testing.F) {
	folder := f.TempDir()
	c := modeltest.New(small(), 1)
	hosttest.Check(f, c.Write(folder))
	source := hosttest.Must(checkpoint.Open(folder))(f)
	defer source.Close()
	for _, experts := range []string{"", "Q4_1", "BF16"} {
		style := modeltest.LlamaQ8
		style.Experts = experts
		first, err := modeltest.WriteGGUF(source, f.TempDir(), "a", style, 2, map[string]any{
			"general.name": "Gpt Oss 20b", "general.base_model.0.name": "x",
			"tokenizer.chat_template": "<|im_start|>", "general.sampling.temp": 0.5,
			"tokenizer.ggml.eot_token_id": 7})
		hosttest.Check(f, err)
		var parts [2][]byte
		for i := range parts {
			if parts[i], err = os.ReadFile(strings.Replace(first, "-00001-", []string{"-00001-",
				"-00002-"}[i], 1)); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(parts[0], parts[1])
		f.Add(parts[0], bytes.Replace(parts[1], []byte("blk.0"), []byte("blk.9"), 1))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		folder := t.TempDir()
		for name, data := range map[string][]byte{"a-00001-of-00002.gguf": first,
			"a-00002-of-00002.gguf": second} {
			hosttest.Check(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
		}
		readable(t, filepath.Join(folder, "a-00001-of-00002.gguf"))
	})
}

// Package convert makes a checkpoint in the released layout of a gpt-oss whose experts are not
// MXFP4: a fine-tune that was exported in 16 bits, or a GGUF file of another type.
//
// What must stay true: whenever it is stopped, the next run goes on with the tensors' files that
// are whole; memory does not grow with the model; numbers that came from MXFP4 come back as they
// were.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
)

// source is a gpt-oss that is read part by part, by the names of the released layout.
type source interface {
	// Rows writes rows of a tensor that is no expert matrix, as bfloat16.
	Rows(name string, first, count int, to []byte) error
	// Expert writes the values of one expert's matrix, [out, in].
	Expert(matrix string, expert int, to []float32) error
	Close() error
}

// opened is a source with what else is known of it.
type opened struct {
	source
	spec               models.Spec
	config, generation []byte // generation may be nil
	paths              []string
}

// open opens a folder in Hugging Face's layout, or a GGUF file.
func open(path string) (*opened, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if stat.IsDir() {
		return openFolder(path)
	}
	if !gguf.Is(path) {
		return nil, fmt.Errorf("%s is neither a folder with config.json nor a GGUF file", path)
	}
	v, err := gguf.OpenValues(path)
	if err != nil {
		return nil, err
	}
	return &opened{v, v.Spec, v.Config, v.Generation, v.Paths}, nil
}

// folder is Hugging Face's layout with experts in 16 or 32 bits, as transformers, TRL and unsloth
// export them: gate_up_proj [experts, in, 2 x out], down_proj [experts, in, out].
type folder struct {
	spec    models.Spec
	files   []*os.File
	tensors map[string]held
}

// held is a tensor in one of the files.
type held struct {
	safetensors.Info
	file *os.File
}

func openFolder(path string) (_ *opened, err error) {
	config, err := models.ReadFile(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, err
	}
	generation, err := models.ReadFile(filepath.Join(path, "generation_config.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	config, err = asReleased(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	spec, err := models.ParseSpec(config, generation)
	if err != nil {
		return nil, err
	}
	names := []string{"model.safetensors"}
	index, err := safetensors.ReadIndex(filepath.Join(path, safetensors.IndexName))
	switch {
	case err == nil:
		names = index.Files
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f := &folder{spec: spec, tensors: map[string]held{}}
	o := &opened{f, spec, config, generation, nil}
	for _, name := range names {
		o.paths = append(o.paths, filepath.Join(path, name))
		if err := f.add(o.paths[len(o.paths)-1]); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := f.check(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

// asReleased is a config.json with MXFP4 experts and an unembedding of its own.
func asReleased(text []byte) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("config.json is no JSON object: %w", err)
	}
	if config["quantization_config"] == nil {
		config["quantization_config"] = map[string]any{"quant_method": "mxfp4",
			"modules_to_not_convert": []string{"model.layers.*.self_attn",
				"model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}
	}
	config["tie_word_embeddings"] = false
	return json.MarshalIndent(config, "", "  ")
}

func (f *folder) add(path string) error {
	header, err := safetensors.Inspect(path)
	if err != nil {
		return err
	}
	file, _, err := mapping.OpenRegular(path)
	if err != nil {
		return err
	}
	f.files = append(f.files, file)
	for _, t := range header.Tensors {
		f.tensors[t.Name] = held{t, file}
	}
	return nil
}

// kinds are the types that numbers may have.
var kinds = map[safetensors.DType]gguf.Type{safetensors.BF16: gguf.BF16, "F16": gguf.F16,
	"F32": gguf.F32}

// check compares the tensors with what the Spec calls for.
func (f *folder) check(path string) error {
	if _, ok := f.tensors["lm_head.weight"]; !ok { // tied
		f.tensors["lm_head.weight"] = f.tensors["model.embed_tokens.weight"]
	}
	for _, want := range f.spec.Tensors() {
		name, shape := want.Name, want.Shape
		if strings.HasSuffix(name, "_scales") {
			continue
		}
		matrix, expert := strings.CutSuffix(name, "_blocks")
		if _, is := f.tensors[name]; expert && is {
			return fmt.Errorf("%s has MXFP4 experts: it needs no import, run `ossrun chat --model "+
				"%s`", path, path)
		}
		if expert {
			name, shape = matrix, []int{shape[0], shape[2] * models.BlockSize, shape[1]}
		}
		got, ok := f.tensors[name]
		_, number := kinds[got.DType]
		switch {
		case !ok || got.file == nil:
			return fmt.Errorf("%s has no tensor %s, which config.json calls for", path, name)
		case !number:
			return fmt.Errorf("%s: tensor %s is %s, not BF16, F16 or F32", path, name, got.DType)
		case !slices.Equal(got.Shape, shape):
			return fmt.Errorf("%s: tensor %s has shape %v, config.json calls for %v", path, name,
				got.Shape, shape)
		}
	}
	return nil
}

// read gives the bytes of count steps of a tensor along its first dimension.
func (f *folder) read(name string, first, count int) ([]byte, gguf.Type, error) {
	t := f.tensors[name]
	stride := (t.End - t.Begin) / int64(t.Shape[0])
	data := make([]byte, int64(count)*stride)
	if _, err := t.file.ReadAt(data, t.Begin+int64(first)*stride); err != nil {
		return nil, 0, fmt.Errorf("reading %s of %s: %w", name, filepath.Base(t.file.Name()), err)
	}
	return data, kinds[t.DType], nil
}

func (f *folder) Rows(name string, first, count int, to []byte) error {
	data, kind, err := f.read(name, first, count)
	if err == nil {
		gguf.ToBF16(to, data, kind)
	}
	return err
}

func (f *folder) Expert(matrix string, expert int, to []float32) error {
	data, kind, err := f.read(matrix, expert, 1)
	if err != nil {
		return err
	}
	shape := f.tensors[matrix].Shape
	in, out, size := shape[1], shape[2], len(data)/len(to)
	const some = models.BlockSize
	rows := make([]float32, some*out)
	for i := 0; i < in; i += some { // rows of the file are columns here
		gguf.Floats(rows, data[i*out*size:][:some*out*size], kind)
		for j := range out {
			for k := range some {
				to[j*in+i+k] = rows[k*out+j]
			}
		}
	}
	return nil
}

func (f *folder) Close() (err error) {
	for _, file := range f.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

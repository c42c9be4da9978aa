// Package convert makes a checkpoint in the released layout from a gpt-oss whose experts are not
// MXFP4: a fine-tune that was exported in 16 bits, or a GGUF file of another type.
//
// What must stay true: an interrupted run is resumed with its complete files; memory does not grow
// with the model; numbers that came from MXFP4 come back unchanged.
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
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/safetensors"
)

// source is a gpt-oss that is read part by part, by the names of the released layout.
type source interface {
	// Rows writes rows of a tensor other than an expert matrix, as bfloat16.
	Rows(name string, first, count int, to []byte) error
	// Expert writes the values of one expert's matrix, [out, in].
	Expert(matrix string, expert int, to []float32) error
	Close() error
}

// openSource is a source with its place and config.
type openSource struct {
	source
	place
	spec               models.Spec
	config, generation []byte       // generation may be nil
	files              []sourceFile // all files that are read
}

// open opens a folder in Hugging Face's layout, or a GGUF file, with adapters.
func open(src place, adapters ...lora.Ref) (*openSource, error) {
	o, err := openPlain(src, len(adapters) > 0)
	if err != nil || len(adapters) == 0 {
		return o, err
	}
	path := src.String()
	t := &adapted{source: o.source, spec: o.spec}
	t.spec.Name = filepath.Base(path)
	o.source = t
	for _, ref := range adapters {
		one, err := ref.OpenAll(t.spec)
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		t.list = append(t.list, one)
		if err := o.record(ref.Files()); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

func (o *openSource) record(paths []string) error {
	for _, path := range paths {
		state, err := stateOf(path)
		if err != nil {
			return err
		}
		o.files = append(o.files, state)
	}
	return nil
}

func openPlain(src place, packed bool) (*openSource, error) {
	path := src.String()
	if stat, err := os.Stat(path); src != disk(path) || err == nil && stat.IsDir() {
		inside := src
		if folder := checkpoint.OriginalIn(path); src == disk(path) && folder != "" {
			inside = disk(folder)
		}
		o, err := openFolder(inside, packed)
		if err == nil {
			o.place = src // its tokenizer may be there
		}
		return o, err
	} else if err != nil {
		return nil, err
	}
	if !gguf.IsFile(path) {
		return nil, fmt.Errorf("%s is neither a folder with config.json nor a GGUF file", path)
	}
	v, err := gguf.OpenValues(path)
	if err != nil {
		return nil, err
	}
	o := &openSource{v, src, v.Spec, v.Config, v.Generation, nil}
	return o, o.record(v.Paths)
}

// folder is Hugging Face's layout with experts in 16 or 32 bits, as from transformers, TRL and
// unsloth: gate_up_proj [experts, in, 2 x out], down_proj [experts, in, out]. Or OpenAI's, with
// [experts, out, in]; or either with MXFP4 experts that adapters change.
type folder struct {
	spec     models.Spec
	files    []file
	tensors  map[string]located // by Hugging Face's names
	original bool
}

type located struct {
	safetensors.Info
	file file
}

func openFolder(src place, packed bool) (_ *openSource, err error) {
	config, err := src.read("config.json", models.MaxConfig)
	switch _, isLocal := src.(disk); {
	case errors.Is(err, fs.ErrNotExist) && isLocal:
		return nil, checkpoint.ForeignFolder(src.String())
	case errors.Is(err, fs.ErrNotExist): // a hub's repository with weights has one of the two
		return nil, fmt.Errorf("%s holds a LoRA adapter, not a model: choose its base model, and "+
			"add --lora %[1]s", src)
	case err != nil:
		return nil, err
	}
	generation, err := src.read("generation_config.json", models.MaxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if config, generation, err = models.HuggingFaceConfig(config, generation); err == nil {
		config, err = releasedConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	spec, err := models.ParseSpec(config, generation)
	if _, isLocal := src.(disk); err != nil && !isLocal {
		err = fmt.Errorf("%s: %w", src, err)
	}
	if err != nil {
		return nil, err
	}
	names := []string{"model.safetensors"}
	text, err := src.read(safetensors.IndexName, safetensors.MaxHeader)
	switch {
	case err == nil:
		index, err := safetensors.ParseIndex(safetensors.IndexName, text)
		if err != nil {
			return nil, err
		}
		names = index.Files
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f := &folder{spec: spec, tensors: map[string]located{}}
	o := &openSource{f, src, spec, config, generation, nil}
	for _, name := range names {
		file, err := src.open(name)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.files, o.files = append(f.files, file), append(o.files, file.state)
		if err := f.add(name, file); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if _, f.original = f.tensors["block.0.attn.sinks"]; f.original {
		f.rename()
	}
	if err := f.check(src.String(), packed); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

// releasedConfig is a config.json with MXFP4 experts and a separate unembedding.
func releasedConfig(text []byte) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("config.json is no JSON object: %w", err)
	}
	method, _ := config["quantization_config"].(map[string]any)
	if config["quantization_config"] == nil || method["quant_method"] == "mxfp4" {
		config["quantization_config"] = map[string]any{"quant_method": "mxfp4",
			"modules_to_not_convert": []string{"model.layers.*.self_attn",
				"model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}
	}
	config["tie_word_embeddings"] = false
	return json.MarshalIndent(config, "", "  ")
}

func (f *folder) add(name string, file file) error {
	header, err := safetensors.ReadHeader(name, file, file.state.Size)
	if err != nil {
		return err
	}
	for _, t := range header.Tensors {
		f.tensors[t.Name] = located{t, file}
	}
	return nil
}

// rename gives tensors of OpenAI's layout the names of Hugging Face's. Tensors that do not fit are
// dropped, and check reports them as missing.
func (f *folder) rename() {
	originals := f.tensors
	f.tensors = map[string]located{}
	for _, want := range f.spec.Tensors() {
		name, first, total := checkpoint.OriginalName(f.spec, want.Name)
		t, ok := originals[name]
		if !ok {
			want.Name, name = strings.TrimSuffix(want.Name, "_blocks"), strings.TrimSuffix(name,
				".blocks")
			t, ok = originals[name]
		}
		if total > 0 && ok {
			if ok = len(t.Shape) > 0 && t.Shape[0] == total; !ok {
				continue
			}
			stride := (t.End - t.Begin) / int64(total)
			t.Begin += int64(first) * stride
			t.End = t.Begin + int64(want.Shape[0])*stride
			t.Shape = append([]int{want.Shape[0]}, t.Shape[1:]...)
		}
		if ok {
			f.tensors[want.Name] = t
		}
	}
}

// check compares the tensors with the Spec. If packed, experts may be in MXFP4.
func (f *folder) check(path string, packed bool) error {
	if _, ok := f.tensors["lm_head.weight"]; !ok { // tied
		f.tensors["lm_head.weight"] = f.tensors["model.embed_tokens.weight"]
	}
	for _, want := range f.spec.Tensors() {
		name, shape := want.Name, want.Shape
		matrix, expert := strings.CutSuffix(name, "_blocks")
		_, is := f.tensors[name]
		switch {
		case is && expert && !packed:
			run := "chat --model"
			if strings.HasPrefix(path, "hf:") {
				run = "pull"
			}
			return fmt.Errorf("%s has MXFP4 experts: it needs no import, run `ossrun %s %[1]s`", path,
				run)
		case is && want.DType == models.U8:
		case strings.HasSuffix(name, "_scales") && !f.packed(strings.TrimSuffix(name, "_scales")):
			continue
		case expert && f.original:
			name, shape = matrix, []int{shape[0], shape[1], shape[2] * models.BlockSize}
		case expert:
			name, shape = matrix, []int{shape[0], shape[2] * models.BlockSize, shape[1]}
		}
		got, ok := f.tensors[name]
		_, number := gguf.Kinds[got.DType]
		if is && want.DType == models.U8 {
			number = got.DType == models.U8
		}
		switch {
		case !ok || got.file.ReaderAt == nil:
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

// read returns the bytes of count steps of a tensor along its first dimension.
func (f *folder) read(name string, first, count int) ([]byte, gguf.Type, error) {
	t := f.tensors[name]
	stride := (t.End - t.Begin) / int64(t.Shape[0])
	data := make([]byte, int64(count)*stride)
	if _, err := t.file.ReadAt(data, t.Begin+int64(first)*stride); err != nil {
		return nil, 0, fmt.Errorf("reading %s of %s: %w", name,
			filepath.Base(t.file.state.Path), err)
	}
	return data, gguf.Kinds[t.DType], nil
}

func (f *folder) Rows(name string, first, count int, to []byte) error {
	data, kind, err := f.read(name, first, count)
	if err == nil {
		gguf.ToBF16(to, data, kind)
	}
	return err
}

func (f *folder) packed(matrix string) bool {
	_, is := f.tensors[matrix+"_blocks"]
	return is
}

func (f *folder) Expert(matrix string, expert int, to []float32) error {
	if f.packed(matrix) {
		blocks, _, err := f.read(matrix+"_blocks", expert, 1)
		if err != nil {
			return err
		}
		scales, _, err := f.read(matrix+"_scales", expert, 1)
		if err != nil {
			return err
		}
		decode(blocks, scales, to)
		return nil
	}
	data, kind, err := f.read(matrix, expert, 1)
	if err != nil {
		return err
	}
	if f.original {
		gguf.Floats(to, data, kind)
		return nil
	}
	shape := f.tensors[matrix].Shape
	in, out, size := shape[1], shape[2], len(data)/len(to)
	const step = models.BlockSize
	rows := make([]float32, step*out)
	for i := 0; i < in; i += step { // rows of the file are columns here
		gguf.Floats(rows, data[i*out*size:][:step*out*size], kind)
		for j := range out {
			for k := range step {
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

// adapted is a source with adapters added.
type adapted struct {
	source
	spec models.Spec
	list []*lora.Adapter
}

func (t *adapted) Rows(name string, first, count int, to []byte) error {
	if err := t.source.Rows(name, first, count, to); err != nil {
		return err
	}
	for _, one := range t.list {
		if one.Changes(name) {
			shape := []int{count, len(to) / 2 / count}
			if shape[1] == 1 { // a vector
				shape = shape[:1]
			}
			base := models.Tensor{Name: name, DType: models.BF16, Shape: shape,
				Data: slices.Clone(to)}
			return lora.AddFrom(base, first, t.list).Rows(first, count, to)
		}
	}
	return nil
}

func (t *adapted) Expert(matrix string, expert int, to []float32) error {
	err := t.source.Expert(matrix, expert, to)
	lora.AddExpert(matrix, expert, t.spec.Experts, to, t.list)
	return err
}

func (t *adapted) Close() error {
	err := t.source.Close()
	for _, one := range t.list {
		err = errors.Join(err, one.Close())
	}
	return err
}

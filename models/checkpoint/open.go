// Package checkpoint finds models on this machine, opens them and checks them.
//
// Open and OpenDemo are the only ways to a Checkpoint of real weights, and both end in the same
// check: its Spec, and the name, type and shape of every tensor that the Spec calls for, have been
// checked against the files. Whatever else a file says is refused in one sentence. Weights are
// views of mapped memory; only those of a GGUF file are copied, into the order that the engine
// reads.
package checkpoint

// Opening a checkpoint: config.json, the list of shards, the shards' headers, then every tensor
// against the Spec. No weight is read; opening the 20b maps three files.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// Checkpoint is an open and checked checkpoint. It is safe for concurrent use until Close.
type Checkpoint struct {
	Spec    models.Spec
	Path    string   // the folder or the GGUF file; "" for the embedded demo
	Ignored []string // tensors of the files that no gpt-oss has and that change nothing, sorted

	tensors map[string]models.Tensor
	bytes   int64
	states  FileStates
	close   []func() error
	gguf    *gguf.Weights // of a GGUF model; nil where tensors are views of the files
}

// Open opens the checkpoint in the folder at path, which must be in the Hugging Face layout:
// config.json and model.safetensors, or model.safetensors.index.json with its shards; or the GGUF
// file at path. An error is one sentence that names the file and, where one is at fault, the
// tensor.
func Open(path string) (*Checkpoint, error) {
	c, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, remedy(err, path))
	}
	return c, nil
}

func open(path string) (*Checkpoint, error) {
	stat, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("opening a checkpoint: %w", err)
	}
	if !stat.IsDir() {
		found, err := findFile(path)
		if err != nil {
			return nil, err
		}
		return openGGUF(found.GGUF)
	}
	name := nameOf(path)
	if inside := originalIn(path); inside != "" {
		path = inside
	}
	if !exists(filepath.Join(path, "config.json")) {
		return nil, foreignFolder(path)
	}
	spec, err := models.ReadSpec(path)
	if err != nil {
		return nil, err
	}
	spec.Name = name
	index, err := shards(path)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Spec: spec, Path: path, states: statesOf(under(path, index.Files))}
	var files []*safetensors.File
	for _, name := range index.Files {
		f, err := safetensors.Open(filepath.Join(path, name))
		if err != nil {
			c.Close()
			return nil, err
		}
		files = append(files, f)
		c.close = append(c.close, f.Close)
		use, err := store.Use(filepath.Join(path, name)) // so that ossrun rm leaves it alone
		if err != nil {
			c.Close()
			return nil, err
		}
		c.close = append(c.close, use.Close)
	}
	if err := c.check(files, index.Of); err != nil {
		c.Close()
		return nil, err
	}
	c.keepStates(under(path, index.Files))
	return c, nil
}

// openGGUF reserves the weights' memory. Weights are read when they are asked for, or all at once
// by Checkpoint.Load.
func openGGUF(m *gguf.Model) (*Checkpoint, error) {
	weights, err := m.OpenWeights()
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Spec: m.Spec(), Path: m.Source, bytes: m.Bytes, states: statesOf(m.Files()),
		gguf: weights, tensors: weights.Tensors, close: []func() error{weights.Close}}
	for _, path := range m.Files() {
		use, err := store.Use(path)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.close = append(c.close, use.Close)
	}
	c.keepStates(m.Files())
	return c, nil
}

// singleFile holds all weights of a checkpoint that has no index.
const singleFile = "model.safetensors"

// shards finds a folder's safetensors files. Without an index its Of is nil.
func shards(folder string) (*safetensors.Index, error) {
	index, err := safetensors.ReadIndex(filepath.Join(folder, safetensors.IndexName))
	if err == nil {
		for _, name := range index.Files {
			if !exists(filepath.Join(folder, name)) {
				return nil, &missingError{file: name, listed: safetensors.IndexName}
			}
		}
		return index, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if exists(filepath.Join(folder, singleFile)) {
		return &safetensors.Index{Files: []string{singleFile}}, nil
	}
	if len(glob(folder, "model-*-of-*.safetensors")) > 0 {
		return nil, &missingError{file: safetensors.IndexName}
	}
	if len(glob(folder, "pytorch_model*.bin")) > 0 {
		return nil, fmt.Errorf(
			"%s holds PyTorch pickles, which can run code when they are read: %s",
			filepath.Base(folder), models.Advice)
	}
	if parts := glob(folder, "*.gguf"); len(parts) > 0 {
		return nil, foreignFile(parts[0])
	}
	return nil, &missingError{file: singleFile}
}

// glob lists what a pattern matches in a folder; the folder's own name is not part of the pattern.
func glob(folder, pattern string) []string {
	var list []string
	matches, _ := fs.Glob(os.DirFS(folder), pattern) // the patterns are well formed
	for _, name := range matches {
		list = append(list, filepath.Join(folder, filepath.FromSlash(name)))
	}
	return list
}

// missingError says that a file of a checkpoint is not there.
type missingError struct {
	file   string
	listed string // the file that lists it, "" when every checkpoint has it
}

func (e *missingError) Error() string {
	if e.listed != "" {
		return fmt.Sprintf("%s is missing, which %s lists", e.file, e.listed)
	}
	return fmt.Sprintf("%s is missing", e.file)
}

// Tensor gives a tensor of Spec.Tensors by its name; for any other name it is the zero Tensor. It
// is fetched first if need be; if that fails it has no Data, and Fetch says why.
func (c *Checkpoint) Tensor(name string) models.Tensor {
	t := c.tensors[name]
	if c.Fetch(name) != nil {
		t.Data = nil
	}
	return t
}

// Bytes is the size of the weights: all tensors of the Spec, without headers.
func (c *Checkpoint) Bytes() int64 { return c.bytes }

// Close unmaps the weights. No Tensor may be used after it.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.close {
		errs = append(errs, f())
	}
	c.close, c.tensors, c.gguf = nil, nil, nil
	return errors.Join(errs...)
}

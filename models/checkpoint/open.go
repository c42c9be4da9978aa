// Package checkpoint finds models on this machine, opens them and checks them.
//
// Open and OpenDemo are the only ways to a Checkpoint of real weights. Both check its Spec, and the
// name, type and shape of every tensor of the Spec, against the files. Errors are one sentence.
// Weights are views of mapped memory, with two exceptions: a GGUF file's are copied into the
// engine's order until a file in that order exists, and those that a LoRA adapter changes.
package checkpoint

// Opening a checkpoint: config.json, the list of shards, the shards' headers, then every tensor
// against the Spec. No weight is read; opening the 20b maps three files.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// Checkpoint is an open and checked checkpoint. It is safe for concurrent use until Close.
type Checkpoint struct {
	Spec    models.Spec
	Path    string   // the folder or the GGUF file; "" for the embedded demo
	Ignored []string // tensors of the files that no gpt-oss has and that change nothing, sorted

	Refs       []lora.Ref // adapters that are merged into the weights, in the given order
	AdapterIDs string     // the IDs of these adapters, one per line

	Adapters []Adapter // other models of the same files, for one engine; see AddAdapter

	tensors map[string]models.Tensor
	format  format
	bytes   int64
	states  FileStates
	close   []func() error
}

// format loads tensors. Mapped files need nothing (views), a GGUF file is reordered
// (*gguf.Weights), adapters are merged (*adapted). The methods are those of Checkpoint.
type format interface {
	Load(ctx context.Context, free int64, without func(tensor string) bool,
		progress func(done, total int64)) error
	Fetch(name string) error
	Release(name string) bool
}

// views is the format of mapped safetensors files and of the unpacked demo.
type views struct{}

func (views) Load(context.Context, int64, func(string) bool, func(done, total int64)) error {
	return nil
}
func (views) Fetch(string) error  { return nil }
func (views) Release(string) bool { return false }

// Open opens the checkpoint at path: a folder in the Hugging Face layout (config.json and
// model.safetensors, or model.safetensors.index.json with its shards), or a GGUF file. An error is
// one sentence that names the file and the tensor, if any.
func Open(path string) (*Checkpoint, error) {
	stat, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("opening a checkpoint: %w", err)
	}
	if !stat.IsDir() {
		file, err := findFile(path)
		if err != nil {
			return nil, err
		}
		return openGGUF(file.GGUF)
	}
	c, err := openFolder(path)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, remedy(err, path))
	}
	return c, nil
}

func openFolder(path string) (*Checkpoint, error) {
	name := nameOf(path)
	if inside := OriginalIn(path); inside != "" {
		path = inside
	}
	if !exists(filepath.Join(path, "config.json")) {
		return nil, ForeignFolder(path)
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
	c := &Checkpoint{Spec: spec, Path: path, format: views{},
		states: statesOf(joinAll(path, index.Files))}
	var files []*safetensors.File
	for _, name := range index.Files {
		f, err := safetensors.Open(filepath.Join(path, name))
		if err != nil {
			c.Close()
			return nil, err
		}
		files = append(files, f)
		c.close = append(c.close, f.Close)
	}
	if err = c.use(joinAll(path, index.Files)); err == nil {
		err = c.check(files, index.FileOf)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// use marks open files as in use, so that ossrun rm keeps them. States that were read earlier are
// valid for the open files if they have not changed.
func (c *Checkpoint) use(paths []string) error {
	if err := c.mark(paths); err != nil {
		return err
	}
	if !slices.Equal(c.states.Files, statesOf(paths).Files) {
		c.states = FileStates{}
	}
	return nil
}

func (c *Checkpoint) mark(paths []string) error {
	for _, path := range paths {
		use, err := store.Use(path)
		if err != nil {
			return err
		}
		c.close = append(c.close, use.Close)
	}
	return nil
}

// openGGUF maps the weights if an earlier start has stored them in the released order. Otherwise it
// reserves memory: they are read on request, or all at once by Checkpoint.Load.
func openGGUF(m *gguf.Model) (*Checkpoint, error) {
	states := statesOf(m.Files())
	c := openOrdered(m, states)
	if c == nil {
		weights, err := m.OpenWeights()
		if err != nil {
			return nil, err
		}
		c = &Checkpoint{Spec: m.Spec(), Path: m.Source, bytes: m.Bytes, states: states,
			format: weights, tensors: weights.Tensors, close: []func() error{weights.Close}}
	}
	if err := c.use(m.Files()); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// singleFile holds all weights of a checkpoint that has no index.
const singleFile = "model.safetensors"

// shards finds a folder's safetensors files. Without an index, FileOf is nil.
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

// glob lists the matches of a pattern in a folder, whose own name is not part of the pattern.
func glob(folder, pattern string) []string {
	var list []string
	matches, _ := fs.Glob(os.DirFS(folder), pattern) // the patterns are well formed
	for _, name := range matches {
		list = append(list, filepath.Join(folder, filepath.FromSlash(name)))
	}
	return list
}

type missingError struct {
	file   string
	listed string // the file that lists it, "" if every checkpoint has it
}

func (e *missingError) Error() string {
	if e.listed != "" {
		return fmt.Sprintf("%s is missing, which %s lists", e.file, e.listed)
	}
	return fmt.Sprintf("%s is missing", e.file)
}

// Tensor returns a tensor of Spec.Tensors by its name, or the zero Tensor for any other name. It
// is fetched first if necessary, with the error of Fetch.
func (c *Checkpoint) Tensor(name string) (models.Tensor, error) {
	if err := c.Fetch(name); err != nil {
		return models.Tensor{}, err
	}
	return c.tensors[name], nil
}

// Close unmaps the weights. No Tensor may be used after it.
func (c *Checkpoint) Close() (err error) {
	for _, adapter := range c.Adapters {
		err = errors.Join(err, adapter.weights.Close())
	}
	for _, f := range c.close {
		err = errors.Join(err, f())
	}
	c.close, c.tensors, c.format = nil, nil, views{}
	return err
}

// The demo model: embedded, unpacked into memory, then checked as a file is. It needs no disk and
// no network.

// OpenDemo opens the embedded demo model. Each call unpacks its own copy; Close frees it.
func OpenDemo() (*Checkpoint, error) {
	c, err := openPacked(assets.DemoConfig, assets.DemoGenerationConfig, assets.DemoPack)
	if err != nil {
		return nil, fmt.Errorf("the embedded demo model: %w", err)
	}
	c.Spec.Name = models.Demo
	return c, nil
}

// openPacked opens a checkpoint whose single weights file is a pack.
func openPacked(config, generation, packed []byte) (*Checkpoint, error) {
	spec, err := models.ParseSpec(config, generation)
	if err != nil {
		return nil, err
	}
	memory, err := pack.Unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Spec: spec, format: views{}, close: []func() error{memory.Free}}
	file, err := safetensors.FromMemory("model.safetensors", memory.Bytes)
	if err == nil {
		err = c.check([]*safetensors.File{file}, nil)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Loading weights into memory. Pages of mapped files are loaded by the system. A GGUF file's
// weights are reordered first: all at once for an engine that uses them in place, or tensor by
// tensor for a card that copies them.

// Load brings all weights into memory that the system does not load by itself. progress gets the
// bytes done and the total, several times a second, from one goroutine; it may be nil. free is the
// memory available: if the files fit as well, they stay in the page cache for the next start.
// Tensors for which without is true are loaded on request; without may be nil. If ctx ends first,
// the error is its cause.
func (c *Checkpoint) Load(ctx context.Context, free int64, without func(tensor string) bool,
	progress func(done, total int64)) error {
	return c.format.Load(ctx, free, without, progress)
}

// Fetch brings one tensor into memory as Load and Merge do. For an unknown name it does nothing.
func (c *Checkpoint) Fetch(name string) error { return c.format.Fetch(name) }

// Release returns the memory of a tensor that the checkpoint owns; it is read again on the next
// request. Its Data must not be in use. False if there is nothing to return: the system manages the
// pages of mapped files.
func (c *Checkpoint) Release(name string) bool { return c.format.Release(name) }

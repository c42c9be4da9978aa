// Package checkpoint finds models on this machine, opens them and checks them.
//
// Open and OpenDemo are the only ways to a Checkpoint of real weights, and both end in the same
// check: its Spec, and the name, type and shape of every tensor that the Spec calls for, have been
// checked against the files. Whatever else a file says is refused in one sentence. Weights are
// views of mapped memory; only those of a GGUF file are copied, into the order that the engine
// reads, until a file in that order is kept, and those that a LoRA adapter changes.
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

	Lora       []lora.Ref // adapters that change weights, in the order that they were given in
	AdapterIDs string     // name all that they say, a line each

	// Tunes are open checkpoints of the same files with more adapters. Close closes them too.
	Tunes []*Checkpoint

	tensors map[string]models.Tensor
	format  format
	bytes   int64
	states  FileStates
	close   []func() error
}

// format is how tensors come into memory: views of files by themselves, those of a GGUF file in its
// own order (*gguf.Weights) by being put in order, those that adapters change (*adapted) by being
// merged. Checkpoint's methods of the same names say what each does.
type format interface {
	Load(ctx context.Context, free int64, without func(tensor string) bool,
		progress func(done, total int64)) error
	Fetch(name string) error
	Release(name string) bool
}

// views are the released and the original layout, packed or in files.
type views struct{}

func (views) Load(context.Context, int64, func(string) bool, func(done, total int64)) error {
	return nil
}
func (views) Fetch(string) error  { return nil }
func (views) Release(string) bool { return false }

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
		states: statesOf(under(path, index.Files))}
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
	if err = c.use(under(path, index.Files)); err == nil {
		err = c.check(files, index.Of)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// use marks open files as in use, so that ossrun rm leaves them alone. States that were read before
// hold for the open files if they have not changed.
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

// openGGUF maps the weights where an earlier start has left them in the released order, else
// reserves their memory: they are read when they are asked for, or all at once by Checkpoint.Load.
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

// Tensor returns a tensor of Spec.Tensors by its name, or the zero Tensor for any other name. It
// is fetched first if necessary, with the error of Fetch.
func (c *Checkpoint) Tensor(name string) (models.Tensor, error) {
	if err := c.Fetch(name); err != nil {
		return models.Tensor{}, err
	}
	return c.tensors[name], nil
}

// Bytes is the size of the weights: all tensors of the Spec, without headers.
func (c *Checkpoint) Bytes() int64 { return c.bytes }

// Close unmaps the weights. No Tensor may be used after it.
func (c *Checkpoint) Close() (err error) {
	for _, tune := range c.Tunes {
		err = errors.Join(err, tune.Close())
	}
	for _, f := range c.close {
		err = errors.Join(err, f())
	}
	c.Tunes, c.close, c.tensors, c.format = nil, nil, nil, views{}
	return err
}

// The demo model: embedded, unpacked into memory, then held to the same checks as a file. It needs
// no disk and no network.

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

// When weights come into memory. Those of mapped files come by themselves, page by page; those of a
// GGUF file have to be put in order first, all at once for an engine that works on them where they
// lie, or one tensor after the other for a card that takes a copy of each.

// Load brings into memory all weights that are not there and do not come by themselves. progress is
// called with the bytes done and the total, several times a second, by one goroutine; it may be
// nil. free is the memory available for this; if there is room for the files beside the weights,
// they stay in the page cache for the next time. Tensors that are left out come when they are asked
// for; without may be nil. The error is ctx's cause where ctx ends first.
func (c *Checkpoint) Load(ctx context.Context, free int64, without func(tensor string) bool,
	progress func(done, total int64)) error {
	return c.format.Load(ctx, free, without, progress)
}

// Fetch brings one tensor into memory as Load and Merge do, and its error says why that failed. It
// does nothing for a name that is no tensor's.
func (c *Checkpoint) Fetch(name string) error { return c.format.Fetch(name) }

// Release gives the memory of a tensor back, if it is the checkpoint's own; it is read again when
// it is asked for again. Nobody may be using its Data. False when there is nothing to give back:
// weights of a mapped file are the system's to keep or to drop.
func (c *Checkpoint) Release(name string) bool { return c.format.Release(name) }

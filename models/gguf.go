package models

// GGUF models, opened where they lie. Their blocks lie differently from what the engine reads (a scale between every 16 bytes, gate and up apart,
// another order of nibbles), so the weights are put in order on their way into memory and nothing is written to the disk.

import (
	"fmt"
	"path/filepath"

	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/store"
)

// GGUF is a gpt-oss in GGUF files whose headers were read and checked.
type GGUF struct {
	Source string // the GGUF file, or the first of several
	Name   string // what the model is called
	Bytes  int64  // of the weights in memory
	Size   int64  // of the files

	set      *gguf.Set
	spec     Spec
	rewrites []rewrite
}

// ReadGGUF reads a GGUF model's headers and checks that every tensor of a gpt-oss is there. name is what the model will be called.
func ReadGGUF(path, name string) (*GGUF, error) {
	set, err := gguf.OpenSet(path)
	if err != nil {
		return nil, err
	}
	g := &GGUF{Source: set.Files[0], Name: name, Size: set.Size, set: set}
	config, generation, err := ggufConfig(set)
	if err != nil {
		return nil, err
	}
	if g.spec, err = parseSpec(config, generation); err != nil {
		return nil, fmt.Errorf("%s, read as a Hugging Face checkpoint: %w", filepath.Base(g.Source), err)
	}
	g.spec.Name = name
	if g.rewrites, err = ggufRewrites(g.spec, set); err != nil {
		return nil, err
	}
	g.Bytes = g.spec.WeightBytes()
	return g, nil
}

// found is the model as Resolve gives it.
func (g *GGUF) found() Found {
	return Found{Name: g.Name, Path: g.Source, Bytes: g.Bytes, Complete: true, GGUF: g}
}

// Open maps the files and reserves the weights' memory. Weights are read when they are asked for, or all at once by Checkpoint.Load.
func (g *GGUF) Open() (*Checkpoint, error) {
	c := &Checkpoint{Spec: g.spec, Path: g.Source, bytes: g.Bytes, states: statesOf(g.set.Files)}
	r, err := newRepacker(g)
	if err != nil {
		return nil, err
	}
	c.repack, c.tensors = r, r.tensors
	c.close = append(c.close, r.close)
	for _, path := range g.set.Files {
		use, err := store.Use(path)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.close = append(c.close, use.Close)
	}
	c.keepStates(g.set.Files)
	return c, nil
}

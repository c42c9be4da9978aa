package gguf

// GGUF models, opened in place. Their blocks differ from the engine's (a scale between every 16
// bytes, gate and up separate, another order of nibbles), so the weights are reordered while they
// are read.

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
)

// Model is a gpt-oss in GGUF files with checked headers.
type Model struct {
	Source string // the GGUF file, or the first of several
	Name   string // of the model, for people
	Bytes  int64  // of the weights in memory
	Size   int64  // of the files

	set      *Set
	spec     models.Spec
	rewrites []rewrite
}

// ReadModel reads a GGUF model's headers and checks that it has every tensor of a gpt-oss.
func ReadModel(path, name string) (*Model, error) {
	set, err := OpenSet(path)
	if err != nil {
		return nil, err
	}
	g := &Model{Source: set.Files[0], Name: name, Size: set.Size, set: set}
	config, generation, err := describe(set)
	if err != nil {
		return nil, err
	}
	if g.spec, err = models.ParseSpec(config, generation); err != nil {
		return nil, fmt.Errorf("%s, read as a Hugging Face checkpoint: %w", filepath.Base(g.Source),
			err)
	}
	g.spec.Name = name
	if g.rewrites, err = planRewrites(g.spec, set, false); err != nil {
		return nil, err
	}
	g.Bytes = g.spec.WeightBytes()
	return g, nil
}

func (m *Model) Spec() models.Spec { return m.spec }

func (m *Model) Files() []string { return m.set.Files }

// SkippedRanges returns, for each file and in its order, the ranges of tensors that only skipped
// tensors are made from.
func (m *Model) SkippedRanges(out func(tensor string) bool) [][]mapping.Range {
	leave := map[string]bool{}
	for _, w := range m.rewrites {
		for _, from := range w.from {
			if skip, met := leave[from.tensor.Name]; !met || skip {
				leave[from.tensor.Name] = out(w.to.Name)
			}
		}
	}
	list := make([][]mapping.Range, len(m.set.Files))
	for name, t := range m.set.Tensors {
		if leave[name] {
			list[t.File] = append(list[t.File], mapping.Range{Begin: t.Begin, End: t.End})
		}
	}
	for _, ranges := range list {
		slices.SortFunc(ranges,
			func(a, b mapping.Range) int { return cmp.Compare(a.Begin, b.Begin) })
	}
	return list
}

// ModelName is the name of a model from a file or from ollama: the last part, without the program,
// the format and the file count.
func ModelName(name string) string {
	if _, rest, ok := strings.Cut(name, ":"); ok {
		name = rest
	}
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSuffix(name, ".gguf")
	if i := strings.LastIndex(name, "-00001-of-"); i > 0 {
		name = name[:i]
	}
	return strings.Map(func(r rune) rune {
		if r == ':' || r <= ' ' || r == 0x7f {
			return '-'
		}
		return r
	}, name)
}

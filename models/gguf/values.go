package gguf

// The values of a file with experts of any type, read piece by piece by models/convert: nothing is
// mapped or stays in memory.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
)

// Values are the open files of a model.
type Values struct {
	Spec               models.Spec
	Config, Generation []byte // in the released layout
	Paths              []string
	set                *Set
	files              []*os.File
	rewrites           map[string]rewrite // by the result's name, an expert matrix without _blocks
}

// OpenValues opens a gpt-oss in GGUF files, with experts of any supported type.
func OpenValues(path string) (_ *Values, err error) {
	set, err := OpenSet(path)
	if err != nil {
		return nil, err
	}
	v := &Values{set: set, Paths: set.Files, rewrites: map[string]rewrite{}}
	if v.Config, v.Generation, err = describe(set); err != nil {
		return nil, err
	}
	if v.Spec, err = models.ParseSpec(v.Config, v.Generation); err != nil {
		return nil, err
	}
	list, err := planRewrites(v.Spec, set, true)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		v.rewrites[r.name()] = r
	}
	for _, path := range set.Files {
		f, _, err := mapping.OpenRegular(path)
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		v.files = append(v.files, f)
	}
	return v, nil
}

func (v *Values) Close() (err error) {
	for _, f := range v.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// name is the result's name: a tensor, or an expert matrix without _blocks.
func (r rewrite) name() string {
	if r.scales != "" {
		return r.to.Name[:len(r.to.Name)-len("_blocks")]
	}
	return r.to.Name
}

// read returns the bytes of count steps of a source along its first dimension.
func (v *Values) read(from rows, first, count int64) ([]byte, error) {
	t := from.tensor
	stride, err := from.stride(v.set)
	if err != nil {
		return nil, err
	}
	data := make([]byte, count*stride)
	if _, err := v.files[t.File].ReadAt(data, t.Begin+(from.first+first)*stride); err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", t.Name, filepath.Base(v.Paths[t.File]), err)
	}
	return data, nil
}

// Rows writes rows of a tensor other than an expert matrix, as bfloat16.
func (v *Values) Rows(name string, first, count int, to []byte) error {
	r := v.rewrites[name]
	var spare []byte
	for i, from := range r.from {
		data, err := v.read(from, int64(first), int64(count))
		if err != nil {
			return err
		}
		convertRows(to, data, r.unit(2), i, len(r.from), from.tensor.Type, &spare)
	}
	return nil
}

// Expert writes one expert's matrix, [out, in].
func (v *Values) Expert(matrix string, expert int, to []float32) error {
	r := v.rewrites[matrix]
	in := r.to.Shape[2] * models.BlockSize
	for i, from := range r.from {
		data, err := v.read(from, int64(expert), 1)
		if err != nil {
			return err
		}
		one := to
		if len(r.from) > 1 {
			one = make([]float32, len(to)/len(r.from))
		}
		Floats(one, data, from.tensor.Type)
		for row := 0; len(r.from) > 1 && row*in < len(one); row++ { // rows alternate
			copy(to[(row*len(r.from)+i)*in:], one[row*in:][:in])
		}
	}
	return nil
}

package safetensors

// A File is a header and the bytes under it: a mapped file, or borrowed memory. Tensors are views
// of those bytes and valid until Close.
//
// Alignment: a mapping begins on a page, so a tensor's address is its position in the file modulo
// the page size. The format promises no alignment of positions, and headers from before its padding
// rule have any length: only 1 byte is guaranteed. (Later files have their first tensor at a
// multiple of 8; kernels must read unaligned anyway.)
//
// If a file is truncated while it is mapped, reading the missing pages faults; only a copy would
// prevent that.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/models/mapping"
)

// Tensor is a view of one tensor.
type Tensor struct {
	Name  string
	DType DType
	Shape []int  // row-major
	Data  []byte // little-endian elements; read-only, never a copy, valid until the file is closed
	File  string // base name of its file
}

// File is an open safetensors file.
type File struct {
	Name   string // base name
	Header *Header
	data   []byte
	unmap  func() error
}

// Open maps the file at path and checks its header. It reads no tensor byte.
func Open(path string) (*File, error) {
	name := filepath.Base(path)
	f, header, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	if header.Size > int64(^uint(0)>>1) {
		return nil, fmt.Errorf("%s: %d bytes are more than this machine can address", name,
			header.Size)
	}
	data, unmap, err := mapping.File(f, header.Size)
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", name, header.Size, err)
	}
	return &File{Name: name, Header: header, data: data, unmap: unmap}, nil
}

// Inspect checks the header and the size of the file at path without mapping it.
func Inspect(path string) (*Header, error) {
	f, header, err := open(path)
	if err != nil {
		return nil, err
	}
	return header, f.Close()
}

// OpenFile is mapping.OpenRegular with errors that name the file without its folder.
func OpenFile(path string) (f *os.File, size int64, err error) {
	name := filepath.Base(path)
	if f, size, err = mapping.OpenRegular(path); errors.Is(err, mapping.ErrNotRegular) {
		err = &Error{File: name, What: mapping.ErrNotRegular.Error()}
	} else if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return f, size, err
}

func open(path string) (*os.File, *Header, error) {
	f, size, err := OpenFile(path)
	if err != nil {
		return nil, nil, err
	}
	header, err := ReadHeader(filepath.Base(path), f, size)
	if err != nil {
		f.Close()
	}
	return f, header, err
}

// FromMemory makes a File from bytes in memory. Close does not free them.
func FromMemory(name string, data []byte) (*File, error) {
	header, err := ReadHeader(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return &File{Name: name, Header: header, data: data}, nil
}

func (f *File) Tensor(i int) Tensor {
	t := f.Header.Tensors[i]
	return Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: f.data[t.Begin:t.End:t.End],
		File: f.Name}
}

// Close unmaps the file; no Tensor's Data may be used after it.
func (f *File) Close() error {
	unmap := f.unmap
	f.data, f.unmap = nil, nil
	if unmap == nil {
		return nil
	}
	if err := unmap(); err != nil {
		return fmt.Errorf("%s: unmapping: %w", f.Name, err)
	}
	return nil
}

// The index of a checkpoint in several files: model.safetensors.index.json maps each tensor's name
// to its file. File names from the index must be plain names in printable ASCII: no path leaves the
// folder.

// IndexName is the index's file name.
const IndexName = "model.safetensors.index.json"

// maxIndex is the longest index that is read, in bytes; the 120b's has about 55 kB.
const maxIndex = MaxHeader

type Index struct {
	Files  []string          // file names, sorted
	FileOf map[string]string // tensor's name -> file name
}

func ReadIndex(path string) (*Index, error) {
	name := filepath.Base(path)
	text, err := mapping.ReadFile(path, maxIndex)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ParseIndex(name, text)
}

// ParseIndex checks an index's text.
func ParseIndex(name string, text []byte) (*Index, error) {
	if what := describeForeign(text); what != "" {
		return nil, &Error{File: name, What: what}
	}
	if !utf8.Valid(text) {
		return nil, &Error{File: name, What: "is not UTF-8"}
	}
	var object struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, &Error{File: name, Cut: !json.Valid(text), What: fmt.Sprintf("is broken: %v",
			err)}
	}
	if len(object.Map) == 0 {
		return nil, &Error{File: name, What: "lists no tensor in weight_map"}
	}
	files := map[string]bool{}
	for tensor, file := range object.Map {
		if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." ||
			Printable(file) != file {
			return nil, &Error{File: name,
				What: fmt.Sprintf("places tensor %s in %s, which is not a plain file name",
					Printable(tensor), Printable(file))}
		}
		files[file] = true
	}
	return &Index{Files: slices.Sorted(maps.Keys(files)), FileOf: object.Map}, nil
}

// Package gguf reads GGUF files, llama.cpp's format: the tensors of a gpt-oss, and the weights in
// the engine's order.
//
// A file is: "GGUF", u32 version, u64 number of tensors, u64 number of keys, the keys, the tensors'
// infos, padding to the alignment, then the tensors' bytes. Numbers are little-endian, strings have
// a u64 length and no end. A model may be split into several files of the same form; OpenSet opens
// them together.
//
// Nothing in a file is trusted. What must stay true of a File: names are unique, each tensor's
// bytes are inside its file and match its type and shape, no two tensors share a byte. Numbers are
// checked against the file's size before they decide an allocation. Tensors' bytes are read only in
// weights.go.
package gguf

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxTensors       = 1 << 16
	maxKeys          = 1 << 16
	maxString        = 1 << 20 // bytes; a chat template has about 16 kB
	maxDims          = 4
	// in a sparse file, long headers and many long texts take no disk; those of gpt-oss have 13 MB,
	// nearly all of it vocabulary, which is not stored
	maxHeader    = 256 << 20
	maxTextBytes = 16 << 20
)

type TensorInfo struct {
	Name string
	Type Type
	// row-major, as everywhere in this program: the file has them in reverse
	Shape      []int
	Begin, End int64 // byte positions in the file, End exclusive
	File       int   // index in Set.Files
}

func (t TensorInfo) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// Header is the checked header of a file.
type Header struct {
	Keys    map[string]any
	Tensors []TensorInfo // in the order of their bytes
	Size    int64        // the file's, in bytes
	Bytes   int64        // the header's own length, up to the first tensor
}

// Error describes one file's problem.
type Error = safetensors.Error

func Open(path string) (*Header, error) {
	f, size, err := safetensors.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(filepath.Base(path), f, size)
}

// Read reads and checks a header from the beginning of a file of size bytes. Errors about the
// content are *Error with file as their File; errors of r are wrapped.
func Read(file string, r io.Reader, size int64) (*Header, error) {
	d := &decoder{in: bufio.NewReaderSize(io.LimitReader(r, min(size, maxHeader)), 1<<16),
		size: size}
	h, err := d.header()
	var wrong *Error
	switch {
	case err == nil:
		return h, nil
	case errors.As(err, &wrong):
		wrong.File = file
		return nil, wrong
	case d.read >= maxHeader:
		return nil, &Error{File: file, What: "has a header of more than 0.3 GB, which no model has"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &Error{File: file, Cut: true,
			What: fmt.Sprintf("is cut short: its header needs more than the %d bytes of the file",
				size)}
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

func errorf(format string, args ...any) error { return &Error{What: fmt.Sprintf(format, args...)} }

func (d *decoder) header() (*Header, error) {
	var begin [len(magic)]byte
	d.bytes(begin[:])
	if d.err == nil && string(begin[:]) != magic {
		return nil, errorf("is not a GGUF file: it begins with %q", begin)
	}
	version := d.uint32()
	if d.err == nil && version != 2 && version != 3 {
		return nil, errorf(
			"is not a GGUF file that ossrun reads (version %d, not 2 or 3). It is damaged or "+
				"big-endian", version)
	}
	tensors, keys := d.uint64(), d.uint64()
	if tensors > maxTensors || keys > maxKeys {
		return nil, errorf("announces %d tensors and %d keys, more than any model has", tensors,
			keys)
	}
	h := &Header{Keys: map[string]any{}, Size: d.size}
	for range keys {
		name, value := d.pair()
		if d.err != nil {
			return nil, d.err
		}
		if _, ok := h.Keys[name]; ok {
			return nil, errorf("has key %s twice", safetensors.Printable(name))
		}
		h.Keys[name] = value
	}
	if err := otherModel(h.Keys); err != nil { // whose tensors may be of unsupported types
		return nil, err
	}
	seen := map[string]bool{}
	for range tensors {
		t, err := d.tensor()
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, errorf("names tensor %s twice", safetensors.Printable(t.Name))
		}
		seen[t.Name] = true
		h.Tensors = append(h.Tensors, t)
	}
	if d.err != nil {
		return nil, d.err
	}
	return h, h.place(d.read)
}

// place turns the tensors' offsets into positions in the file and checks them. read is the infos'
// length.
func (h *Header) place(read int64) error {
	alignment := int64(defaultAlignment)
	if v, ok := h.Keys["general.alignment"]; ok {
		n, ok := v.(int64)
		if !ok || n < 1 || n > 1<<20 || bits.OnesCount64(uint64(n)) != 1 {
			return errorf("has a general.alignment that is not a power of two")
		}
		alignment = n
	}
	h.Bytes = (read + alignment - 1) / alignment * alignment
	for i := range h.Tensors {
		t := &h.Tensors[i]
		length := t.End - t.Begin
		if t.Begin > math.MaxInt64-h.Bytes-length {
			return errorf("has tensor %s at byte %d", safetensors.Printable(t.Name), t.Begin)
		}
		if t.Begin%alignment != 0 {
			return errorf("has tensor %s at byte %d, which is not aligned to %d",
				safetensors.Printable(t.Name), t.Begin, alignment)
		}
		t.Begin += h.Bytes
		t.End = t.Begin + length
	}
	slices.SortFunc(h.Tensors, func(a, b TensorInfo) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	end, prev := h.Bytes, ""
	for _, t := range h.Tensors {
		if t.Begin < end {
			return errorf("has tensors %s and %s in the same place", safetensors.Printable(prev),
				safetensors.Printable(t.Name))
		}
		if t.End > h.Size {
			return &Error{Cut: true,
				What: fmt.Sprintf("is cut short: tensor %s needs bytes %d..%d, the file has %d",
					safetensors.Printable(t.Name), t.Begin, t.End, h.Size)}
		}
		end, prev = t.End, t.Name
	}
	return nil
}

// tensor reads one info. Begin is the offset from the first tensor; End follows from type and
// shape.
func (d *decoder) tensor() (TensorInfo, error) {
	t := TensorInfo{Name: d.text()}
	dims := d.uint32()
	if dims > maxDims {
		return t, errorf("gives tensor %s %d dimensions", safetensors.Printable(t.Name), dims)
	}
	count := uint64(1)
	for range dims {
		n := d.uint64()
		high, low := bits.Mul64(count, n)
		if high != 0 || low > math.MaxInt64/8 || n > math.MaxInt {
			return t, errorf("gives tensor %s more elements than can be",
				safetensors.Printable(t.Name))
		}
		count = low
		t.Shape = append(t.Shape, int(n))
	}
	slices.Reverse(t.Shape)
	t.Type = Type(d.uint32())
	offset := d.uint64()
	if d.err != nil {
		return t, d.err
	}
	if offset > math.MaxInt64 {
		return t, errorf("has tensor %s at byte %d", safetensors.Printable(t.Name), offset)
	}
	elements, size, ok := t.Type.Block()
	if !ok {
		return t, errorf("has tensor %s in %s, which ossrun does not read: take a file in %s",
			safetensors.Printable(t.Name), t.Type, readable)
	}
	row := 1
	if len(t.Shape) > 0 {
		row = t.Shape[len(t.Shape)-1]
	}
	if row%elements != 0 {
		return t, errorf("has tensor %s with rows of %d values, which %s cannot hold",
			safetensors.Printable(t.Name), row, t.Type)
	}
	t.Begin = int64(offset)
	length := int64(count) / int64(elements) * int64(size)
	if t.Begin > math.MaxInt64-length {
		return t, errorf("has tensor %s at byte %d", safetensors.Printable(t.Name), offset)
	}
	t.End = t.Begin + length
	return t, nil
}

// IsFile reports whether a file begins like a GGUF file.
func IsFile(path string) bool {
	f, _, err := mapping.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var begin [len(magic)]byte
	_, err = io.ReadFull(f, begin[:])
	return err == nil && string(begin[:]) == magic
}

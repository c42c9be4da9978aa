package q8

// The copy of a checkpoint's dense weights: in a file that is made once and mapped afterwards, or in memory where there is no folder.
//
// The file is named by what it was made from. It is written beside its place and renamed when it is whole and on the disk, so a process that dies
// leaves no half of one, and two that make it at once leave one of the two, which are equal.

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// Copy is an open copy.
type Copy struct {
	tensors map[string][]byte
	bytes   int64
	close   func() error
}

// format changes whenever the layout or the rounding does: older files are not read then.
const format = "ossrun q8 1"

// Open gives the copy of ckpt's dense weights: from the folder if it is there, else made and left there. With folder "" it lives in memory.
// The bf16 weights that it replaces are given back to the system.
func Open(ckpt *models.Checkpoint, folder string) (*Copy, error) {
	list, size := plan(ckpt.Spec)
	if folder == "" {
		memory, err := pack.Reserve(size)
		if err != nil {
			return nil, err
		}
		fill(memory.Bytes, list, ckpt)
		return view(memory.Bytes, list, memory.Free), nil
	}
	path := filepath.Join(folder, identity(ckpt, list)+Suffix)
	c, err := openFile(path, list, size)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path, list, size, ckpt); err == nil {
			c, err = openFile(path, list, size)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if !ckpt.Release(t.name) {
			giveBack(ckpt.Tensor(t.name).Data)
		}
	}
	return c, nil
}

// Tensor is the copy of a dense weight by the checkpoint's name; nil for any other.
func (c *Copy) Tensor(name string) []byte { return c.tensors[name] }

// Bytes is the size of the copy, on disk and in memory.
func (c *Copy) Bytes() int64 { return c.bytes }

// Close ends the mapping. No tensor may be used after it.
func (c *Copy) Close() error { return c.close() }

// matrix is a dense weight and where its copy lies.
type matrix struct {
	name   string
	n, k   int
	at     int64
	length int64
}

// plan lists what is copied, and the size of it all. Each matrix begins at a cache line.
func plan(s models.Spec) (list []matrix, size int64) {
	for _, t := range s.Tensors() {
		if t.Name != "lm_head.weight" && !(strings.Contains(t.Name, ".self_attn.") && strings.HasSuffix(t.Name, "_proj.weight")) {
			continue
		}
		m := matrix{name: t.Name, n: t.Shape[0], k: t.Shape[1], at: size}
		m.length = int64(Groups(m.n)) * int64(GroupBytes(m.k))
		size += (m.length + 63) / 64 * 64
		list = append(list, m)
	}
	return list, size
}

func view(data []byte, list []matrix, close func() error) *Copy {
	c := &Copy{tensors: map[string][]byte{}, bytes: int64(len(data)), close: close}
	for _, m := range list {
		c.tensors[m.name] = data[m.at : m.at+m.length]
	}
	return c
}

func fill(data []byte, list []matrix, ckpt *models.Checkpoint) {
	for _, m := range list {
		Quantize(data[m.at:m.at+m.length], ckpt.Tensor(m.name).Data, m.n, m.k)
	}
}

// identity names the weights by what of them is looked at: every matrix's shape and a few pages from all over it.
func identity(ckpt *models.Checkpoint, list []matrix) string {
	hash := sha256.New()
	fmt.Fprintln(hash, format)
	for _, m := range list {
		data := ckpt.Tensor(m.name).Data
		fmt.Fprintln(hash, m.name, m.n, m.k)
		const pieces, piece = 64, 1024
		for i := range pieces {
			at := max(0, len(data)-piece) / pieces * i
			hash.Write(data[at:min(len(data), at+piece)])
		}
		hash.Write(data[max(0, len(data)-piece):])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// trailer ends a file; without it the file is not whole.
func trailer(list []matrix, size int64) string {
	return fmt.Sprintf("%s: %d matrices, %d bytes\n", format, len(list), size)
}

func openFile(path string, list []matrix, size int64) (*Copy, error) {
	end := trailer(list, size)
	data, unmap, err := safetensors.Map(path, size+int64(len(end)))
	if err != nil {
		return nil, err
	}
	if string(data[size:]) != end {
		return nil, errors.Join(fmt.Errorf("%s is damaged: remove it and it is made anew", path), unmap())
	}
	return view(data[:size:size], list, unmap), nil
}

// create writes the file, a matrix at a time.
func create(path string, list []matrix, size int64, ckpt *models.Checkpoint) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if free, err := store.Free(path); err == nil && free < size {
		return fmt.Errorf("%s needs %d bytes of disk, %d are free", path, size, free)
	}
	sweep(filepath.Dir(path))
	f, err := os.CreateTemp(filepath.Dir(path), making+"*")
	if err != nil {
		return err
	}
	err = write(f, list, size, ckpt)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Files in the making, and when one that nobody writes to any more counts as left by a dead process.
const (
	making     = ".making-"
	staleAfter = time.Hour
)

// sweep removes what dead processes left.
func sweep(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, making+"*")) // the pattern is well formed
	for _, path := range left {
		if stat, err := os.Stat(path); err == nil && time.Since(stat.ModTime()) > staleAfter {
			os.Remove(path)
		}
	}
}

func write(f *os.File, list []matrix, size int64, ckpt *models.Checkpoint) error {
	var buffer []byte
	for _, m := range list {
		if int64(cap(buffer)) < m.length {
			buffer = make([]byte, m.length)
		}
		Quantize(buffer[:m.length], ckpt.Tensor(m.name).Data, m.n, m.k)
		if _, err := f.WriteAt(buffer[:m.length], m.at); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt([]byte(trailer(list, size)), size); err != nil {
		return err
	}
	return f.Sync()
}

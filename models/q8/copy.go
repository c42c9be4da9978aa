package q8

// The copy of a checkpoint's dense weights: in a file that is made once and mapped afterwards, or
// in memory where there is no folder.
//
// The file is named by all bytes that it was made from (source.go says how a start does without
// reading them). It is written beside its place and renamed when it is whole and on the disk, so a
// process that dies leaves no half of one, and two that make it at once leave one of the two, which
// are equal.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/store"
)

// Copy is an open copy.
type Copy struct {
	tensors map[string][]byte
	bytes   int64
	close   func() error
}

// formatVersion changes whenever the layout, the rounding or the names do: older files are not read
// then, and are removed when one is made.
const (
	formatName    = "ossrun q8 "
	formatVersion = 2
)

// Open gives the copy of ckpt's dense weights: from the folder if it is there, else made and left
// there. With folder "" it lives in memory. The bf16 weights that it replaces are given back to the
// system.
func Open(ckpt *checkpoint.Checkpoint, folder string) (*Copy, error) {
	list, size := plan(ckpt.Spec)
	if folder == "" {
		memory, err := pack.Reserve(size)
		if err != nil {
			return nil, err
		}
		fill(memory.Bytes, list, ckpt)
		return view(memory.Bytes, list, memory.Free), nil
	}
	name := recorded(folder, ckpt.FileStates())
	if name == "" {
		name = identity(ckpt, list)
	}
	path := filepath.Join(folder, name+Suffix)
	c, err := openFile(path, list, size)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path, list, size, ckpt); err == nil {
			c, err = openFile(path, list, size)
		}
	}
	if err != nil {
		return nil, err
	}
	record(folder, ckpt.FileStates(), name)
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

// Replaces tells whether the copy takes the place of a tensor, by its name in the Hugging Face
// layout.
func Replaces(tensor string) bool {
	return tensor == "lm_head.weight" || strings.Contains(tensor, ".self_attn.") &&
		strings.HasSuffix(tensor, "_proj.weight")
}

// plan lists what is copied, and the size of it all. Each matrix begins at a cache line.
func plan(s models.Spec) (list []matrix, size int64) {
	for _, t := range s.Tensors() {
		if !Replaces(t.Name) {
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

func fill(data []byte, list []matrix, ckpt *checkpoint.Checkpoint) {
	for _, m := range list {
		Quantize(data[m.at:m.at+m.length], ckpt.Tensor(m.name).Data, m.n, m.k)
	}
}

// identity names the weights that a copy is made from by their shapes and all their bytes.
func identity(ckpt *checkpoint.Checkpoint, list []matrix) string {
	sums := make([][sha256.Size]byte, len(list))
	// it cannot fail: hashing has no errors and no context ends it
	_ = mapping.Each(context.Background(), runtime.GOMAXPROCS(0), len(list), new(atomic.Int64),
		func(i int, _ *[]byte) (int64, error) {
			sums[i] = sha256.Sum256(ckpt.Tensor(list[i].name).Data)
			return 0, nil
		})
	hash := sha256.New()
	fmt.Fprintln(hash, formatName, formatVersion)
	for i, m := range list {
		fmt.Fprintf(hash, "%s %d %d %x\n", m.name, m.n, m.k, sums[i])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// trailer ends a file; without it the file is not whole.
func trailer(list []matrix, size int64) string {
	return fmt.Sprintf("%s%d: %d matrices, %d bytes\n", formatName, formatVersion, len(list), size)
}

func openFile(path string, list []matrix, size int64) (*Copy, error) {
	end := trailer(list, size)
	data, unmap, err := mapping.Open(path, size+int64(len(end)))
	if err != nil {
		return nil, err
	}
	if string(data[size:]) != end {
		return nil, errors.Join(fmt.Errorf("%s is damaged: remove it and it is made anew", path),
			unmap())
	}
	return view(data[:size:size], list, unmap), nil
}

// create writes the file, some rows at a time.
func create(path string, list []matrix, size int64, ckpt *checkpoint.Checkpoint) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	sweep(filepath.Dir(path))
	if free, err := store.Free(path); err == nil && free < size {
		return fmt.Errorf("%s needs %d bytes of disk, %d are free", path, size, free)
	}
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

// Files in the making, and when one that nobody writes to any more counts as left by a dead
// process.
const (
	making     = ".making-"
	staleAfter = time.Hour
)

// sweep removes what dead processes left, and copies of older formats.
func sweep(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, making+"*")) // the pattern is well formed
	for _, path := range left {
		if stat, err := os.Stat(path); err == nil && time.Since(stat.ModTime()) > staleAfter {
			os.Remove(path)
		}
	}
	copies, _ := filepath.Glob(filepath.Join(folder, "*"+Suffix))
	for _, path := range copies {
		if version := versionOf(path); version > 0 && version < formatVersion {
			os.Remove(path)
		}
	}
}

// versionOf is the format of a copy by its trailer; 0 when it has none.
func versionOf(path string) (version int) {
	f, err := mapping.OpenRegular(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return 0
	}
	end := make([]byte, min(stat.Size(), 128))
	if _, err := f.ReadAt(end, stat.Size()-int64(len(end))); err != nil {
		return 0
	}
	at := bytes.LastIndex(end, []byte(formatName))
	if at < 0 {
		return 0
	}
	var matrices, size int64
	if n, _ := fmt.Sscanf(string(end[at+len(formatName):]), "%d: %d matrices, %d bytes\n", &version,
		&matrices, &size); n < 3 {
		return 0
	}
	return version
}

// writeRows is how many rows of a matrix are written at once, whole groups.
const writeRows = 512 * GroupRows

func write(f *os.File, list []matrix, size int64, ckpt *checkpoint.Checkpoint) error {
	var buffer []byte
	for _, m := range list {
		data := ckpt.Tensor(m.name).Data
		for row := 0; row < m.n; row += writeRows {
			rows := min(writeRows, m.n-row)
			length := Groups(rows) * GroupBytes(m.k)
			if len(buffer) < length {
				buffer = make([]byte, length)
			}
			Quantize(buffer[:length], data[2*row*m.k:2*(row+rows)*m.k], rows, m.k)
			if _, err := f.WriteAt(buffer[:length],
				m.at+int64(row/GroupRows)*int64(GroupBytes(m.k))); err != nil {
				return err
			}
		}
	}
	if _, err := f.WriteAt([]byte(trailer(list, size)), size); err != nil {
		return err
	}
	return f.Sync()
}

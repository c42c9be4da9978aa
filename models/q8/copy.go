package q8

// The copy of a checkpoint's dense weights: in a file that is made once and mapped afterwards, or
// in memory where there is no folder.
//
// The file is named by all bytes that it was made from (source.go says how a start does without
// reading them). It is written under another name and renamed when it is whole and on the disk. So
// a process that dies leaves no half copy, and if two processes make it at once, one of their two
// equal files stays. A file that a dead process left is recognised by its lock, which ended with
// the process.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

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

// formatVersion changes whenever the layout, the rounding or the names do: older files are then not
// read, and are removed when a new copy is made. A newer ossrun's have other names and stay.
const (
	formatName    = "ossrun q8 "
	formatVersion = 4
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
		memory.PreferHugePages()
		if err := fill(memory.Bytes, list, ckpt); err != nil {
			return nil, errors.Join(err, memory.Free())
		}
		return view(memory.Bytes, list, memory.Free), nil
	}
	path, err := prepare(ckpt, folder, list, size, pace{runtime.GOMAXPROCS(0), 1, always})
	if err != nil {
		return nil, err
	}
	c, err := openFile(path, list, size)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if ckpt.Release(t.name) {
			continue
		}
		tensor, err := ckpt.Tensor(t.name)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		mapping.PageOut(tensor.Data)
	}
	return c, nil
}

// Make makes the copy in the folder, if it is not there, on one core and a little at a time. rest
// is called before each piece of work, which takes a few milliseconds; its error ends the work. The
// disk must have room for twice the copy, since nobody asked for it.
func Make(ckpt *checkpoint.Checkpoint, folder string, rest func() error) error {
	list, size := plan(ckpt.Spec)
	_, err := prepare(ckpt, folder, list, size, pace{1, 2, rest})
	return err
}

// Size returns the size of the copy, on disk and in memory, and how many bytes it saves over the
// weights that it replaces.
func Size(s models.Spec) (size, saves int64) {
	list, size := plan(s)
	saves = -size
	for _, m := range list {
		saves += 2 * int64(m.n) * int64(m.k)
	}
	return size, saves
}

// pace says how much of the machine the work may take.
type pace struct {
	workers int
	room    int64        // times the copy's size must be free on the disk
	rest    func() error // before each piece
}

func always() error { return nil }

// prepare gives the path of a whole copy, which it makes if need be.
func prepare(ckpt *checkpoint.Checkpoint, folder string, list []matrix, size int64,
	at pace) (path string, err error) {
	name := recorded(folder, ckpt.FileStates())
	if name == "" {
		if name, err = identity(ckpt, list, at); err != nil {
			return "", err
		}
	}
	path = filepath.Join(folder, name+Suffix)
	if !whole(path, list, size) {
		if err := create(path, list, size, ckpt, at); err != nil {
			return "", err
		}
	}
	record(folder, ckpt.FileStates(), name)
	return path, nil
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

func fill(data []byte, list []matrix, ckpt *checkpoint.Checkpoint) error {
	for _, m := range list {
		tensor, err := ckpt.Tensor(m.name)
		if err != nil {
			return err
		}
		Quantize(data[m.at:m.at+m.length], tensor.Data, m.n, m.k)
	}
	return nil
}

// hashBytes is a piece of what identity reads.
const hashBytes = 4 << 20

// identity names the weights that a copy is made from by their shapes and all their bytes.
func identity(ckpt *checkpoint.Checkpoint, list []matrix, at pace) (string, error) {
	sums := make([][]byte, len(list))
	err := mapping.Each(context.Background(), at.workers, len(list), new(atomic.Int64),
		func(i int, _ *[]byte) (int64, error) {
			tensor, err := ckpt.Tensor(list[i].name)
			if err != nil {
				return 0, err
			}
			hash := sha256.New()
			for piece := range slices.Chunk(tensor.Data, hashBytes) {
				if err := at.rest(); err != nil {
					return 0, err
				}
				hash.Write(piece)
			}
			sums[i] = hash.Sum(nil)
			return 0, nil
		})
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, formatName, formatVersion)
	for i, m := range list {
		fmt.Fprintf(hash, "%s %d %d %x\n", m.name, m.n, m.k, sums[i])
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// trailer ends a file; without it the file is not whole.
func trailer(list []matrix, size int64) string {
	return fmt.Sprintf("%s%d: %d matrices, %d bytes\n", formatName, formatVersion, len(list),
		withSums(size))
}

func openFile(path string, list []matrix, size int64) (*Copy, error) {
	end, total := trailer(list, size), withSums(size)
	data, unmap, err := mapping.Open(path, total+int64(len(end)))
	if err != nil {
		return nil, err
	}
	if string(data[total:]) != end {
		return nil, errors.Join(fmt.Errorf("%s is damaged", path), unmap())
	}
	return view(data[:size:size], list, unmap), nil
}

// whole tells by a copy's size and trailer whether it is there as it was written; if not, it is
// made anew.
func whole(path string, list []matrix, size int64) bool {
	c, err := openFile(path, list, size)
	return err == nil && c.Close() == nil
}

// create writes the file, some rows at a time.
func create(path string, list []matrix, size int64, ckpt *checkpoint.Checkpoint, at pace) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	sweep(folder)
	if free, err := store.Free(folder); err == nil && free < at.room*size {
		return fmt.Errorf("%s has %d bytes of disk free, %d are wanted", folder, free, at.room*size)
	}
	f, unmark, err := store.Create(folder, making)
	if err != nil {
		return err
	}
	defer unmark()
	err = write(f, list, size, ckpt, at)
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

// making begins the name of a file in the making.
const making = ".making-"

// sweep removes what dead processes left, and copies of older formats and of deleted weights.
func sweep(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, making+"*")) // the pattern is well formed
	for _, path := range left {
		store.RemoveUnused(path)
	}
	Forget(folder)
	copies, _ := filepath.Glob(filepath.Join(folder, "*"+Suffix))
	for _, path := range copies {
		if version := versionOf(path); version > 0 && version < formatVersion {
			os.Remove(path)
		}
	}
}

// versionOf is the format of a copy by its trailer; 0 when it has none.
func versionOf(path string) int {
	f, length, err := mapping.OpenRegular(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	version, _ := ending(f, length)
	return version
}

// ending reads a copy's trailer: the format, and how many bytes come before it.
func ending(f io.ReaderAt, length int64) (version int, size int64) {
	end := make([]byte, min(length, 128))
	if _, err := f.ReadAt(end, length-int64(len(end))); err != nil {
		return 0, 0
	}
	at := bytes.LastIndex(end, []byte(formatName))
	if at < 0 {
		return 0, 0
	}
	var matrices int64
	if n, _ := fmt.Sscanf(string(end[at+len(formatName):]), "%d: %d matrices, %d bytes\n", &version,
		&matrices, &size); n < 3 || size != length-int64(len(end)-at) {
		return 0, 0
	}
	return version, size
}

const (
	writeRows = 512 * GroupRows // of a matrix, written at once: whole groups
	pieceRows = 32 * GroupRows  // between two rests: milliseconds on one core
	syncBytes = 64 << 20        // so that the disk is never far behind
)

func write(f *os.File, list []matrix, size int64, ckpt *checkpoint.Checkpoint, at pace) error {
	var buffer []byte
	var unsynced int
	for _, m := range list {
		tensor, err := ckpt.Tensor(m.name)
		if err != nil {
			return err
		}
		for row := 0; row < m.n; row += writeRows {
			rows := min(writeRows, m.n-row)
			length := Groups(rows) * GroupBytes(m.k)
			if len(buffer) < length {
				buffer = make([]byte, length)
			}
			each := rows
			if at.workers == 1 {
				each = pieceRows
			}
			for i := 0; i < rows; i += each {
				n := min(each, rows-i)
				if err := at.rest(); err != nil {
					return err
				}
				quantize(buffer[i/GroupRows*GroupBytes(m.k):], tensor.Data[2*(row+i)*m.k:], n,
					m.k, at.workers)
			}
			if _, err := f.WriteAt(buffer[:length],
				m.at+int64(row/GroupRows)*int64(GroupBytes(m.k))); err != nil {
				return err
			}
			if unsynced += length; unsynced >= syncBytes {
				unsynced = 0
				if err := f.Sync(); err != nil {
					return err
				}
			}
		}
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	sums, err := checksums(f, size, at.rest)
	if err == nil {
		_, err = f.WriteAt(append(sums, trailer(list, size)...), size)
	}
	if err != nil {
		return err
	}
	return f.Sync()
}

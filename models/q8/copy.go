package q8

// The copy of a checkpoint's dense weights: in a file that is created once and mapped afterwards,
// or in memory without a folder.
//
// The file's name is a hash of all bytes that it was made from (source.go avoids reading them at
// start). Checksums of its blocks follow the matrices, then a trailer.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/pack"
)

type Copy struct {
	tensors map[string][]byte
	bytes   int64
	close   func() error
}

// formatVersion changes with the layout, the rounding or the names: older files are then ignored,
// and removed when a new copy is made. A newer ossrun's have other names and stay.
const (
	formatName    = "ossrun q8 "
	formatVersion = 4
)

// Open opens the copy of ckpt's dense weights, loaded from the folder or created in it; with folder
// "" in memory. The memory of the replaced bf16 weights is released.
func Open(ckpt *checkpoint.Checkpoint, folder string) (*Copy, error) {
	list, size := plan(ckpt.Spec)
	if folder == "" {
		memory, err := pack.Reserve(size)
		if err != nil {
			return nil, err
		}
		mapping.PreferHugePages(memory.Bytes)
		if err := fill(memory.Bytes, list, ckpt); err != nil {
			return nil, errors.Join(err, memory.Free())
		}
		return view(memory.Bytes, list, memory.Free), nil
	}
	path, err := prepare(ckpt, folder, list, size, pace{runtime.GOMAXPROCS(0), 1, noPause})
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

// Make creates a missing copy in the folder, on one core and in small pieces. pause is called
// before each piece, which takes a few milliseconds; its error stops the work. The disk must have
// room for twice the copy, because no user asked for it.
func Make(ckpt *checkpoint.Checkpoint, folder string, pause func() error) error {
	list, size := plan(ckpt.Spec)
	_, err := prepare(ckpt, folder, list, size, pace{1, 2, pause})
	return err
}

// Size returns the size of the copy, on disk and in memory, and the bytes saved compared with the
// replaced weights.
func Size(s models.Spec) (size, saves int64) {
	list, size := plan(s)
	saves = -size
	for _, m := range list {
		saves += 2 * int64(m.n) * int64(m.k)
	}
	return size, saves
}

// pace limits the share of the machine that the work takes.
type pace struct {
	workers int
	room    int64        // times the copy's size must be free on the disk
	pause   func() error // before each piece
}

func noPause() error { return nil }

// prepare returns the path of a complete copy, which it creates if missing.
func prepare(ckpt *checkpoint.Checkpoint, folder string, list []matrix, size int64,
	p pace) (path string, err error) {
	name := recorded(folder, ckpt.FileStates())
	if name == "" {
		if name, err = identity(ckpt, list, p); err != nil {
			return "", err
		}
	}
	path = filepath.Join(folder, name+Suffix)
	if c, err := openFile(path, list, size); err != nil || c.Close() != nil { // it is incomplete
		if err := create(path, list, size, ckpt, p); err != nil {
			return "", err
		}
	}
	record(folder, ckpt.FileStates(), name)
	return path, nil
}

// Tensor is the copy of a dense weight by the checkpoint's name; nil for other tensors.
func (c *Copy) Tensor(name string) []byte { return c.tensors[name] }

// Bytes is the size of the copy, on disk and in memory.
func (c *Copy) Bytes() int64 { return c.bytes }

// Close ends the mapping. No tensor may be used after it.
func (c *Copy) Close() error { return c.close() }

// matrix is a dense weight and the place of its copy.
type matrix struct {
	name   string
	n, k   int
	offset int64
	length int64
}

// Replaces reports whether the copy replaces a tensor, by its name in the Hugging Face layout.
func Replaces(tensor string) bool {
	return tensor == "lm_head.weight" || strings.Contains(tensor, ".self_attn.") &&
		strings.HasSuffix(tensor, "_proj.weight")
}

// plan lists the copied tensors and the total size. Each matrix begins at a cache line.
func plan(s models.Spec) (list []matrix, size int64) {
	for _, t := range s.Tensors() {
		if !Replaces(t.Name) {
			continue
		}
		m := matrix{name: t.Name, n: t.Shape[0], k: t.Shape[1], offset: size}
		m.length = int64(Groups(m.n)) * int64(GroupBytes(m.k))
		size += (m.length + 63) / 64 * 64
		list = append(list, m)
	}
	return list, size
}

func view(data []byte, list []matrix, close func() error) *Copy {
	c := &Copy{tensors: map[string][]byte{}, bytes: int64(len(data)), close: close}
	for _, m := range list {
		c.tensors[m.name] = data[m.offset : m.offset+m.length]
	}
	return c
}

func fill(data []byte, list []matrix, ckpt *checkpoint.Checkpoint) error {
	for _, m := range list {
		tensor, err := ckpt.Tensor(m.name)
		if err != nil {
			return err
		}
		Quantize(data[m.offset:m.offset+m.length], tensor.Data, m.n, m.k)
	}
	return nil
}

// hashBytes is the size of one step of identity.
const hashBytes = 4 << 20

// identity is a hash of the shapes and all bytes of the weights that a copy is made from.
func identity(ckpt *checkpoint.Checkpoint, list []matrix, p pace) (string, error) {
	sums := make([][]byte, len(list))
	err := mapping.Parallel(context.Background(), p.workers, len(list), new(atomic.Int64),
		func(i int, _ *[]byte) (int64, error) {
			tensor, err := ckpt.Tensor(list[i].name)
			if err != nil {
				return 0, err
			}
			hash := sha256.New()
			for piece := range slices.Chunk(tensor.Data, hashBytes) {
				if err := p.pause(); err != nil {
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

// trailer ends a file; without it the file is incomplete.
func trailer(list []matrix, size int64) string {
	return fmt.Sprintf("%s%d: %d matrices, %d bytes\n", formatName, formatVersion, len(list),
		derived.WithSums(size))
}

// openFile maps a copy and checks its size and trailer.
func openFile(path string, list []matrix, size int64) (*Copy, error) {
	end, total := trailer(list, size), derived.WithSums(size)
	data, unmap, err := mapping.Open(path, total+int64(len(end)))
	if err != nil {
		return nil, err
	}
	if string(data[total:]) != end {
		return nil, errors.Join(fmt.Errorf("%s is damaged", path), unmap())
	}
	return view(data[:size:size], list, unmap), nil
}

func create(path string, list []matrix, size int64, ckpt *checkpoint.Checkpoint, p pace) error {
	folder := filepath.Dir(path)
	Forget(folder)
	derived.Forget(folder, Suffix, math.MaxInt, func(path string) bool {
		version := versionOf(path)
		return version == 0 || version >= formatVersion
	})
	if err := derived.CheckRoom(folder, p.room*size); err != nil {
		return err
	}
	if err := derived.Write(path, func(f *derived.File) error {
		return write(f, list, size, ckpt, p)
	}); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Check compares the copy at path with its checksums. A damaged one is removed, so that the next
// start makes it again, with ErrDamaged. A missing one is no error.
func Check(path string, pause func() error) error {
	f, length, err := mapping.OpenRegular(path)
	if err != nil {
		return nil // removed by another process
	}
	defer f.Close()
	version, total := readTrailer(f, length)
	if version != formatVersion {
		return nil
	}
	size := derived.WithoutSums(total)
	sums := make([]byte, total-size)
	if _, err = f.ReadAt(sums, size); err != nil {
		return err
	}
	return derived.Check(f, 0, size, sums, os.Remove, pause)
}

// versionOf is the format of a copy by its trailer; 0 without one.
func versionOf(path string) int {
	f, length, err := mapping.OpenRegular(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	version, _ := readTrailer(f, length)
	return version
}

// readTrailer reads a copy's trailer: the format, and the number of bytes before it.
func readTrailer(f io.ReaderAt, length int64) (version int, size int64) {
	end := make([]byte, min(length, 128))
	if _, err := f.ReadAt(end, length-int64(len(end))); err != nil {
		return 0, 0
	}
	start := bytes.LastIndex(end, []byte(formatName))
	if start < 0 {
		return 0, 0
	}
	var matrices int64
	if n, _ := fmt.Sscanf(string(end[start+len(formatName):]), "%d: %d matrices, %d bytes\n",
		&version, &matrices, &size); n < 3 || size != length-int64(len(end)-start) {
		return 0, 0
	}
	return version, size
}

const (
	writeRows = 512 * GroupRows // of a matrix, written at once: full groups
	pieceRows = 32 * GroupRows  // between two rests: milliseconds on one core
)

func write(f *derived.File, list []matrix, size int64, ckpt *checkpoint.Checkpoint, p pace) error {
	var buffer []byte
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
			step := rows
			if p.workers == 1 {
				step = pieceRows
			}
			for i := 0; i < rows; i += step {
				n := min(step, rows-i)
				if err := p.pause(); err != nil {
					return err
				}
				quantize(buffer[i/GroupRows*GroupBytes(m.k):], tensor.Data[2*(row+i)*m.k:], n,
					m.k, p.workers)
			}
			if _, err := f.WriteAt(buffer[:length],
				m.offset+int64(row/GroupRows)*int64(GroupBytes(m.k))); err != nil {
				return err
			}
		}
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	sums, err := derived.Sums(f, 0, size, p.pause)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(sums, trailer(list, size)...), size)
	return err
}

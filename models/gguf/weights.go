package gguf

// Repacking a GGUF file's weights into the engine's order while they are read. Several goroutines
// repack pieces of tensors, straight from the mapped file to their final place in memory. Reading a
// piece waits for the disk, so there are more goroutines than processors.
//
// What must stay true: a tensor marked as loaded is complete; no goroutine waits for a tensor while
// holding what its repacking needs; only pieces being repacked are in this process's memory.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/safetensors"
)

// Weights are a checkpoint's weights, read from GGUF files.
type Weights struct {
	files     []mappedFile
	memory    *pack.Memory
	Tensors   map[string]safetensors.Tensor
	rewrites  []rewrite
	rewriteOf map[string]int // tensor's name to index in rewrites

	mu     sync.Mutex // held while weights are read
	loaded []bool     // by rewrite
	keep   bool       // the pages of the files may stay in the page cache
}

// mappedFile is a file whose bytes are read through a mapping.
type mappedFile struct {
	name  string
	file  *os.File
	data  []byte
	unmap func() error
}

// pageBytes is the alignment of tensors, so that the memory of each can be released alone.
const pageBytes = 4096

// OpenWeights maps the files and reserves the memory of the weights, which are read on request, or
// all at once by Load.
func (m *Model) OpenWeights() (_ *Weights, err error) {
	r := &Weights{Tensors: map[string]safetensors.Tensor{}, rewrites: m.rewrites,
		rewriteOf: map[string]int{}, loaded: make([]bool, len(m.rewrites))}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, path := range m.set.Files {
		f, size, err := mapping.OpenRegular(path)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		data, unmap, err := mapping.File(f, size)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("mapping %s: %w", name, err), f.Close())
		}
		r.files = append(r.files, mappedFile{name, f, data, unmap})
	}
	for _, t := range m.set.Tensors {
		if t.End > int64(len(r.files[t.File].data)) {
			return nil, fmt.Errorf("%s became shorter while it was opened", r.files[t.File].name)
		}
	}
	list, total := m.spec.Tensors(), int64(0)
	for _, t := range list {
		total += (t.Bytes() + pageBytes - 1) / pageBytes * pageBytes
	}
	if r.memory, err = pack.Reserve(total); err != nil {
		return nil, fmt.Errorf("%d bytes for the weights of %s: %w", total, r.files[0].name, err)
	}
	mapping.PreferHugePages(r.memory.Bytes)
	rest := r.memory.Bytes
	for _, t := range list {
		r.Tensors[t.Name] = safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape,
			Data: rest[:t.Bytes():t.Bytes()], File: r.files[0].name}
		rest = rest[(t.Bytes()+pageBytes-1)/pageBytes*pageBytes:]
	}
	for i, w := range r.rewrites {
		r.rewriteOf[w.to.Name] = i
		if w.scales != "" {
			r.rewriteOf[w.scales] = i
		}
		for _, from := range w.from {
			if _, err := from.stride(m.set); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Close frees the memory and ends the mappings.
func (r *Weights) Close() (err error) {
	for _, f := range r.files {
		err = errors.Join(err, f.unmap(), f.file.Close())
	}
	if r.memory != nil {
		err = errors.Join(err, r.memory.Free())
	}
	return err
}

// keepFor decides whether the files stay in the page cache.
func (r *Weights) keepFor(free int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	need := int64(len(r.memory.Bytes))
	for _, f := range r.files {
		need += int64(len(f.data))
	}
	r.keep = need <= free
}

// fill reads the tensors of the wanted rewrites that are not loaded yet.
func (r *Weights) fill(ctx context.Context, indices []int, progress func(done, total int64)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []piece
	var total int64
	for _, i := range indices {
		if !r.loaded[i] {
			list = append(list, r.rewrites[i].pieces()...)
			total += r.rewrites[i].bytes()
		}
	}
	// In disk order, as far as tensors from two sources allow.
	slices.SortStableFunc(list, func(a, b piece) int {
		x, y := a.rewrite.from[0].tensor, b.rewrite.from[0].tensor
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Begin, y.Begin),
			cmp.Compare(a.from, b.from))
	})
	var done atomic.Int64
	stop := mapping.ReportProgress(&done, total, progress)
	defer stop()
	workers := min(2*runtime.GOMAXPROCS(0)+2, 32)
	err := mapping.Parallel(ctx, workers, len(list), &done,
		func(i int, spare *[]byte) (int64, error) { return list[i].bytes(), r.do(list[i], spare) })
	if err != nil {
		return err
	}
	for _, i := range indices {
		r.loaded[i] = true
	}
	return nil
}

// piece is the unit of work of one goroutine.
type piece struct {
	rewrite rewrite
	from    int64 // along the tensor's first dimension
	count   int64
}

// pieceValues bounds the values in a piece of a tensor other than an expert matrix.
const pieceValues = 4 << 20

// pieces splits a rewrite: expert by expert, other tensors by rows.
func (r rewrite) pieces() []piece {
	first, step := int64(r.to.Shape[0]), int64(1)
	if r.scales == "" {
		step = max(1, pieceValues/(r.to.Bytes()/2/first))
	}
	var list []piece
	for start := int64(0); start < first; start += step {
		list = append(list, piece{r, start, min(step, first-start)})
	}
	return list
}

func (r rewrite) bytes() int64 {
	if r.scales != "" {
		return r.to.Bytes() + r.to.Bytes()/models.BlockBytes
	}
	return r.to.Bytes()
}

func (p piece) bytes() int64 { return p.rewrite.bytes() / int64(p.rewrite.to.Shape[0]) * p.count }

// place returns a piece's offset and length in its tensor, or in an expert matrix's blocks. In the
// scales, both are a sixteenth.
func (p piece) place() (offset, length int64) {
	width := p.rewrite.to.Bytes() / int64(p.rewrite.to.Shape[0])
	return p.from * width, p.count * width
}

// do rewrites one piece at its place in memory.
func (r *Weights) do(p piece, spare *[]byte) error {
	w := p.rewrite
	offset, length := p.place()
	to, scales := r.Tensors[w.to.Name].Data[offset:][:length], []byte(nil)
	if w.scales != "" {
		scales = r.Tensors[w.scales].Data[offset/models.BlockBytes:][:length/models.BlockBytes]
	}
	return r.fetch(p, to, scales, r.keep, spare)
}

// Write rewrites all tensors from the files, regardless of memory, and passes them to put piece by
// piece; at counts from the tensor's first byte. pause is called before each piece.
func (r *Weights) Write(pause func() error,
	put func(tensor string, offset int64, data []byte) error) error {
	r.mu.Lock()
	keep := r.keep
	r.mu.Unlock()
	var buffer, spare []byte
	for _, w := range r.rewrites {
		for _, p := range w.pieces() {
			if err := pause(); err != nil {
				return err
			}
			offset, length := p.place()
			short := int64(0)
			if w.scales != "" {
				short = length / models.BlockBytes
			}
			if int64(len(buffer)) < length+short {
				buffer = make([]byte, length+short)
			}
			to, scales := buffer[:length], buffer[length:][:short]
			if err := r.fetch(p, to, scales, keep, &spare); err != nil {
				return err
			}
			if err := put(w.to.Name, offset, to); err != nil {
				return err
			}
			if w.scales == "" {
				continue
			}
			if err := put(w.scales, offset/models.BlockBytes, scales); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Weights) Files() (paths []string) {
	for _, f := range r.files {
		paths = append(paths, f.file.Name())
	}
	return paths
}

// fetch reads and reorders one piece; with keep its pages stay in the page cache.
func (r *Weights) fetch(p piece, to, scales []byte, keep bool, spare *[]byte) error {
	w := p.rewrite
	for i, from := range w.from {
		t := from.tensor
		elements, size, _ := t.Type.Block()
		stride := t.Elements() / int64(t.Shape[0]) / int64(elements) * int64(size)
		f := r.files[t.File]
		begin := t.Begin + (from.first+p.from)*stride
		source := f.data[begin : begin+stride*p.count]
		release, err := mapping.Read(f.file, begin, source, keep)
		if err != nil {
			return fmt.Errorf("reading %s of %s: %w", t.Name, f.name, err)
		}
		if w.scales != "" {
			unpackRows(to, scales, source, w.unit(1), i, len(w.from), t.Type)
		} else {
			convertRows(to, source, w.unit(2), i, len(w.from), t.Type, spare)
		}
		release()
	}
	return nil
}

// unit is the number of adjacent bytes of a tensor when two sources alternate along the second
// dimension; width is the size of an element.
func (r rewrite) unit(width int) int {
	for _, d := range r.to.Shape[min(2, len(r.to.Shape)):] {
		width *= d
	}
	return width
}

// unpackRows writes the i-th of n sources of an expert matrix: rows of unit bytes alternate.
func unpackRows(blocks, scales, from []byte, unit, i, n int, kind Type) {
	if n == 1 {
		unpackBlocks(blocks, scales, from, kind)
		return
	}
	short := unit / models.BlockBytes
	for row := i; row*unit < len(blocks); row += n {
		unpackBlocks(blocks[row*unit:][:unit], scales[row*short:][:short], from, kind)
		from = from[short*mxfp4Bytes:]
	}
}

// convertRows writes the i-th of n sources of a bfloat16 tensor: rows of unit bytes alternate.
func convertRows(to, from []byte, unit, i, n int, kind Type, spare *[]byte) {
	if n == 1 {
		ToBF16(to, from, kind)
		return
	}
	if len(*spare) < len(to)/n {
		*spare = make([]byte, len(to)/n)
	}
	one := (*spare)[:len(to)/n]
	ToBF16(one, from, kind)
	for pos := 0; pos < len(one); pos += unit {
		copy(to[pos*n+i*unit:], one[pos:pos+unit])
	}
}

// Load reads all tensors that are not loaded yet, except skipped ones, and reports progress. If the
// files fit in free bytes next to the weights, they stay in the page cache for the next start.
func (r *Weights) Load(ctx context.Context, free int64, without func(tensor string) bool,
	progress func(done, total int64)) error {
	r.keepFor(free)
	var all []int
	for i, w := range r.rewrites {
		if without == nil || !without(w.to.Name) {
			all = append(all, i)
		}
	}
	return r.fill(ctx, all, progress)
}

// Fetch reads one tensor of the model, if it is not loaded yet.
func (r *Weights) Fetch(name string) error {
	i, ok := r.rewriteOf[name]
	if !ok {
		return nil
	}
	return r.fill(context.Background(), []int{i}, nil)
}

// Release returns a tensor's memory; it is read again on request. Its Data must not be in use.
// False if it is not a tensor of the model.
func (r *Weights) Release(name string) bool {
	i, ok := r.rewriteOf[name]
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.rewrites[i]
	for _, part := range []string{w.to.Name, w.scales} {
		if part != "" && !mapping.Release(r.Tensors[part].Data) {
			return true // the memory stays valid
		}
	}
	r.loaded[i] = false
	return true
}

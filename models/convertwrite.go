package models

// Writing the converted weights: pieces of tensors, read, rearranged and written in their places by several goroutines at once, so
// that the conversion runs at the disk's rate.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/safetensors"
)

// piece is a part of the work that one goroutine does: from reading to writing.
type piece struct {
	rewrite rewrite
	from    int64 // along the tensor's first dimension
	count   int64
}

// pieceValues bounds a piece of a tensor that is no expert matrix, in values.
const pieceValues = 4 << 20

// pieces cuts a rewrite: expert by expert, other tensors by rows.
func (r rewrite) pieces() []piece {
	first, each := int64(r.to.Shape[0]), int64(1)
	if r.scales == "" {
		each = max(1, pieceValues/(r.to.Bytes()/2/first))
	}
	var list []piece
	for at := int64(0); at < first; at += each {
		list = append(list, piece{r, at, min(each, first-at)})
	}
	return list
}

// weights writes the safetensors file and counts the values of its bfloat16 tensors, those that were rounded apart.
func (c *Conversion) weights(ctx context.Context, path string, progress func(done, total int64)) (rounded, values int64, err error) {
	var infos []safetensors.Info
	for _, t := range c.spec.Tensors() {
		infos = append(infos, safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shape})
		if t.DType == BF16 {
			values += t.Bytes() / 2
		}
	}
	head, placed, err := safetensors.Layout(infos, map[string]string{"format": "pt", "source": filepath.Base(c.Source)})
	if err != nil {
		return 0, 0, err
	}
	w := &converter{at: map[string]int64{}}
	for _, p := range placed {
		w.at[p.Name] = p.Begin
	}
	if w.out, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.out.Close()) }()
	for _, name := range c.set.Files {
		in, err := os.Open(name)
		if err != nil {
			return 0, 0, err
		}
		defer in.Close()
		w.in = append(w.in, in)
	}
	if _, err = w.out.Write(head); err == nil {
		err = w.out.Truncate(placed[len(placed)-1].End)
	}
	if err != nil {
		return 0, 0, err
	}
	stop := tell(&w.done, c.Bytes, progress)
	defer stop()
	if err := w.all(ctx, c.rewrites); err != nil {
		return 0, 0, err
	}
	return w.rounded.Load(), values, w.out.Sync()
}

// tell reports how far a count is until the function it gives is called.
func tell(done *atomic.Int64, total int64, progress func(done, total int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				progress(done.Load(), total)
			case <-ended:
				progress(done.Load(), total)
				return
			}
		}
	}()
	return func() { close(ended); <-gone }
}

// converter does pieces.
type converter struct {
	in            []*os.File
	out           *os.File
	at            map[string]int64 // where each tensor begins in out
	done, rounded atomic.Int64
}

// all does every piece of every rewrite, on a few goroutines.
func (w *converter) all(ctx context.Context, rewrites []rewrite) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan piece)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8) {
		group.Go(func() {
			var b buffers
			for p := range queue {
				if err := w.do(p, &b); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, r := range rewrites {
		for _, p := range r.pieces() {
			select {
			case queue <- p:
			case <-ctx.Done():
			}
		}
	}
	close(queue)
	group.Wait()
	return context.Cause(ctx)
}

// buffers are a goroutine's, grown as need be.
type buffers struct{ in, made, scales, mixed, mixedScales []byte }

func grow(b *[]byte, n int64) []byte {
	if int64(cap(*b)) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// do converts one piece.
func (w *converter) do(p piece, b *buffers) error {
	r := p.rewrite
	width := r.to.Bytes() / int64(r.to.Shape[0]) // bytes of the result for one step along the first dimension
	steps, turns := p.count, int64(len(r.from))
	var made, scales []byte
	for i, from := range r.from {
		elements, size, _ := from.tensor.Type.Block()
		each := from.tensor.Elements() / int64(from.tensor.Shape[0])
		if each%int64(elements) != 0 {
			return fmt.Errorf("tensor %s has %d values a step, which %s cannot hold", from.tensor.Name, each, from.tensor.Type)
		}
		stride := each / int64(elements) * int64(size)
		in := grow(&b.in, stride*steps)
		if _, err := w.in[from.tensor.File].ReadAt(in, from.tensor.Begin+(from.first+p.from)*stride); err != nil {
			return fmt.Errorf("reading %s: %w", from.tensor.Name, err)
		}
		one := grow(&b.made, width*steps/turns)
		if r.scales == "" {
			w.rounded.Add(toBF16(one, in, from.tensor.Type))
			made = mix(&b.mixed, made, one, i, int(turns), r.unit(2))
			continue
		}
		s := grow(&b.scales, width*steps/turns/blockBytes)
		unpackBlocks(one, s, in, from.tensor.Type)
		made = mix(&b.mixed, made, one, i, int(turns), r.unit(1))
		scales = mix(&b.mixedScales, scales, s, i, int(turns), r.unit(1)/blockBytes)
	}
	if _, err := w.out.WriteAt(made, w.at[r.to.Name]+p.from*width); err != nil {
		return err
	}
	w.done.Add(int64(len(made)))
	if r.scales == "" {
		return nil
	}
	_, err := w.out.WriteAt(scales, w.at[r.scales]+p.from*width/blockBytes)
	w.done.Add(int64(len(scales)))
	return err
}

// unit is how many bytes of a tensor lie together when two sources take turns along the second dimension; width is an element's.
func (r rewrite) unit(width int) int {
	for _, d := range r.to.Shape[min(2, len(r.to.Shape)):] {
		width *= d
	}
	return width
}

// mix puts the i-th of n sources in its turn; alone it stays as it is.
func mix(buffer *[]byte, mixed, one []byte, i, n, unit int) []byte {
	if n == 1 {
		return one
	}
	if mixed == nil {
		mixed = grow(buffer, int64(len(one)*n))
	}
	for at := 0; at < len(one); at += unit {
		copy(mixed[at*n+i*unit:], one[at:at+unit])
	}
	return mixed
}

package device

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Copies weights from a mapped file to the card. Several goroutines copy pieces into pinned memory,
// because reading a mapping waits for the disk; a piece goes to the card while the next is read.

const (
	pieceBytes = 16 << 20 // that one copy to the card takes
	pieces     = 4        // in flight
)

// loader is the ring of pinned pieces. It has a queue of its own: loading does not wait for steps.
type loader struct {
	resources
	mu    sync.Mutex
	queue *driver.Stream
	ring  [pieces]pinnedBuffer
	next  int
}

// loader gives the device's loader, made on first use.
func (d *Device) loader() (*loader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loading != nil {
		return d.loading, nil
	}
	l := &loader{resources: resources{d: d}}
	l.queue = l.stream()
	for i := range l.ring {
		l.ring[i] = l.pin(pieceBytes)
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	d.loading = l
	return l, nil
}

// Upload copies data to the card and returns when it is there; the caller may change data then.
func (d *Device) Upload(data []byte) (engine.Region, error) {
	r, err := d.alloc(int64(len(data)) + kernels.WeightsBehind)
	if err != nil {
		return nil, err
	}
	r.bytes = int64(len(data))
	if err := d.load(r.address, data); err != nil {
		return nil, errors.Join(fmt.Errorf("upload %d bytes: %w", len(data), err), r.Free())
	}
	return r, nil
}

func (d *Device) load(to driver.Pointer, data []byte) (err error) {
	l, err := d.loader()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if err != nil {
			// no copy may use the ring or the region when they are freed; report the first error
			l.queue.Synchronize()
		}
	}()
	for piece := range slices.Chunk(data, pieceBytes) {
		s := &l.ring[l.next]
		l.next = (l.next + 1) % pieces
		if err := s.copied.Synchronize(); err != nil {
			return err
		}
		if err := readInto(s.memory.Bytes()[:len(piece)], piece); err != nil {
			return err
		}
		if err := l.queue.CopyIn(to, s.memory, 0, len(piece)); err != nil {
			return err
		}
		if err := s.copied.Record(l.queue); err != nil {
			return err
		}
		to += driver.Pointer(len(piece))
	}
	return l.queue.Synchronize()
}

// readInto copies with several goroutines, so that a page not in memory stops only one of them.
func readInto(dst, src []byte) error {
	const least = 1 << 20
	readers := max(1, min(2*runtime.NumCPU(), len(src)/least))
	share := (len(src) + readers - 1) / readers
	var all errgroup.Group
	for i := range readers {
		start, end := min(i*share, len(src)), min((i+1)*share, len(src))
		all.Go(func() error { return readMapped(dst[start:end], src[start:end]) })
	}
	return all.Wait() // the first error; the others say the same
}

// errUnreadable is a page of a mapping that the system could not read.
var errUnreadable = errors.New("the file of the weights cannot be read: a disk that fails, or " +
	"the file was made shorter while it was in use")

// readMapped copies out of a mapping. The signal of an unreadable page becomes an error.
func readMapped(dst, src []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = errUnreadable
		default:
			panic(fault)
		}
	}()
	copy(dst, src)
	return nil
}

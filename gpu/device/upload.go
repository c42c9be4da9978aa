package device

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Weights on their way from a mapped file to the card: pieces go into pinned memory by several
// goroutines at once, since reading a mapping waits for the disk, and from there to the card while
// the next piece is read.

const (
	pieceBytes = 16 << 20 // that one copy to the card takes
	pieces     = 4        // in flight
)

// loader is the ring of pinned pieces. It has a queue of its own: loading does not wait for steps.
type loader struct {
	holding
	mu    sync.Mutex
	queue *driver.Stream
	ring  [pieces]pinned
	at    int
}

// loader is the device's, made at first.
func (d *Device) loader() (*loader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loading != nil {
		return d.loading, nil
	}
	l := &loader{holding: holding{d: d}}
	l.queue = l.stream()
	for i := range l.ring {
		l.ring[i] = l.pin(pieceBytes)
	}
	if err := l.made(); err != nil {
		return nil, err
	}
	d.loading = l
	return l, nil
}

// Upload copies data to the card and returns when it is there: data may change afterwards.
func (d *Device) Upload(data []byte) (engine.Region, error) {
	r, err := d.alloc(int64(len(data)))
	if err != nil {
		return nil, err
	}
	if err := d.load(r.at, data); err != nil {
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
			// no copy reads the ring or writes what is freed now; the error is the one to tell
			l.queue.Synchronize()
		}
	}()
	for len(data) > 0 {
		s := &l.ring[l.at]
		l.at = (l.at + 1) % pieces
		if err := s.copied.Synchronize(); err != nil {
			return err
		}
		n := min(len(data), pieceBytes)
		if err := readInto(s.memory.Bytes()[:n], data[:n]); err != nil {
			return err
		}
		if err := l.queue.CopyIn(to, s.memory, 0, n); err != nil {
			return err
		}
		if err := s.copied.Record(l.queue); err != nil {
			return err
		}
		data, to = data[n:], to+driver.Pointer(n)
	}
	return l.queue.Synchronize()
}

// readInto copies with several goroutines: a page that is not in memory stops one of them only.
func readInto(dst, src []byte) error {
	const least = 1 << 20
	readers := max(1, min(2*runtime.NumCPU(), len(src)/least))
	share := (len(src) + readers - 1) / readers
	failed := make([]error, readers)
	var all sync.WaitGroup
	for i := range readers {
		at, end := min(i*share, len(src)), min((i+1)*share, len(src))
		all.Go(func() { failed[i] = readMapped(dst[at:end], src[at:end]) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err // the others say the same
		}
	}
	return nil
}

// errUnreadable is a page of a mapping that the system could not bring: a disk's error, or a file
// that somebody has cut off.
var errUnreadable = errors.New("the file of the weights cannot be read: a disk that fails, or " +
	"the file was made shorter while it was in use")

// readMapped copies out of a mapping. A page that is not to be had is a signal to the process,
// which would end it; here it is an error.
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

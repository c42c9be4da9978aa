package device

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Weights on their way from a mapped file to the card: pieces go into pinned memory by several goroutines at once, since reading a mapping waits
// for the disk, and from there to the card while the next piece is read.

const (
	pieceBytes = 16 << 20 // that one copy to the card takes
	pieces     = 4        // in flight
)

// loader is the ring of pinned pieces. It has a queue of its own: loading does not wait for steps.
type loader struct {
	mu     sync.Mutex
	stream *driver.Stream
	ring   [pieces]slot
	at     int
}

// A slot is a pinned piece, and the mark behind the copy that last read it.
type slot struct {
	memory *driver.HostMemory
	copied *driver.Event
}

func (d *Device) newLoader() (_ *loader, err error) {
	l := &loader{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.stream, err = d.ctx.NewStream(); err != nil {
		l.stream = nil
		return nil, err
	}
	for i := range l.ring {
		if l.ring[i].memory, err = d.ctx.AllocHost(pieceBytes); err != nil {
			return nil, err
		}
		if l.ring[i].copied, err = d.ctx.NewEvent(false); err != nil {
			l.ring[i].copied = nil
			return nil, err
		}
	}
	return l, nil
}

func (l *loader) close() error {
	var errs []error
	for _, s := range l.ring {
		if s.memory != nil {
			errs = append(errs, s.memory.Free())
		}
		if s.copied != nil {
			errs = append(errs, s.copied.Close())
		}
	}
	if l.stream != nil {
		errs = append(errs, l.stream.Close())
	}
	return errors.Join(errs...)
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

func (d *Device) load(to driver.Pointer, data []byte) error {
	d.mu.Lock()
	if d.loading == nil {
		l, err := d.newLoader()
		if err != nil {
			d.mu.Unlock()
			return err
		}
		d.loading = l
	}
	l := d.loading
	d.mu.Unlock()

	l.mu.Lock()
	defer l.mu.Unlock()
	for len(data) > 0 {
		s := &l.ring[l.at]
		l.at = (l.at + 1) % pieces
		if err := s.copied.Synchronize(); err != nil {
			return err
		}
		n := min(len(data), pieceBytes)
		d.readInto(s.memory.Bytes()[:n], data[:n])
		if err := l.stream.CopyIn(to, s.memory, 0, n); err != nil {
			return err
		}
		if err := s.copied.Record(l.stream); err != nil {
			return err
		}
		data, to = data[n:], to+driver.Pointer(n)
	}
	return l.stream.Synchronize()
}

// readInto copies with several goroutines: a page that is not in memory stops one of them only.
func (d *Device) readInto(dst, src []byte) {
	const least = 1 << 20
	readers := max(1, min(2*runtime.NumCPU(), len(src)/least))
	share := (len(src) + readers - 1) / readers
	var all sync.WaitGroup
	for at := 0; at < len(src); at += share {
		end := min(at+share, len(src))
		part := func() {
			copy(dst[at:end], src[at:end])
			if d.progress != nil {
				d.progress(int64(end - at))
			}
		}
		if readers == 1 {
			part()
			break
		}
		all.Go(part)
	}
	all.Wait()
}

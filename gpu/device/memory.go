package device

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Regions of device memory. Reads and writes pass through the pinned window, a piece at a time.

type region struct {
	dev     *Device
	address driver.Pointer
	bytes   int64
}

// Alloc makes a zeroed region, aligned to 256 bytes.
func (d *Device) Alloc(bytes int64) (engine.Region, error) {
	r, err := d.zeroed(bytes)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (d *Device) zeroed(bytes int64) (*region, error) {
	r, err := d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	if err := d.wait(func() error { return d.stream.Fill(r.address, 0, bytes) }); err != nil {
		return nil, errors.Join(fmt.Errorf("clear %d bytes: %w", bytes, err), r.Free())
	}
	return r, nil
}

func (d *Device) wait(queue func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(queue(), d.stream.Synchronize())
}

func (d *Device) alloc(bytes int64) (*region, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("allocate %d bytes", bytes)
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	p, err := d.ctx.Alloc(bytes)
	if err != nil {
		d.users.Release()
		return nil, err
	}
	return &region{d, p, bytes}, nil
}

func (r *region) Bytes() int64 { return r.bytes }

func (r *region) check(offset int64, n int) error {
	if r.address == 0 {
		return errors.New("this region has been freed")
	}
	return engine.Inside(offset, n, r.bytes)
}

// Read waits for the running step.
func (r *region) Read(offset int64, dst []byte) error {
	return r.dev.Pass([]engine.Piece{{Region: r, Offset: offset, Host: dst}}, true)
}

// Write waits for the running step.
func (r *region) Write(offset int64, src []byte) error {
	return r.dev.Pass([]engine.Piece{{Region: r, Offset: offset, Host: src}}, false)
}

// Pass moves several pieces, out of the card's memory or into it, with one wait.
func (d *Device) Pass(list []engine.Piece, out bool) error {
	pieces := make([]piece, len(list))
	for i, x := range list {
		r, ok := x.Region.(*region)
		if !ok || r.dev != d {
			return errors.New("a piece does not lie in the memory of this device")
		}
		if err := r.check(x.Offset, len(x.Host)); err != nil {
			return err
		}
		pieces[i] = piece{r.address + driver.Pointer(x.Offset), x.Host}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pass(pieces, out)
}

type piece struct {
	address driver.Pointer
	host    []byte
}

// read copies from the device; the lock is held.
func (d *Device) read(from driver.Pointer, dst []byte) error {
	return d.pass([]piece{{from, dst}}, true)
}

// pass copies pieces through the window, as many at once as fit; the lock is held.
func (d *Device) pass(list []piece, out bool) error {
	var round []piece // adjacent in the window
	used := 0
	flush := func() error {
		if err := d.stream.Synchronize(); err != nil {
			return err
		}
		offset := 0
		for _, x := range round {
			if out {
				copy(x.host, d.staging.Bytes()[offset:])
			}
			offset += len(x.host)
		}
		round, used = round[:0], 0
		return nil
	}
	for _, x := range list {
		for len(x.host) > 0 {
			if used == stagingBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			n := min(len(x.host), stagingBytes-used)
			var err error
			if out {
				err = d.stream.CopyOut(d.staging, used, x.address, n)
			} else {
				copy(d.staging.Bytes()[used:], x.host[:n])
				err = d.stream.CopyIn(x.address, d.staging, used, n)
			}
			if err != nil {
				d.stream.Synchronize() // the window is free again; report the first error
				return err
			}
			round, used = append(round, piece{host: x.host[:n]}), used+n
			x.host, x.address = x.host[n:], x.address+driver.Pointer(n)
		}
	}
	if used == 0 {
		return nil
	}
	return flush()
}

func (r *region) Free() error {
	if r.address == 0 {
		return nil
	}
	address := r.address
	r.address = 0
	r.dev.users.Release()
	return r.dev.ctx.Free(address)
}

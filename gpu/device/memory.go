package device

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Regions of device memory. Reads and writes pass through the pinned window, a piece at a time.

type region struct {
	dev   *Device
	at    driver.Pointer
	bytes int64
}

// Alloc makes a zeroed region, aligned to 256 bytes.
func (d *Device) Alloc(bytes int64) (engine.Region, error) {
	r, err := d.alloc(bytes)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	err = d.stream.Fill(r.at, 0, bytes)
	if err == nil {
		err = d.stream.Synchronize()
	}
	d.mu.Unlock()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("clear %d bytes: %w", bytes, err), r.Free())
	}
	return r, nil
}

// alloc makes a region that holds anything.
func (d *Device) alloc(bytes int64) (*region, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("allocate %d bytes", bytes)
	}
	if err := d.use(1); err != nil {
		return nil, err
	}
	p, err := d.ctx.Alloc(bytes)
	if err != nil {
		d.release()
		return nil, err
	}
	return &region{d, p, bytes}, nil
}

// sharing names memory that all steps of a device use in turn, since they run one after the other.
type sharing string

const (
	logitsMemory  sharing = "logits"
	partialMemory sharing = "partial results of attention"
	arrivedMemory sharing = "counters of blocks" // 0 between kernels
	termsMemory   sharing = "terms of MXFP4"
)

// share gives a step memory of a kind. That of all buckets is the largest one's; a step of another
// engine that needs more gets larger memory, and those before keep theirs.
func (d *Device) share(what sharing, bytes int64) (*sharedRegion, error) {
	d.mu.Lock()
	have := d.shared[what]
	if have != nil && have.bytes >= bytes {
		have.users++
		d.mu.Unlock()
		return have, nil
	}
	d.mu.Unlock()
	r, err := d.Alloc(bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	made := &sharedRegion{region: r.(*region), what: what, users: 1}
	d.shared[what] = made
	return made, nil
}

// sharedRegion is freed by the last of its users.
type sharedRegion struct {
	*region
	what  sharing
	users int // guarded by the device's lock
}

func (r *sharedRegion) leave() error {
	r.dev.mu.Lock()
	r.users--
	last := r.users == 0
	if last && r.dev.shared[r.what] == r {
		delete(r.dev.shared, r.what)
	}
	r.dev.mu.Unlock()
	if !last {
		return nil
	}
	return r.Free()
}

func (d *Device) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
}

func (r *region) Bytes() int64 { return r.bytes }

func (r *region) check(offset int64, n int) error {
	if r.at == 0 {
		return errors.New("this region has been freed")
	}
	if offset < 0 || offset > r.bytes-int64(n) {
		return fmt.Errorf("%d bytes at %d of a region of %d", n, offset, r.bytes)
	}
	return nil
}

// Read waits for the step that runs.
func (r *region) Read(offset int64, dst []byte) error {
	if err := r.check(offset, len(dst)); err != nil {
		return err
	}
	r.dev.mu.Lock()
	defer r.dev.mu.Unlock()
	return r.dev.read(r.at+driver.Pointer(offset), dst)
}

// read copies from the device; the lock is held.
func (d *Device) read(from driver.Pointer, dst []byte) error {
	for len(dst) > 0 {
		n := min(len(dst), windowBytes)
		if err := d.stream.CopyOut(d.window, 0, from, n); err != nil {
			return err
		}
		if err := d.stream.Synchronize(); err != nil {
			return err
		}
		copy(dst, d.window.Bytes()[:n])
		dst, from = dst[n:], from+driver.Pointer(n)
	}
	return nil
}

// Write waits for the step that runs.
func (r *region) Write(offset int64, src []byte) error {
	if err := r.check(offset, len(src)); err != nil {
		return err
	}
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	to := r.at + driver.Pointer(offset)
	for len(src) > 0 {
		n := copy(d.window.Bytes(), src)
		if err := d.stream.CopyIn(to, d.window, 0, n); err != nil {
			return err
		}
		if err := d.stream.Synchronize(); err != nil {
			return err
		}
		src, to = src[n:], to+driver.Pointer(n)
	}
	return nil
}

func (r *region) Free() error {
	if r.at == 0 {
		return nil
	}
	at := r.at
	r.at = 0
	r.dev.release()
	return r.dev.ctx.Free(at)
}

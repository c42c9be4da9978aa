package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/gpu/driver"
)

// Resources that must be given back. What must stay true: if one cannot be made, all those made
// before it are given back.

// resources are one user's resources on a device. After a failure it makes no more.
type resources struct {
	d     *Device
	frees []func() error
	err   error
}

// acquire makes a thing, unless one before it could not be made.
func acquire[T any](h *resources, make func() (T, error), free func(T) error) (_ T) {
	if h.err == nil {
		value, err := make()
		if h.err = err; err == nil {
			h.frees = append(h.frees, func() error { return free(value) })
			return value
		}
	}
	return *new(T)
}

// region makes memory with arbitrary contents; its address is 0 after a failure.
func (h *resources) region(bytes int64) *region { return h.memory(bytes, h.d.alloc) }

func (h *resources) zeroed(bytes int64) *region { return h.memory(bytes, h.d.zeroed) }

func (h *resources) memory(bytes int64, alloc func(int64) (*region, error)) *region {
	r := acquire(h, func() (*region, error) { return alloc(bytes) }, (*region).Free)
	return cmp.Or(r, &region{dev: h.d})
}

func (h *resources) host(n int) *driver.HostMemory {
	return acquire(h, func() (*driver.HostMemory, error) { return h.d.ctx.AllocHost(n) },
		(*driver.HostMemory).Free)
}

func (h *resources) event(timing bool) *driver.Event {
	return acquire(h, func() (*driver.Event, error) { return h.d.ctx.NewEvent(timing) },
		(*driver.Event).Close)
}

func (h *resources) stream() *driver.Stream {
	return acquire(h, h.d.ctx.NewStream, (*driver.Stream).Close)
}

// finish returns the first failure; with an error, all other resources have been given back.
func (h *resources) finish() error {
	if h.err == nil {
		return nil
	}
	return errors.Join(h.err, h.close())
}

// close gives back in reverse order. It may be called more than once.
func (h *resources) close() (err error) {
	for _, free := range slices.Backward(h.frees) {
		err = errors.Join(err, free())
	}
	h.frees = nil
	return err
}

// sharedName names a resource that the steps of a device use in turn. The largest bucket's serves
// all. A step that needs a larger one makes it; earlier steps keep theirs. The last user frees it.
type sharedName string

const (
	stateSharing  sharedName = "the state of a step"
	logitsMemory  sharedName = "logits"
	partialMemory sharedName = "partial results"
	arrivedMemory sharedName = "counters of blocks" // 0 between kernels
	termsMemory   sharedName = "terms of MXFP4"
)

// shared is the base of a resource that steps share.
type shared struct {
	resources
	what  sharedName
	size  int64
	users int // guarded by the device's sharedMu
}

func (s *shared) base() *shared { return s }

type sharer interface{ base() *shared }

// share returns the device's resource, or a new one from make if that is missing or too small.
func share[T sharer](d *Device, what sharedName, size int64,
	make func(shared) (T, error)) (T, error) {
	d.sharedMu.Lock()
	defer d.sharedMu.Unlock()
	if have, ok := d.shared[what].(T); ok && have.base().size >= size {
		have.base().users++
		return have, nil
	}
	value, err := make(shared{resources: resources{d: d}, what: what, size: size, users: 1})
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", what, err)
	}
	d.shared[what] = value
	return value, nil
}

func (s *shared) leave() error {
	s.d.sharedMu.Lock()
	defer s.d.sharedMu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	if have := s.d.shared[s.what]; have != nil && have.base() == s {
		delete(s.d.shared, s.what)
	}
	return s.close()
}

// sharedRegion is memory that steps use in turn.
type sharedRegion struct {
	shared
	*region
}

// shareMemory gives a step zeroed memory of a kind.
func (d *Device) shareMemory(what sharedName, bytes int64) (*sharedRegion, error) {
	return share(d, what, bytes, func(s shared) (*sharedRegion, error) {
		r := s.zeroed(bytes)
		return &sharedRegion{s, r}, s.err
	})
}

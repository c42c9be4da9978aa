package device

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/gpu/driver"
)

// Keeps what must be given back. What must stay true: if one thing cannot be made, everything made
// before it is given back.

// resources is what one user has made on a device. After a failure it makes nothing more.
type resources struct {
	d     *Device
	frees []func() error
	err   error
}

// keep takes what was made.
func keep[T any](h *resources, made T, free func(T) error, err error) (_ T) {
	if err != nil {
		h.err = err
		var none T
		return none
	}
	h.frees = append(h.frees, func() error { return free(made) })
	return made
}

// region makes memory with arbitrary contents; its address is 0 after a failure.
func (h *resources) region(bytes int64) *region {
	if h.err == nil {
		r, err := h.d.alloc(bytes)
		if keep(h, r, (*region).Free, err); err == nil {
			return r
		}
	}
	return &region{dev: h.d}
}

func (h *resources) host(bytes int) *driver.HostMemory {
	if h.err != nil {
		return nil
	}
	m, err := h.d.ctx.AllocHost(bytes)
	return keep(h, m, (*driver.HostMemory).Free, err)
}

func (h *resources) event(timing bool) *driver.Event {
	if h.err != nil {
		return nil
	}
	e, err := h.d.ctx.NewEvent(timing)
	return keep(h, e, (*driver.Event).Close, err)
}

func (h *resources) stream() *driver.Stream {
	if h.err != nil {
		return nil
	}
	s, err := h.d.ctx.NewStream()
	return keep(h, s, (*driver.Stream).Close, err)
}

// made returns the error of what could not be made; with an error, the rest has been given back.
func (h *resources) made() error {
	if h.err == nil {
		return nil
	}
	return errors.Join(h.err, h.close())
}

// close gives back in reverse order. It may be called more than once.
func (h *resources) close() error {
	var errs []error
	for _, free := range slices.Backward(h.frees) {
		errs = append(errs, free())
	}
	h.frees = nil
	return errors.Join(errs...)
}

// sharing names things that the steps of a device use in turn: the largest bucket's serves all. A
// step that needs a larger one makes it, and the steps before keep theirs. The last user frees it.
type sharing string

const (
	stateSharing  sharing = "the state of a step"
	logitsMemory  sharing = "logits"
	partialMemory sharing = "partial results of attention"
	arrivedMemory sharing = "counters of blocks" // 0 between kernels
	termsMemory   sharing = "terms of MXFP4"
)

// shared is one thing that steps share.
type shared struct {
	resources
	what  sharing
	size  int64
	users int // guarded by the device's lock for sharing
}

func (s *shared) of() *shared { return s }

type sharer interface{ of() *shared }

// share gives a step the device's, or a new one of this size from make.
func share[T sharer](d *Device, what sharing, size int64,
	make func(shared) (T, error)) (T, error) {
	d.sharing.Lock()
	defer d.sharing.Unlock()
	if have, ok := d.shared[what].(T); ok && have.of().size >= size {
		have.of().users++
		return have, nil
	}
	made, err := make(shared{resources: resources{d: d}, what: what, size: size, users: 1})
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", what, err)
	}
	d.shared[what] = made
	return made, nil
}

// leave ends one use of it.
func (s *shared) leave() error {
	s.d.sharing.Lock()
	defer s.d.sharing.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	if have := s.d.shared[s.what]; have != nil && have.of() == s {
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
func (d *Device) shareMemory(what sharing, bytes int64) (*sharedRegion, error) {
	return share(d, what, bytes, func(s shared) (*sharedRegion, error) {
		r, err := d.zeroed(bytes)
		keep(&s.resources, r, (*region).Free, err)
		return &sharedRegion{s, r}, err
	})
}

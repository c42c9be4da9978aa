package device

import (
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// Single launches and copies on memory of their own, run for their time or for their result.

// upload makes memory that begins with data; 0 after a failure.
func (h *holding) upload(data []byte) kernels.Pointer {
	r := h.region(int64(len(data)))
	if h.err == nil {
		h.err = r.Write(0, data)
	}
	return r.at
}

// fastest is the shortest of some rounds by the card's own clock; the host's clock would include
// the way there and back. A round that takes a tenth of a second is not repeated.
func (h *holding) fastest(rounds int,
	queue func(*driver.Stream) error) (best time.Duration, err error) {
	from, to := h.event(true), h.event(true)
	if h.err != nil {
		return 0, h.err
	}
	for range rounds {
		if err := h.d.wait(func() error {
			s := h.d.stream
			for _, step := range []func() error{func() error { return from.Record(s) },
				func() error { return queue(s) }, func() error { return to.Record(s) }} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return 0, err
		}
		took, err := to.Since(from)
		if err != nil {
			return 0, err
		}
		if best == 0 || took < best {
			best = took
		}
		if took > 100*time.Millisecond {
			break
		}
	}
	return best, nil
}

// time is the fastest of three rounds of a launch.
func (h *holding) time(l kernels.Launch) (time.Duration, error) {
	if h.err != nil {
		return 0, h.err
	}
	one, err := h.d.ready(l)
	if err != nil {
		return 0, err
	}
	return h.fastest(3, one.queue)
}

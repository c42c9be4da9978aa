package device

import (
	"errors"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
)

// Time by the card's own clock, for what is measured on it: the host's would count the way there
// and back.

// clock times work by the card's own clock: what is queued between two events on the device's
// stream.
type clock struct {
	d        *Device
	from, to *driver.Event
}

func (d *Device) newClock() (c *clock, err error) {
	c = &clock{d: d}
	if c.from, err = d.ctx.NewEvent(true); err != nil {
		return nil, err
	}
	if c.to, err = d.ctx.NewEvent(true); err != nil {
		return nil, errors.Join(err, c.from.Close())
	}
	return c, nil
}

func (c *clock) close() error { return errors.Join(c.from.Close(), c.to.Close()) }

// time waits for what queue queues and tells how long it took. The device's stream is this call's
// alone.
func (c *clock) time(queue func(*driver.Stream) error) (time.Duration, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	s := c.d.stream
	for _, step := range []func() error{
		func() error { return c.from.Record(s) }, func() error { return queue(s) },
		func() error { return c.to.Record(s) }, s.Synchronize,
	} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return c.to.Since(c.from)
}

// best is the shortest of some rounds; one that takes a tenth of a second needs no second look.
func (c *clock) best(rounds int, queue func(*driver.Stream) error) (best time.Duration, err error) {
	for range rounds {
		took, err := c.time(queue)
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

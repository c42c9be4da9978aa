package device

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A card that has a part of a model (package gpu/multi): several programs that one step runs in
// turn, and bytes that come from other devices between them.

// CompileChain compiles programs that share the state of a step, which the first of them sends. It
// must be the first that runs in each step, and the last to be closed. With an error it gives none.
func (d *Device) CompileChain(list []*engine.Program) (steps []engine.Step, err error) {
	defer func() {
		if err != nil {
			for _, s := range steps {
				err = errors.Join(err, s.Close())
			}
			steps = nil
		}
	}()
	var lead *step
	for _, p := range list {
		s, err := d.compile(&step{p: p, lead: lead})
		if err != nil {
			return steps, err
		}
		lead = cmp.Or(lead, s)
		steps = append(steps, s)
	}
	return steps, nil
}

// Start queues a batch and returns at once. What the device is asked for next comes behind it.
func (s *step) Start(b *engine.Batch) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.closed() {
		return engine.ErrClosed
	}
	return s.settled(s.queue(b, nil))
}

// Finish waits for everything that is queued.
func (s *step) Finish() error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.closed() {
		return engine.ErrClosed
	}
	if err := s.dev.stream.Synchronize(); err != nil {
		return fmt.Errorf("run the step: %w", err)
	}
	return nil
}

// Take copies bytes out of another card's memory, by the driver that both share and without the
// host; false where there is none. It comes behind what the other card has been asked for, and
// before what this one is asked for next. The other one must be left alone until then.
func (d *Device) Take(to engine.Region, at int64, from engine.Region, fromAt, bytes int64) (bool,
	error) {
	mine, ok1 := to.(*region)
	theirs, ok2 := from.(*region)
	if !ok1 || !ok2 || mine.dev != d || theirs.dev == d || !d.ctx.SameDriver(theirs.dev.ctx) {
		return false, nil
	}
	if err := errors.Join(mine.check(at, int(bytes)),
		theirs.check(fromAt, int(bytes))); err != nil {
		return false, err
	}
	ended, err := theirs.dev.mark()
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err = d.stream.Wait(ended); err == nil {
		err = d.stream.CopyPeer(mine.at+driver.Pointer(at), theirs.dev.ctx, theirs.at+
			driver.Pointer(fromAt), bytes)
	}
	return err == nil, err
}

// mark puts the device's mark behind all that it has been asked for.
func (d *Device) mark() (*driver.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended, d.ended.Record(d.stream)
}

// Refill writes while steps run, by the queue that loads weights: no step may be reading what is
// written.
func (r *region) Refill(offset int64, data []byte) error {
	if err := r.check(offset, len(data)); err != nil {
		return err
	}
	return r.dev.load(r.at+driver.Pointer(offset), data)
}

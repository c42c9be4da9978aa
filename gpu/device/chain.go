package device

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A part of a model (gpu/multi): a step runs several programs, between which other devices run.

// CompileChain compiles programs that share the state of a step. The first one sends it, so it runs
// first in each step and is closed last. With an error it returns no steps.
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

// Start queues a batch and returns at once. The device runs later requests after it.
func (s *step) Start(b *engine.Batch) error {
	return s.locked(func() error { return s.queue(b, nil, s.launchGraph) })
}

// Finish waits for everything that is queued.
func (s *step) Finish() error {
	return s.locked(func() error {
		if err := s.dev.stream.Synchronize(); err != nil {
			return fmt.Errorf("run the step: %w", err)
		}
		return nil
	})
}

// Take copies bytes from another card's memory without the host; false if their drivers differ. It
// runs after the other card's queued work and before this one's next. Until then the other card
// must get no new work.
func (d *Device) Take(to engine.Region, offset int64, from engine.Region, fromAt,
	bytes int64) (bool, error) {
	mine, ok1 := to.(*region)
	theirs, ok2 := from.(*region)
	if !ok1 || !ok2 || mine.dev != d || theirs.dev == d || !d.ctx.SameDriver(theirs.dev.ctx) {
		return false, nil
	}
	if err := errors.Join(mine.check(offset, int(bytes)),
		theirs.check(fromAt, int(bytes))); err != nil {
		return false, err
	}
	event, err := theirs.dev.mark()
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err = d.stream.Wait(event); err == nil {
		err = d.stream.CopyPeer(mine.address+driver.Pointer(offset), theirs.dev.ctx, theirs.address+
			driver.Pointer(fromAt), bytes)
	}
	return err == nil, err
}

// mark records the device's event after all its queued work.
func (d *Device) mark() (*driver.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.endEvent, d.endEvent.Record(d.stream)
}

// Refill writes while steps run, through the queue that loads weights: no step may be reading those
// bytes.
func (r *region) Refill(offset int64, data []byte) error {
	if err := r.check(offset, len(data)); err != nil {
		return err
	}
	return r.dev.load(r.address+driver.Pointer(offset), data)
}

package device

import (
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
		if p.Settings.ISA != "" {
			return steps, fmt.Errorf("instruction set %q is the CPU's: a GPU has one",
				p.Settings.ISA)
		}
		s, err := d.compileBehind(lead, p)
		if err != nil {
			return steps, err
		}
		if lead == nil {
			lead = s
		}
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
func (d *Device) mark() (_ *driver.Event, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		if d.ended, err = d.ctx.NewEvent(false); err != nil {
			d.ended = nil
			return nil, err
		}
	}
	return d.ended, d.ended.Record(d.stream)
}

// unmark frees the mark.
func (d *Device) unmark() error {
	if d.ended == nil {
		return nil
	}
	err := d.ended.Close()
	d.ended = nil
	return err
}

// ReadPieces reads several pieces with one wait.
func (d *Device) ReadPieces(list []engine.Piece) error {
	return d.through(list, func(r *region, x engine.Piece, at int) error {
		return d.stream.CopyOut(d.window, at, r.at+driver.Pointer(x.Offset), len(x.Host))
	}, func(at int, x engine.Piece) { copy(x.Host, d.window.Bytes()[at:]) }, nil)
}

// WritePieces writes several pieces with one wait.
func (d *Device) WritePieces(list []engine.Piece) error {
	return d.through(list, func(r *region, x engine.Piece, at int) error {
		return d.stream.CopyIn(r.at+driver.Pointer(x.Offset), d.window, at, len(x.Host))
	}, nil, func(at int, x engine.Piece) { copy(d.window.Bytes()[at:], x.Host) })
}

// through passes pieces through the window, as many at once as it has room for: before is done when
// a piece's part of the window may be written, after when its copy has ended.
func (d *Device) through(list []engine.Piece, queue func(*region, engine.Piece, int) error, after,
	before func(int, engine.Piece)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	used := 0
	var round []engine.Piece
	var places []int
	flush := func() error {
		if len(round) == 0 {
			return nil
		}
		if err := d.stream.Synchronize(); err != nil {
			return err
		}
		for i, x := range round {
			if after != nil {
				after(places[i], x)
			}
		}
		round, places, used = round[:0], places[:0], 0
		return nil
	}
	for _, x := range list {
		r, ok := x.Region.(*region)
		if !ok || r.dev != d {
			return errors.New("a piece does not lie in the memory of this device")
		}
		if err := r.check(x.Offset, len(x.Host)); err != nil {
			return err
		}
		for len(x.Host) > 0 {
			if used == windowBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			part := x
			part.Host = x.Host[:min(len(x.Host), windowBytes-used)]
			if before != nil {
				before(used, part)
			}
			if err := queue(r, part, used); err != nil {
				d.stream.Synchronize() // the window is free again; the error is the one to tell
				return err
			}
			round, places = append(round, part), append(places, used)
			used += len(part.Host)
			x.Host, x.Offset = x.Host[len(part.Host):], x.Offset+int64(len(part.Host))
		}
	}
	return flush()
}

// Refill writes beside the steps, by the queue that loads weights: no step may be reading what is
// written.
func (r *region) Refill(offset int64, data []byte) error {
	if err := r.check(offset, len(data)); err != nil {
		return err
	}
	return r.dev.load(r.at+driver.Pointer(offset), data)
}

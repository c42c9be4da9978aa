package device

import (
	"cmp"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// A decode step as one launch: the phases of its graph are a table in device memory, run by blocks
// that meet at a barrier after each (gpu/kernels/decode_step.cu). It computes what the graph
// computes, bit for bit.
//
// What must stay true: all blocks are on the card at once. The driver says how many fit; nothing
// else of ours runs meanwhile.

// DecodeKernel is how steps of few rows are launched.
type DecodeKernel string

const (
	// a graph of one kernel a phase; the default: on an H100 the other takes 1.2 times as long
	DecodeGraph DecodeKernel = "graph"
	// one cooperative launch, where every phase of the step has a variant for it
	DecodePersistent DecodeKernel = "persistent"
)

// ParseDecodeKernel reads a choice; "" is the default.
func ParseDecodeKernel(s string) (DecodeKernel, error) {
	k := cmp.Or(DecodeKernel(s), DecodeGraph)
	if k == DecodeGraph || k == DecodePersistent {
		return k, nil
	}
	return "", fmt.Errorf("decode kernel %q: %s or %s", s, DecodeGraph, DecodePersistent)
}

// UseDecodeKernel chooses for the steps that are compiled from now on.
func (d *Device) UseDecodeKernel(k DecodeKernel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decodeKernel = k
}

// DecodeKernel is what was chosen.
func (d *Device) DecodeKernel() DecodeKernel {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decodeKernel
}

// makePersistent prepares the one launch, unless the step has too many rows or a phase that cannot
// be in it, or such launches were found wrong on this card.
func (s *step) makePersistent() error {
	d := s.dev
	if d.DecodeKernel() != DecodePersistent || s.p.Rows > kernels.StepRows ||
		!d.enabled(DecodeStep) {
		return nil
	}
	var launches []kernels.Launch
	for _, ph := range s.phases {
		launches = append(launches, ph.launches...)
	}
	whole, err := kernels.NewStep(launches)
	if err != nil {
		s.notWhole = err.Error()
		return nil // the step uses its graph
	}
	f, err := d.function(whole.Kernel())
	if err != nil {
		return err
	}
	if shared := whole.Shared(); shared > unasked {
		if err := f.AllowShared(int(shared)); err != nil {
			return err
		}
	}
	each, err := f.Resident(whole.Threads(), whole.Shared())
	if err != nil {
		return err
	}
	units, err := d.ctx.Device().Attribute(driver.Multiprocessors)
	if err != nil || each*units == 0 {
		s.notWhole = "no block of the launch fits on a multiprocessor"
		return err
	}
	blocks := whole.Blocks(each * units)
	table := whole.Table(blocks)
	const line = 128
	records := (int64(len(table)) + line - 1) / line * line
	// the records, then the barrier's state, which must be zero at first
	r := s.zeroed(records + d.target.BarrierBytes(blocks))
	if s.err != nil {
		return s.err
	}
	if err := r.Write(0, table); err != nil {
		return err
	}
	l, err := d.ready(whole.Launch(d.target, r.at, r.at+kernels.Pointer(records), blocks))
	s.whole = &l
	return err
}

// Notify gives the lines about what was asked for and is not run to notify, each line once.
func (d *Device) Notify(notify func(line string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notify = notify
}

// report says why a model's step is a graph although one launch was asked for.
func (s *step) report() {
	if s.notWhole == "" {
		return
	}
	d, line := s.dev, fmt.Sprintf("%s=%s: steps of this model are launched as graphs: %s",
		decodeKernel, DecodePersistent, s.notWhole)
	d.mu.Lock()
	notify := d.notify
	if d.reported[line] {
		notify = nil
	}
	d.reported[line] = true
	d.mu.Unlock()
	if notify != nil {
		notify(line)
	}
}

// queueWhole queues the one launch.
func (s *step) queueWhole() error {
	return s.dev.stream.LaunchCooperative(s.whole.function, s.whole.Shape, s.whole.words)
}

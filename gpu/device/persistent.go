package device

import (
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// A decode step as one launch: the phases of its graph as a table in device memory, run by blocks
// that meet at a barrier behind each (gpu/kernels/decode_step.cu). It computes what the graph
// computes, bit for bit.
//
// What must stay true: all blocks are on the card at once. The driver says how many that are and
// refuses a launch of more; nothing else of ours runs beside it, since steps run one after the
// other on one stream.

// DecodeKernel is how steps of few rows are launched.
type DecodeKernel string

const (
	// a graph of one kernel a phase; the default: no card has measured the other yet
	DecodeGraph DecodeKernel = "graph"
	// one cooperative launch, where every phase of the step has a variant for it
	DecodePersistent DecodeKernel = "persistent"
)

// ParseDecodeKernel reads a choice; "" is the default.
func ParseDecodeKernel(s string) (DecodeKernel, error) {
	switch k := DecodeKernel(s); k {
	case "":
		return DecodeGraph, nil
	case DecodeGraph, DecodePersistent:
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
	if d.decodeKernel == "" {
		return DecodeGraph
	}
	return d.decodeKernel
}

// persistent is a step's one launch.
type persistent struct {
	memory *region // the records, then the barrier's state
	launch launch
}

// makePersistent prepares the launch; nil where the step is not one of few rows, or has a phase
// that it cannot have, or where such launches were found wrong on this card.
func (s *step) makePersistent() (_ *persistent, err error) {
	d := s.dev
	if d.DecodeKernel() != DecodePersistent || s.p.Rows > kernels.StepRows ||
		!d.enabled(DecodeStep) {
		return nil, nil
	}
	var launches []kernels.Launch
	for _, ph := range s.phases {
		launches = append(launches, ph.launches...)
	}
	whole, err := kernels.NewStep(launches)
	if err != nil {
		return nil, nil // the graph it is
	}
	f, err := d.function(whole.Kernel())
	if err != nil {
		return nil, err
	}
	if shared := whole.Shared(); shared > unasked {
		if err := f.AllowShared(int(shared)); err != nil {
			return nil, err
		}
	}
	each, err := f.Resident(whole.Threads(), whole.Shared())
	if err != nil {
		return nil, err
	}
	units, err := d.ctx.Device().Attribute(driver.Multiprocessors)
	if err != nil {
		return nil, err
	}
	if each*units == 0 {
		return nil, nil
	}
	blocks := whole.Blocks(each * units)
	table, err := whole.Table(blocks)
	if err != nil {
		return nil, err
	}
	const line = 128
	records := (int64(len(table)) + line - 1) / line * line
	// zeroed, as the barrier's state must be
	r, err := d.Alloc(records + d.target.BarrierBytes(blocks))
	if err != nil {
		return nil, err
	}
	made := &persistent{memory: r.(*region)}
	if err := made.memory.Write(0, table); err != nil {
		return made, err
	}
	at := kernels.Pointer(made.memory.at)
	l := whole.Launch(d.target, at, at+kernels.Pointer(records), blocks)
	made.launch, err = (&recorder{dev: d}).ready(l)
	return made, err
}

// queue launches the step.
func (p *persistent) queue(s *driver.Stream) error {
	return s.LaunchCooperative(p.launch.function, p.launch.shape, p.launch.args)
}

func (p *persistent) free() error { return p.memory.Free() }

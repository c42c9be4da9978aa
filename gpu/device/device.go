// Package device runs Programs on a GPU: engine.Device over the vendor's driver.
//
// A program becomes a list of launches with fixed arguments, recorded once as a graph. Values that
// differ from step to step (number of rows, tokens, positions, block tables) are copied to device
// memory before the graph runs (state.go), so one graph serves every step of a bucket. What must
// stay true:
//   - A step costs a copy in, a graph launch and a copy out, and allocates nothing.
//   - After any error of the driver all resources are given back; the error names the failed call.
//   - Memory is the driver's: no Go pointer outlives a call.
package device

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Device is one GPU. Steps of all engines on it run one after the other.
type Device struct {
	ctx     *driver.Context
	arch    string
	target  kernels.Target
	kernels *modules

	res      resources
	stream   *driver.Stream // of steps and of reads and writes
	staging  *driver.HostMemory
	endEvent *driver.Event // for devices that take this one's results

	reference bool      // only the reference kernels
	forced    []Variant // that are used wherever they can be
	overlaps  bool      // kernels may begin before the one in front of them has ended

	mu       sync.Mutex // held while work is queued and waited for
	loading  *loader
	disabled map[Variant]bool
	timings  []Timing // of the ways that the card was asked for
	users    engine.Users

	sharedMu   sync.Mutex // held while shared changes; locked before mu
	shared     map[sharedName]sharer
	functionMu sync.Mutex // held while a kernel is looked up; locked after mu
}

var _ engine.Device = (*Device)(nil)

type Options struct {
	Index int // which of the driver's devices
	// the architecture, if the driver does not know it; "": the driver's
	Arch string

	// Reference runs the reference kernels alone, with which the others are compared.
	Reference bool
}

// stagingBytes is the pinned memory through which reads, writes and results pass.
const stagingBytes = 4 << 20

// Open takes a device of an opened driver into use. The driver must stay open until Close.
func Open(d *driver.Driver, o Options) (*Device, error) {
	g, err := Describe(d, o.Index)
	if err != nil {
		return nil, err
	}
	dev := &Device{arch: cmp.Or(o.Arch, g.Arch), reference: o.Reference,
		shared: map[sharedName]sharer{}, disabled: map[Variant]bool{}}
	version, failed := d.Version()
	if dev.forced, dev.overlaps, err = readForced(); cmp.Or(err, failed) != nil {
		return nil, cmp.Or(err, failed)
	}
	dev.overlaps = dev.overlaps && version >= 12030
	if err := dev.open(g); err != nil {
		return nil, fmt.Errorf("%s: %w", g.Name, err)
	}
	return dev, nil
}

func (d *Device) open(g *driver.Device) (err error) {
	arch, err := kernels.ArchFor(d.arch)
	if err != nil {
		return err
	}
	if d.target.Warp, err = g.Attribute(driver.WarpSize); err != nil {
		return err
	}
	if d.target.Processors, err = g.Attribute(driver.Multiprocessors); err != nil {
		return err
	}
	if d.ctx, err = g.Open(); err != nil {
		return err
	}
	d.res.d = d
	if d.kernels, err = loadModules(d.ctx, d.arch, arch); err != nil {
		return errors.Join(fmt.Errorf("load the kernels for %s: %w", d.arch, err), d.shut())
	}
	d.overlaps = d.overlaps && d.kernels.arch.Overlaps()
	d.target.Unit, d.target.Shared = d.kernels.arch.Unit, kernels.SharedOf(d.arch)
	d.stream, d.staging, d.endEvent = d.res.stream(), d.res.host(stagingBytes), d.res.event(false)
	if d.res.err != nil {
		return errors.Join(d.res.err, d.shut())
	}
	return nil
}

func (d *Device) function(name string) (*driver.Function, error) {
	d.functionMu.Lock()
	defer d.functionMu.Unlock()
	return d.kernels.function(name)
}

// Name is the device's name in doctor's report.
func (d *Device) Name() string {
	g := d.ctx.Device()
	return fmt.Sprintf("gpu %d, %s, %s", g.Index, g.Name, d.arch)
}

// Model is the kind of card: name and architecture, without its number.
func (d *Device) Model() string { return fmt.Sprintf("%s, %s", d.ctx.Device().Name, d.arch) }

func (d *Device) Unit() kernels.Unit { return d.target.Unit }

func (d *Device) Title() string { return d.ctx.Device().Name }

// Available is how much of a driver's free bytes may go to weights, cache, scratch and Extra. The
// remainder is for kernels, graphs and the driver itself.
func Available(total, free int64) int64 { return max(free-min(total/16, 768<<20), 0) }

// Memory gives the card's memory, and how much of it is free for weights, cache and scratch.
func (d *Device) Memory() (total, free int64) {
	total, free, err := d.ctx.Memory()
	if err != nil {
		return d.ctx.Device().Memory, 0
	}
	return total, Available(total, free)
}

// ComputeUnits is the number of the card's SMs or CUs; for a partition, its own.
func (d *Device) ComputeUnits() int { return d.ctx.Device().Units(d.target.Processors) }

// Integrated tells whether the card's memory is the host's; false if the driver does not answer.
func (d *Device) Integrated() bool {
	is, err := d.ctx.Device().Attribute(driver.Integrated)
	return err == nil && is != 0
}

// Caps allows MXFP4 on both sides of a product only on cards whose unit multiplies it.
func (d *Device) Caps() engine.Caps {
	modes := []string{engine.Exact, engine.Rounded, engine.Int8}
	if d.target.Unit == kernels.MX {
		modes = append(modes, engine.MX)
	}
	return engine.Caps{Computes: modes, DenseQ8: true, FP8KV: true,
		Samples: d.enabled(Sampling), Alike: kernels.DecodeRows, Discrete: true, Arch: d.arch}
}

func (d *Device) Close() error {
	return d.users.Close(d.Title(), func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.shut()
	})
}

// shut frees the resources of open and of the first upload, complete or not.
func (d *Device) shut() (err error) {
	if d.loading != nil {
		err = d.loading.close()
	}
	err = errors.Join(err, d.res.close())
	if d.kernels != nil {
		err = errors.Join(err, d.kernels.close())
	}
	return errors.Join(err, d.ctx.Close())
}

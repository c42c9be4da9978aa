package multi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// From a program to the segments' programs, each compiled by the device that runs it.

type part struct {
	segment
	step   engine.Step
	bring  []transfer
	load   int  // of the step's loads; -1: none
	tables bool // it reads or writes the cache
}

type transfer struct {
	buffer   *engine.Buffer
	from, to bufferPlace
}

type bufferPlace struct {
	device int
	region engine.Region
	offset int64
}

// chainer is a device that compiles programs of one step, which share its state. The first runs
// first.
type chainer interface {
	CompileChain(list []*engine.Program) ([]engine.Step, error)
}

// Compile cuts a program. One in memory of Alloc and Upload runs whole on the first card.
func (d *Device) Compile(p *engine.Program) (engine.Step, error) {
	c := compiler{d: d, p: p}
	if !c.find() {
		return d.devices[0].Compile(p)
	}
	if err := d.suits(p.Spec); err != nil {
		return nil, err
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	s := &step{dev: d, p: p, pool: c.pool}
	if err := c.compile(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	last := s.parts[len(s.parts)-1].step
	if sampling, ok := last.(engine.SamplingStep); ok && p.Buffer("logits") != nil {
		return &samplingStep{s, sampling}, nil
	}
	return s, nil
}

// compiler has what the segments of one program share.
type compiler struct {
	d       *Device
	p       *engine.Program
	pool    *cache
	arena   *arena
	offsets []map[*engine.Buffer]int64
	turns   map[int]int // streamed layers seen so far, by card
}

// find looks up the memory that AllocFor gave.
func (c *compiler) find() bool {
	for _, b := range c.p.Buffers {
		switch r := b.Region.(type) {
		case *cache:
			c.pool = r
		case *arena:
			c.arena = r
		}
	}
	return c.pool != nil && c.arena != nil
}

func (c *compiler) compile(s *step) error {
	d, p := c.d, c.p
	if c.pool.dev != d || c.pool.parts == nil || c.arena.dev != d || c.arena.parts == nil {
		return errors.New("the program's memory is not that of these devices")
	}
	places := d.places(p, d.streams != nil && len(d.hosted) > 0 && d.streams(p.Rows))
	list, err := cut(p, places)
	if err != nil {
		return err
	}
	c.offsets, _ = arrange(p, places, len(d.devices))
	c.turns = map[int]int{}
	programs := make([][]*engine.Program, len(d.devices))
	partsOf := make([][]int, len(d.devices)) // the parts of each device
	last := map[engine.Region]int{}          // by staging area: the load that had it last
	for i, st := range list {
		program, load, err := c.program(st)
		if err != nil {
			return err
		}
		x := part{segment: st, load: -1, tables: slices.ContainsFunc(program.Buffers,
			func(b *engine.Buffer) bool { return b.Home == engine.Cache })}
		if load != nil {
			if prev, ok := last[load.area]; ok {
				load.prev = prev
			}
			x.load = len(s.loads)
			last[load.area], s.loads = x.load, append(s.loads, load)
		}
		for _, b := range st.bring {
			x.bring = append(x.bring, transfer{b.buffer, c.place(b.from, b.buffer),
				c.place(st.device, b.buffer)})
		}
		s.parts = append(s.parts, x)
		programs[st.device] = append(programs[st.device], program)
		partsOf[st.device] = append(partsOf[st.device], i)
	}
	for dev, list := range programs {
		steps, err := compileAll(d.devices[dev], list)
		for i, compiled := range steps {
			s.parts[partsOf[dev][i]].step = compiled
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.devices[dev].Name(), err)
		}
	}
	return nil
}

// compileAll compiles the segments of a device. With an error it still returns those it made.
func compileAll(dev engine.Device, list []*engine.Program) (steps []engine.Step, err error) {
	if c, ok := dev.(chainer); ok && len(list) > 1 {
		return c.CompileChain(list)
	}
	for _, p := range list {
		s, err := dev.Compile(p)
		if err != nil {
			return steps, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (c *compiler) place(dev int, b *engine.Buffer) bufferPlace {
	return bufferPlace{dev, c.arena.parts[dev], c.offsets[dev][b]}
}

// program copies a segment's operations for its device, and returns the load that must end first.
func (c *compiler) program(st segment) (*engine.Program, *load, error) {
	o := c.p.Settings
	if c.d.devices[st.device].Caps().Discrete {
		o.ISA, o.Threads = "", 0 // the host's
	}
	if st.device == c.d.host() && rounds(o.Compute) && !c.d.hostHas(o.Compute) {
		o.Compute = engine.Exact // the operations are the same
	}
	program := &engine.Program{Spec: c.p.Spec, Settings: o, Rows: c.p.Rows}
	var l *load
	if st.streams >= 0 {
		l = &load{area: c.arena.staging[st.device][c.turns[st.device]%stagingAreas], prev: -1}
		c.turns[st.device]++
	}
	var filled int64
	clones := map[*engine.Buffer]*engine.Buffer{nil: nil}
	var failed error
	copies := func(list []*engine.Buffer) (copied []*engine.Buffer) {
		for _, b := range list {
			clone, ok := clones[b]
			if !ok {
				var err error
				if clone, err = c.clone(st.device, b); err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				if w, ok := b.Region.(*weight); ok && clone.Region == nil && l != nil { // streamed
					clone.Region, clone.Offset = l.area, filled
					l.parts = append(l.parts, engine.Piece{Region: l.area, Offset: filled,
						Host: w.data})
					filled += (w.bytes + stagingAlign - 1) / stagingAlign * stagingAlign
				}
				clones[b] = clone
				program.Buffers = append(program.Buffers, clone)
			}
			copied = append(copied, clone)
		}
		return copied
	}
	for _, op := range c.p.Ops[st.from:st.to] {
		x := *op
		x.Out, x.In, x.W = copies(op.Out), copies(op.In), copies(op.W)
		if failed != nil {
			return nil, nil, fmt.Errorf("%s: %w", op.Label, failed)
		}
		switch op.Kind {
		case engine.WriteKV, engine.Attend:
			x.CacheLayer, x.Twin = c.d.layersOf(st.device, c.p.Spec, o.KVCacheDtype).Place(op.Layer)
		case engine.Tap: // to be read when the step has ended
			op.Out[0].Region, op.Out[0].Offset = x.Out[0].Region, x.Out[0].Offset
		}
		program.Ops = append(program.Ops, &x)
	}
	for _, b := range st.keep {
		if clone := clones[b]; clone != nil {
			program.Keep = append(program.Keep, clone)
		}
	}
	return program, l, program.Check()
}

// clone is a device's copy of a buffer, without a region for a weight to be streamed.
func (c *compiler) clone(dev int, b *engine.Buffer) (*engine.Buffer, error) {
	x := *b
	switch b.Home {
	case engine.Scratch:
		x.Region, x.Offset = c.arena.parts[dev], c.offsets[dev][b]
	case engine.Weight:
		w, ok := b.Region.(*weight)
		if !ok || w.dev != c.d || w.parts == nil {
			return nil, fmt.Errorf("%s does not lie in the memory of these devices", b.Name)
		}
		if x.Region = w.parts[dev]; x.Region == nil && w.data == nil {
			return nil, fmt.Errorf("%s is on another device", b.Name)
		}
	case engine.Cache:
		x.Region, x.Offset = c.pool.parts[dev], 0
		x.Width = int(c.pool.pageByCard[dev] / b.Type.Size())
	}
	return &x, nil
}

package multi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Weights and scratch over several devices: each has only the tensors that it reads.

// memory is regions of several devices that are one to the engine.
type memory struct {
	dev   *Device
	parts []engine.Region // by device, may be nil; then the staging areas
	bytes int64
}

func (d *Device) memory(bytes int64) memory {
	return memory{d, make([]engine.Region, len(d.devices)), bytes}
}

func (m *memory) Bytes() int64 { return m.bytes }

// Free frees the parts that exist.
func (m *memory) Free() (err error) {
	if m.parts == nil {
		return nil
	}
	for _, r := range m.parts {
		if r != nil {
			err = errors.Join(err, r.Free())
		}
	}
	m.parts = nil
	m.dev.users.Release()
	return err
}

type weight struct {
	memory
	data []byte // the host's, if the tensor may be streamed; else nil
}

// UploadFor gives a weight to the devices that read it; the host's experts are not copied.
func (d *Device) UploadFor(p *engine.Program, b *engine.Buffer, data []byte) (engine.Region,
	error) {
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	w := &weight{memory: d.memory(int64(len(data)))}
	for i, target := range d.places(p, false) {
		if w.parts[target.device] != nil || !slices.Contains(p.Ops[i].W, b) {
			continue
		}
		var err error
		if w.parts[target.device], err = d.devices[target.device].Upload(data); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", d.devices[target.device].Name(), err),
				w.Free())
		}
		if target.device == d.host() {
			w.data = data
		}
	}
	return w, nil
}

// Read reads the copy of the first device that has one.
func (w *weight) Read(offset int64, dst []byte) error {
	for _, r := range w.parts {
		if r != nil {
			return r.Read(offset, dst)
		}
	}
	return errors.New("no device has this weight")
}

func (w *weight) Write(offset int64, src []byte) (err error) {
	for _, r := range w.parts {
		if r != nil {
			err = errors.Join(err, r.Write(offset, src))
		}
	}
	return err
}

// arena is the scratch of all devices, and the areas through which experts are streamed.
type arena struct {
	memory
	staging [][]engine.Region // by device: areas, see stage.go
}

// newArena makes room for p and so for every smaller program, whether the host computes the experts
// of hosted layers or they are streamed.
func (d *Device) newArena(p *engine.Program) (_ engine.Region, err error) {
	a := &arena{d.memory(0), make([][]engine.Region, len(d.devices))}
	alloc := func(dev int, bytes int64) engine.Region {
		if bytes == 0 || err != nil {
			return nil
		}
		var r engine.Region
		if r, err = d.devices[dev].Alloc(bytes); err != nil {
			return nil
		}
		a.bytes += bytes
		return r
	}
	for i, bytes := range d.arenas(p) {
		a.parts[i] = alloc(i, bytes)
	}
	if d.streamsUpTo(p.Rows) {
		for i, bytes := range d.stagingBytes(p) {
			for range stagingAreas {
				a.staging[i] = append(a.staging[i], alloc(i, bytes))
			}
			a.parts = append(a.parts, a.staging[i]...)
		}
	}
	if err != nil {
		return nil, errors.Join(err, a.Free())
	}
	return a, nil
}

// arenas is the scratch that p needs on each device.
func (d *Device) arenas(p *engine.Program) []int64 {
	most := make([]int64, len(d.devices))
	ways := []bool{false}
	if d.streamsUpTo(p.Rows) {
		ways = append(ways, true)
	}
	for _, streamed := range ways {
		_, sizes := arrange(p, d.places(p, streamed), len(d.devices))
		for i, n := range sizes {
			most[i] = max(most[i], n)
		}
	}
	return most
}

// align is the alignment of buffers, as in engine.Program.Layout.
const align = 64

// arrange gives every buffer its offset on each device that uses it, and the arenas' sizes.
func arrange(p *engine.Program, places []place, devices int) (offsets []map[*engine.Buffer]int64,
	sizes []int64) {
	offsets, sizes = make([]map[*engine.Buffer]int64, devices), make([]int64, devices)
	for i := range offsets {
		offsets[i] = map[*engine.Buffer]int64{}
	}
	for i, op := range p.Ops {
		dev := places[i].device
		for _, list := range [][]*engine.Buffer{op.Out, op.In} {
			for _, b := range list {
				if b.Home != engine.Scratch {
					continue
				}
				if _, ok := offsets[dev][b]; !ok {
					offsets[dev][b] = sizes[dev]
					sizes[dev] += (p.BytesOf(b) + align - 1) / align * align
				}
			}
		}
	}
	return offsets, sizes
}

var errArena = errors.New("the scratch of several devices is not read or written as one")

func (a *arena) Read(int64, []byte) error  { return errArena }
func (a *arena) Write(int64, []byte) error { return errArena }

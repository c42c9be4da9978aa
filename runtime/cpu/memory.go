package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/cpu/machine"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Memory of the host: pools and scratch are anonymous maps, zeroed and page-aligned, that cost
// nothing until they are touched; weights are views of the checkpoint's mapping.

// hugeFrom is the least size of a map with pages of 2 MiB: reads cost fewer address lookups, and
// little memory is wasted.
const hugeFrom = 16 << 20

// region is a piece of memory that C++ may keep pointers into until Free.
type region struct {
	dev    *Device
	data   []byte
	view   bool // the caller's bytes: pinned, not written, not unmapped
	pinned runtime.Pinner
}

func (d *Device) Memory() (total, free int64) { return machine.Memory() }

func (d *Device) Alloc(bytes int64) (engine.Region, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("allocate %d bytes", bytes)
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	data, err := machine.Map(int(bytes))
	if err != nil {
		d.users.Release()
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	if bytes >= hugeFrom {
		mapping.PreferHugePages(data)
	}
	_ = machine.Interleave(data, d.nodes) // advice
	return &region{dev: d, data: data}, nil
}

func (d *Device) Upload(data []byte) (engine.Region, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("upload nothing")
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	_ = machine.Interleave(data, d.nodes) // advice
	r := &region{dev: d, data: data, view: true}
	// a mapped file needs none, the demo's unpacked memory does
	r.pinned.Pin(unsafe.SliceData(data))
	return r, nil
}

func (r *region) Bytes() int64 { return int64(len(r.data)) }

func (r *region) Read(offset int64, dst []byte) error {
	from, err := r.slice(offset, len(dst))
	copy(dst, from)
	return err
}

func (r *region) Write(offset int64, src []byte) error {
	to, err := r.slice(offset, len(src))
	if err == nil && r.view {
		err = fmt.Errorf("this region is a view of the caller's bytes")
	}
	if err != nil {
		return err
	}
	copy(to, src)
	return nil
}

func (r *region) slice(offset int64, n int) ([]byte, error) {
	if err := engine.Inside(offset, n, r.Bytes()); err != nil {
		return nil, err
	}
	return r.data[offset : offset+int64(n)], nil
}

func (r *region) Free() error {
	if r.data == nil {
		return nil
	}
	var err error
	if r.view {
		r.pinned.Unpin()
	} else {
		err = machine.Unmap(r.data)
	}
	r.data = nil
	r.dev.users.Release()
	return err
}

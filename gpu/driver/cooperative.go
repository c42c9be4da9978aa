package driver

import (
	"fmt"
	"unsafe"
)

// Launches whose blocks wait for each other.

// Resident is how many blocks of a kernel one multiprocessor holds at once.
func (f *Function) Resident(threads int, shared uint32) (int, error) {
	var n int32
	if err := f.c.call(functionResident, uintptr(unsafe.Pointer(&n)), f.handle, uintptr(threads),
		uintptr(shared)); err != nil {
		return 0, fmt.Errorf("kernel %s: how many blocks of %d threads are resident: %w", f.name,
			threads, err)
	}
	return int(n), nil
}

// LaunchCooperative queues a kernel whose blocks may wait for each other: all are on the card at
// once, or it is refused. AMD's runtime has such a launch in newer releases only, so there the
// count of resident blocks decides, which holds while nothing else runs on the card.
func (s *Stream) LaunchCooperative(f *Function, shape Shape, args []uint64) error {
	if s.c.d.api == CUDA {
		return s.launch(launchCooperative, f, shape, args)
	}
	g, b := shape.Grid, shape.Block
	each, err := f.Resident(int(b[0]*b[1]*b[2]), shape.Shared)
	if err != nil {
		return err
	}
	units, err := s.c.device.Attribute(Multiprocessors)
	if err != nil {
		return fmt.Errorf("kernel %s: %w", f.name, err)
	}
	if blocks := int(g[0] * g[1] * g[2]); blocks > each*units {
		return fmt.Errorf("kernel %s: a cooperative grid of %d blocks, %d are resident on %s",
			f.name, blocks, each*units, s.c.device.Name)
	}
	return s.launch(launchKernel, f, shape, args)
}

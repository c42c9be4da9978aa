package driver

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Kernels in a card's memory, and their launches. What must stay true: on AMD an image lives as
// long as its module; arguments live as long as the call.

// Module is compiled kernels in a device's memory.
type Module struct {
	c      *Context
	handle uintptr
	// AMD's runtime takes no copy of it (clr, Program::addDeviceProgram) and may read it later
	image []byte
}

// Load gives the driver PTX, a cubin or a code object, which must not change until Close.
func (c *Context) Load(image []byte) (*Module, error) {
	m := &Module{c: c}
	if c.d.api == HIP {
		m.image = image
		return m, c.call(moduleLoad, uintptr(unsafe.Pointer(&m.handle)),
			uintptr(unsafe.Pointer(&image[0])), 0, 0, 0)
	}
	if !bytes.HasPrefix(image, []byte("\x7fELF")) && image[len(image)-1] != 0 {
		image = append(bytes.Clone(image), 0)
	}
	log := make([]byte, 4096)
	options := [2]int32{int32(jitErrorLog), int32(jitErrorLogSize)}
	var pin runtime.Pinner // the log's address is inside values, where nothing else keeps it
	defer pin.Unpin()
	pin.Pin(&log[0])
	values := [2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	err := c.call(moduleLoad, uintptr(unsafe.Pointer(&m.handle)),
		uintptr(unsafe.Pointer(&image[0])), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if refused, ok := errors.AsType[*Error](err); ok {
		message, _, _ := bytes.Cut(log, []byte{0})
		refused.Log = strings.TrimSpace(string(message))
	}
	return m, err
}

func (m *Module) Close() error {
	err := m.c.call(moduleUnload, m.handle)
	m.image = nil
	return err
}

// Function is a kernel of a module; it lives as long as the module.
type Function struct {
	c       *Context
	name    string
	handle  uintptr
	allowed atomic.Int64 // bytes of dynamic shared memory
}

func (m *Module) Function(name string) (*Function, error) {
	f := &Function{c: m.c, name: name}
	zero := append([]byte(name), 0)
	if err := m.c.call(moduleFunction, uintptr(unsafe.Pointer(&f.handle)), m.handle,
		uintptr(unsafe.Pointer(&zero[0]))); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	return f, nil
}

// AllowShared allows at least so much dynamic shared memory: NVIDIA must be asked if a kernel has
// more than 48 KiB with its own.
func (f *Function) AllowShared(n int) error {
	if f.c.d.api == HIP || int64(n) <= f.allowed.Load() {
		return nil
	}
	if err := f.c.call(functionSet, f.handle, uintptr(functionDynamic), uintptr(n)); err != nil {
		return fmt.Errorf("kernel %s: %d bytes of shared memory: %w", f.name, n, err)
	}
	f.allowed.Store(int64(n))
	return nil
}

// Shape is the size of a launch: blocks, threads of a block, bytes of dynamic shared memory.
type Shape struct {
	Grid, Block [3]uint32
	Shared      uint32
}

// Launch queues a kernel. Each argument has a slot of 8 bytes; the driver reads as many bytes of it
// as the kernel declares. The arguments are copied before Launch returns.
func (s *Stream) Launch(f *Function, shape Shape, args []uint64) error {
	pointers := make([]uintptr, len(args)+1)
	var pin runtime.Pinner // the slots' addresses are inside a slice, where nothing else keeps them
	defer pin.Unpin()
	for i := range args {
		pin.Pin(&args[i])
		pointers[i] = uintptr(unsafe.Pointer(&args[i]))
	}
	g, b := shape.Grid, shape.Block
	var err error
	if s.overlaps { // CUDA's CUlaunchConfig, with one attribute, in words of 8 bytes
		attribute := [9]uint64{uint64(launchSerialization), 1}
		pin.Pin(&attribute)
		config := [7]uint64{uint64(g[0]) | uint64(g[1])<<32, uint64(g[2]) | uint64(b[0])<<32,
			uint64(b[1]) | uint64(b[2])<<32, uint64(shape.Shared), uint64(s.handle),
			uint64(uintptr(unsafe.Pointer(&attribute))), 1}
		err = s.c.call(launchKernelEx, uintptr(unsafe.Pointer(&config)), f.handle,
			uintptr(unsafe.Pointer(&pointers[0])), 0)
	} else {
		err = s.c.call(launchKernel, f.handle, uintptr(g[0]), uintptr(g[1]), uintptr(g[2]),
			uintptr(b[0]), uintptr(b[1]), uintptr(b[2]), uintptr(shape.Shared), s.handle,
			uintptr(unsafe.Pointer(&pointers[0])), 0)
	}
	if err != nil {
		return fmt.Errorf("kernel %s, grid %v, block %v, %d bytes of shared memory: %w", f.name, g,
			b, shape.Shared, err)
	}
	return nil
}

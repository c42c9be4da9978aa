package driver

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/ossrun/ossrun/gpu/detect"
)

// A device in use, and its memory. What must stay true: the driver keeps the current context per
// thread, so each call makes its own current on the thread that it runs on.

// Context is a device in use. Its methods may be called from any goroutine.
type Context struct {
	d      *Driver
	device *Device
	handle uintptr // CUDA: the primary context; HIP: the device's number
}

// Pointer is an address in device memory.
type Pointer uintptr

func (g *Device) Open() (*Context, error) {
	c := &Context{d: g.d, device: g, handle: uintptr(g.handle)}
	if g.d.api == CUDA {
		if err := g.d.call(contextRetain, uintptr(unsafe.Pointer(&c.handle)),
			uintptr(g.handle)); err != nil {
			return nil, fmt.Errorf("GPU %d (%s): %w", g.Index, g.Name, err)
		}
	}
	return c, nil
}

func (c *Context) Device() *Device { return c.device }

// Close gives the device back. All its memory must have been freed.
func (c *Context) Close() error {
	if c.d.api == CUDA {
		return c.d.call(contextRelease, uintptr(c.device.handle))
	}
	return nil
}

// call runs a function with this device current.
//
//go:uintptrescapes
func (c *Context) call(f function, args ...uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.d.call(contextUse, c.handle); err != nil {
		return err
	}
	return c.d.call(f, args...)
}

// Memory is the device's memory and the free part of it, in bytes.
func (c *Context) Memory() (total, free int64, err error) {
	err = c.call(memoryInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return c.shared(total, free, err)
}

// Alloc makes device memory, aligned to 256 bytes and not zeroed.
func (c *Context) Alloc(bytes int64) (Pointer, error) {
	var p Pointer
	if err := c.call(memoryAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes)); err != nil {
		return 0, fmt.Errorf("allocate %d bytes on %s: %w", bytes, c.device.Name, err)
	}
	return p, nil
}

func (c *Context) Free(p Pointer) error { return c.call(memoryFree, uintptr(p)) }

// HostMemory is pinned memory of the host that the device reads and writes; it is not Go's.
type HostMemory struct {
	c    *Context
	data []byte
}

// AllocHost makes pinned memory.
func (c *Context) AllocHost(bytes int) (*HostMemory, error) {
	var p uintptr
	if err := c.call(hostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes),
		uintptr(hostPortable)); err != nil {
		return nil, fmt.Errorf("pin %d bytes of host memory: %w", bytes, err)
	}
	return &HostMemory{c, unsafe.Slice((*byte)(pointer(p)), bytes)}, nil
}

// Bytes is the memory, not to be touched while a copy is under way, and not after Free.
func (m *HostMemory) Bytes() []byte { return m.data }

// Free frees the memory. It may be called more than once.
func (m *HostMemory) Free() error {
	if m.data == nil {
		return nil
	}
	address := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	m.data = nil
	return m.c.call(hostFree, address)
}

// SameDriver tells whether another context uses the same library, so that copies between their
// devices need no host. A library that was opened twice counts as one.
func (c *Context) SameDriver(peer *Context) bool {
	return c.d.api == peer.d.api && c.d.path == peer.d.path
}

// NVIDIA's cards that share the host's memory (DGX Spark, Jetson). As documented, their driver
// counts only unused memory as free, without the model's own pages, which Linux reclaims.

// meminfo is Linux's report on its memory.
var meminfo = "/proc/meminfo"

// shared corrects a driver's answer for a device that shares the host's memory, or replaces a
// refusal: memory that the host can reclaim counts as free.
func (c *Context) shared(total, free int64, err error) (int64, int64, error) {
	if c.d.api != CUDA || errors.Is(err, ErrLost) {
		return total, free, err
	}
	if is, failed := c.device.Attribute(Integrated); failed != nil || is == 0 {
		return total, free, err
	}
	text, _ := os.ReadFile(meminfo)
	have := detect.Meminfo(string(text), "MemAvailable")
	if have == 0 {
		return total, free, err
	}
	if err != nil {
		total, free = c.device.Memory, 0
	}
	return total, max(free, min(have, total)), nil
}

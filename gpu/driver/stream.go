package driver

import (
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// Queues of work, marks in them, and graphs. What must stay true: memory that a queued copy reads
// or writes is pinned, and the code that queued it waits for a mark before freeing or writing it.

// Stream is a queue of work, which runs in order and after the call that queued it has returned.
type Stream struct {
	c        *Context
	handle   uintptr
	overlaps bool // of kernels
}

// Overlap lets kernels that are queued from now on begin while the one before ends: all must wait
// for it themselves (await_grids in gpu.h). CUDA before 12.3 does not keep this in graphs.
func (s *Stream) Overlap(on bool) { s.overlaps = on }

// NewStream makes a queue that waits for no other.
func (c *Context) NewStream() (*Stream, error) {
	s := &Stream{c: c}
	return s, c.call(streamCreate, uintptr(unsafe.Pointer(&s.handle)), uintptr(streamNonBlocking))
}

// Synchronize waits until the queue is empty. An error of an earlier kernel shows here.
func (s *Stream) Synchronize() error { return s.c.call(streamSynchronize, s.handle) }

// Wait makes what follows in this queue wait for an event, of this or another queue.
func (s *Stream) Wait(e *Event) error { return s.c.call(streamWait, s.handle, e.handle, 0) }

// Close ends the queue; queued work still runs.
func (s *Stream) Close() error { return s.c.call(streamDestroy, s.handle) }

// CopyIn queues a copy of pinned bytes [at, at+n) to the device.
func (s *Stream) CopyIn(to Pointer, from *HostMemory, offset, n int) error {
	return s.c.call(copyIn, uintptr(to), uintptr(unsafe.Pointer(&from.data[offset : offset+n][0])),
		uintptr(n), s.handle)
}

// CopyOut queues a copy of n bytes from the device to pinned bytes [at, at+n).
func (s *Stream) CopyOut(to *HostMemory, offset int, from Pointer, n int) error {
	return s.c.call(copyOut, uintptr(unsafe.Pointer(&to.data[offset : offset+n][0])), uintptr(from),
		uintptr(n), s.handle)
}

// Copy queues a copy inside the device.
func (s *Stream) Copy(to, from Pointer, n int64) error {
	return s.c.call(copyInside, uintptr(to), uintptr(from), uintptr(n), s.handle)
}

// CopyPeer queues a copy from another device's memory, directly where the two are linked.
func (s *Stream) CopyPeer(to Pointer, source *Context, from Pointer, n int64) error {
	return s.c.call(copyPeer, uintptr(to), s.c.handle, uintptr(from), source.handle, uintptr(n),
		s.handle)
}

func (s *Stream) Fill(to Pointer, value byte, n int64) error {
	return s.c.call(memorySet, uintptr(to), uintptr(value), uintptr(n), s.handle)
}

// Event is a mark in a queue.
type Event struct {
	c      *Context
	handle uintptr
}

// NewEvent makes a mark; timing is for Elapsed and costs a little.
func (c *Context) NewEvent(timing bool) (*Event, error) {
	flags := eventNoTiming
	if timing {
		flags = eventTiming
	}
	e := &Event{c: c}
	return e, c.call(eventCreate, uintptr(unsafe.Pointer(&e.handle)), uintptr(flags))
}

// Record puts the mark at the end of a queue.
func (e *Event) Record(s *Stream) error { return e.c.call(eventRecord, e.handle, s.handle) }

// Synchronize waits until the queue has passed the mark.
func (e *Event) Synchronize() error { return e.c.call(eventSynchronize, e.handle) }

// Since is the time between two marks that a queue has passed, to about half a microsecond.
func (e *Event) Since(start *Event) (time.Duration, error) {
	var ms float32
	err := e.c.call(eventElapsed, uintptr(unsafe.Pointer(&ms)), start.handle, e.handle)
	return time.Duration(float64(ms) * 1e6), err
}

func (e *Event) Close() error { return e.c.call(eventDestroy, e.handle) }

// Graph is recorded work that is queued by one call.
type Graph struct {
	c    *Context
	exec uintptr
}

// Capture records the work that record queues instead of running it. The arguments of kernels are
// fixed then: values that change from launch to launch are in device memory.
func (s *Stream) Capture(record func() error) (_ *Graph, err error) {
	runtime.LockOSThread() // the capture belongs to the thread that began it
	defer runtime.UnlockOSThread()
	if err := s.c.call(captureBegin, s.handle, uintptr(captureThreadLocal)); err != nil {
		return nil, err
	}
	err = record()
	var graph uintptr
	// The context is current on this thread since the capture began. It is not made current again:
	// if that failed, the capture would stay open, and until it ends the driver frees nothing.
	if endErr := s.c.d.call(captureEnd, s.handle, uintptr(unsafe.Pointer(&graph))); err == nil {
		err = endErr // after a failed record the end of the capture only repeats the error
	}
	g := &Graph{c: s.c}
	if err == nil {
		err = s.c.call(graphInstantiate, uintptr(unsafe.Pointer(&g.exec)), graph, 0)
	}
	if graph != 0 {
		err = errors.Join(err, s.c.call(graphDestroy, graph))
	}
	if err == nil {
		return g, nil
	}
	if g.exec != 0 {
		err = errors.Join(err, g.Close())
	}
	return nil, err
}

// Launch queues the recorded work.
func (g *Graph) Launch(s *Stream) error { return g.c.call(graphLaunch, g.exec, s.handle) }

func (g *Graph) Close() error { return g.c.call(graphExecDestroy, g.exec) }

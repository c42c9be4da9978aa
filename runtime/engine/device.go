package engine

import "fmt"

// What a machine must offer to run a Program; enginetest checks that all devices behave the same.

// A Device is one place where steps run, one after the other. Several goroutines may call it.
type Device interface {
	// Name says what it is, for people: "cpu, 2 threads, avx2".
	Name() string
	// Memory returns how much memory the device has and how much of it is free, in bytes.
	Memory() (total, free int64)
	// Caps is what the device can do.
	Caps() Caps
	// Alloc makes a zeroed region that starts at a multiple of 64 bytes.
	Alloc(bytes int64) (Region, error)
	// Upload makes data readable by the device. Where the device shares the host's memory the
	// region is a view: data must stay as it is until Free, and Write is refused.
	Upload(data []byte) (Region, error)
	// Compile makes a step of a program whose buffers all lie somewhere, or says what is lacking.
	Compile(p *Program) (Step, error)
	// Close ends the device. Regions and steps must have been freed before.
	Close() error
}

// A Region is device memory.
type Region interface {
	Bytes() int64
	// Read and Write are for tests, taps and swapping pages out, not for the step.
	Read(offset int64, dst []byte) error
	Write(offset int64, src []byte) error
	Free() error
}

// Inside refuses n bytes at offset that do not lie in a region of so many bytes.
func Inside(offset int64, n int, bytes int64) error {
	if offset < 0 || offset > bytes-int64(n) {
		return fmt.Errorf("%d bytes at %d of a region of %d", n, offset, bytes)
	}
	return nil
}

// A Step is a compiled Program.
type Step interface {
	// Forward runs the whole program on a batch that passed Batch.Check. It fills logits
	// [len(b.LogitRows), vocab] and returns when they are there. times is nil, or gets the wall
	// time of each operation, in program order, nanoseconds.
	Forward(b *Batch, logits []float32, times []int64) error
	Close() error
}

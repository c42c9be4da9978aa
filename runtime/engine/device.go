package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/models"
)

// The interfaces that run a Program; enginetest checks that all devices behave the same.

// A Device runs steps, one after the other. Several goroutines may call it.
type Device interface {
	// Name says what it is, for people: "cpu, 2 threads, avx2".
	Name() string
	// Memory returns the size of the device's memory and the free part of it, in bytes.
	Memory() (total, free int64)
	// Caps are the device's abilities.
	Caps() Caps
	// Alloc makes a zeroed region that starts at a multiple of 64 bytes.
	Alloc(bytes int64) (Region, error)
	// Upload makes data readable by the device. If the device shares the host's memory, the region
	// is a view: data must not change until Free, and Write is refused.
	Upload(data []byte) (Region, error)
	// Compile makes a step of a program, all of whose buffers must have regions.
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

// Inside refuses n bytes at offset that are not inside a region of so many bytes.
func Inside(offset int64, n int, bytes int64) error {
	if offset < 0 || offset > bytes-int64(n) {
		return fmt.Errorf("%d bytes at %d of a region of %d", n, offset, bytes)
	}
	return nil
}

// Within refuses a buffer of p that is not completely inside a region for which own is true.
func Within[R Region](p *Program, b *Buffer, isOwn func(R) bool) error {
	if b == nil || b.Home == Logits {
		return nil
	}
	r, ok := b.Region.(R)
	if !ok || !isOwn(r) {
		return fmt.Errorf("%s does not lie in the memory of this device", b.Name)
	}
	if err := Inside(b.Offset, int(p.BytesOf(b)), r.Bytes()); err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	return nil
}

// A Step is a compiled Program.
type Step interface {
	// Forward runs the whole program on a batch that passed Batch.Check. It fills logits
	// [len(b.LogitRows), vocab] before it returns. times is nil, or gets the wall
	// time of each operation, in program order, nanoseconds.
	Forward(b *Batch, logits []float32, times []int64) error
	Close() error
}

// Users counts the regions and steps of a device, which must be freed before the device is closed.
type Users struct {
	mu     sync.Mutex
	count  int
	closed bool
}

func (u *Users) Use() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return errors.New("the device is closed")
	}
	u.count++
	return nil
}

func (u *Users) Release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count--
}

// Close calls end once, and refuses while something is in use.
func (u *Users) Close(name string, end func() error) error {
	u.mu.Lock()
	count, closed := u.count, u.closed
	u.closed = closed || count == 0
	u.mu.Unlock()
	switch {
	case closed:
		return nil
	case count > 0:
		return fmt.Errorf("%s is closed with %d regions and steps in use", name, count)
	}
	return end()
}

// Caps are a device's abilities; settings, memory plans and reports depend on nothing else of it. A
// device made of several has the abilities that all of them share.
type Caps struct {
	Computes []string // the compute modes it has kernels for
	DenseQ8  bool     // it has kernels for dense weights in 8 bits
	Dense12  bool     // inputs of q, k and v have 12 bits then, not 8
	Tiles    string   // a CPU's instruction set with tiles, for Settings.Tiles; "": there is none
	ISA      string   // a CPU's instruction set where the settings name none
	Scales   int      // that are tried for a block of 8-bit inputs; 0: one
	FP8KV    bool     // it has kernels for KV pages in 8 bits
	Adapters bool     // a step may have rows of several models that share most of their weights
	Samples  bool     // it samples tokens: each Step is a SamplingStep
	// Alike: with Drafts, steps of up to so many rows give a row the same bits, larger ones other
	// bits unless the settings are Deterministic; 0: all steps give the same
	Alike int

	Discrete   bool    // it has a memory of its own, as a card has; else Memory is the host's
	Integrated bool    // a GPU that shares the host's memory
	Arch       string  // a GPU's instruction set: "sm_90", "gfx942"
	Bandwidth  float64 // byte/s of a GPU's memory by its data sheet; 0: not known
}

// Has tells whether there are kernels for a compute mode.
func (c Caps) Has(compute string) bool { return slices.Contains(c.Computes, compute) }

// Placer is a Device made of others (gpu/multi). An Engine allocates its memory by these methods,
// which tell its purpose, so that each byte is on the device that reads it.
type Placer interface {
	Device
	// AllocFor makes the memory of p's Cache, laid out like that of a single device (cache.go), or
	// Scratch. p is the engine's largest program: smaller ones use the same memory. Scratch must
	// not be read: Compile sets the regions that hold the results of Taps.
	AllocFor(p *Program, home Home) (Region, error)
	// UploadFor makes a weight of p readable on the devices that read it, as Upload does.
	UploadFor(p *Program, b *Buffer, data []byte) (Region, error)
	// MostPages is how many KV pages fit on each part after everything else. utilization is the
	// share of a part's memory that may be taken, 0 for all but a reserve.
	MostPages(s models.Spec, o Settings, utilization float64) (int, error)
}

func placing(dev Device, p *Program) (alloc func(Home, int64) (Region, error),
	upload func(*Buffer, []byte) (Region, error)) {
	if placer, ok := dev.(Placer); ok {
		alloc = func(home Home, _ int64) (Region, error) { return placer.AllocFor(p, home) }
		upload = func(b *Buffer, data []byte) (Region, error) {
			return placer.UploadFor(p, b, data)
		}
		return alloc, upload
	}
	alloc = func(_ Home, bytes int64) (Region, error) { return dev.Alloc(bytes) }
	upload = func(_ *Buffer, data []byte) (Region, error) { return dev.Upload(data) }
	return alloc, upload
}

// Piece is bytes of a region, and their source or destination in the host's memory.
type Piece struct {
	Region Region
	Offset int64
	Host   []byte
}

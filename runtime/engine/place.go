package engine

import "github.com/ossrun/ossrun/models"

// A device made of several (gpu/multi) must know what memory is for, so that each byte lies on the
// device that reads it.

// Placer is a Device made of others. An Engine asks it for memory by these methods.
type Placer interface {
	Device
	// AllocFor makes the memory of p's Cache, laid out like that of a single device (cache.go), or
	// Scratch. p is the engine's largest program: smaller ones lie in the same memory. Scratch must
	// not be read: Compile sets the regions in which the results of Taps lie.
	AllocFor(p *Program, home Home) (Region, error)
	// UploadFor makes a weight of p readable on the devices that read it, as Upload does.
	UploadFor(p *Program, b *Buffer, data []byte) (Region, error)
	// MostPages is how many KV pages fit on each part beside all else. utilization is the share of
	// a part's memory that may be taken, 0 for all but a reserve.
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

// Piece is bytes of a region, and where in the host's memory they go or come from.
type Piece struct {
	Region Region
	Offset int64
	Host   []byte
}

package engine

import "github.com/ossrun/ossrun/models"

// What a device that is made of several (gpu/multi) must know beside the sizes: what memory is for,
// so that each byte lies where it is read.

// Placer is a Device made of others. An Engine asks it for memory by these methods, in the place of
// Alloc and Upload.
type Placer interface {
	Device
	// AllocFor makes the memory of p's Cache or Scratch buffers. p is the engine's largest program:
	// smaller ones lie in the same memory.
	//
	// The region of a Cache is laid out as one device's is (cache.go), wherever its parts lie. That
	// of Scratch is not to be read: Compile gives the results of Taps the regions that they lie in.
	AllocFor(p *Program, home Home) (Region, error)
	// UploadFor makes a weight of p readable by whoever reads it, as Upload does.
	UploadFor(p *Program, b *Buffer, data []byte) (Region, error)
	// MostPages is how many KV pages each part has room for beside all else that it holds of a
	// model. utilization is the share of a part's memory that may be taken, 0 for all but a
	// reserve.
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

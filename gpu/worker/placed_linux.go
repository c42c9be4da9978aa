package worker

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A device made of several, in the worker: it is asked for memory by what the memory is for. All of its parts are there, the host's as well, which
// computes experts out of the file that the worker maps; so a step stays one message each way.

// Placed is a Device of a worker that holds several.
type Placed struct {
	*Device

	mu   sync.Mutex
	told *engine.Program // the program that the worker knows
}

var _ engine.Placer = (*Placed)(nil)

// Placed is the device as an engine.Placer; false where it is a single one.
func (d *Device) Placed() (*Placed, bool) {
	if !d.text.Places {
		return nil, false
	}
	return &Placed{Device: d}, true
}

// tell makes the worker record the program that is asked about. The lock is held.
func (d *Placed) tell(p *engine.Program) error {
	if d.told == p {
		return nil
	}
	d.told = nil
	if err := d.c.call(plan, planText{p.Spec, p.Settings, p.Rows}, nil, nil, nil); err != nil {
		return err
	}
	d.told = p
	return nil
}

// AllocFor makes the cache or the scratch of p.
func (d *Placed) AllocFor(p *engine.Program, home engine.Home) (engine.Region, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.tell(p); err != nil {
		return nil, err
	}
	return answered(d.make(allocFor, homeText{home}))
}

// UploadFor has the worker open the file that data is a view of. Data of no file goes through the shared memory.
func (d *Placed) UploadFor(p *engine.Program, b *engine.Buffer, data []byte) (engine.Region, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.tell(p); err != nil {
		return nil, err
	}
	w := weightText{Buffer: b.Name, Bytes: int64(len(data))}
	if part, ok := partOf(data); ok {
		w.Part = &part
		r, err := d.make(uploadFor, w)
		if err == nil || !errors.Is(err, errOtherFile) {
			return answered(r, err)
		}
		w.Part = nil
	}
	for at := 0; at < len(data); {
		n := min(len(data)-at, pieceBytes)
		fill := func(slot []byte) int { return copy(slot, data[at:at+n]) }
		if err := d.c.call(gather, gatherText{int64(at), int64(n)}, nil, fill, nil); err != nil {
			return nil, fmt.Errorf("upload %d bytes: %w", len(data), err)
		}
		at += n
	}
	return answered(d.make(uploadFor, w))
}

// answered keeps a nil region from becoming an engine.Region that is not nil.
func answered(r *region, err error) (engine.Region, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// MostPages is the worker's.
func (d *Placed) MostPages(s models.Spec, o engine.Settings, utilization float64) (int, error) {
	var t pagesText
	err := d.c.call(mostPages, askPages{s, o, utilization}, &t, nil, nil)
	return t.Pages, err
}

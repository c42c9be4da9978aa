package multi

import (
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Experts in host memory that a card computes: in a large step, copying a layer's experts is faster
// than computing them on the host. One staging area is copied into while the other is computed.
//
// What must stay true: an area is written only when the segment that read it last has ended, and
// read only when it is complete.

const stagingAreas = 2

// refiller is a region that can be written while its device runs steps, without waiting for them.
type refiller interface {
	Refill(offset int64, data []byte) error
}

// stagingAlign aligns a tensor in its area as a card's allocations are aligned.
const stagingAlign = 256

// stagingBytes is the size of one area on each card, for p.
func (d *Device) stagingBytes(p *engine.Program) []int64 {
	most := make([]int64, len(d.devices))
	sum := map[int]int64{} // by layer
	for i, target := range d.places(p, true) {
		if target.streams < 0 {
			continue
		}
		for _, b := range p.Ops[i].W {
			sum[target.streams] += (p.BytesOf(b) + stagingAlign - 1) / stagingAlign * stagingAlign
		}
		most[target.device] = max(most[target.device], sum[target.streams])
	}
	return most
}

// load is the experts of one segment on their way into an area.
type load struct {
	area  engine.Region
	parts []engine.Piece
	prev  int // the load that has the area before it; -1: none
}

func (l *load) run() error {
	for _, x := range l.parts {
		write := x.Region.Write
		if r, ok := x.Region.(refiller); ok {
			write = r.Refill
		}
		if err := write(x.Offset, x.Host); err != nil {
			return fmt.Errorf("stream experts: %w", err)
		}
	}
	return nil
}

// loading runs the loads of a step in order, each when its area is free.
type loading struct {
	ready []chan error // by load
	// by load: closed when the earlier load of the same area has been used
	freed []chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

func start(loads []*load) *loading {
	l := &loading{stop: make(chan struct{}), done: make(chan struct{})}
	for range loads {
		l.ready, l.freed = append(l.ready, make(chan error, 1)),
			append(l.freed, make(chan struct{}))
	}
	go func() {
		defer close(l.done)
		for i, x := range loads {
			if x.prev >= 0 {
				select {
				case <-l.freed[x.prev]:
				case <-l.stop:
					return
				}
			}
			select {
			case <-l.stop:
				return
			default:
			}
			err := x.run()
			l.ready[i] <- err
			if err != nil {
				return
			}
		}
	}()
	return l
}

// end cancels the loads that have not begun and waits for the others.
func (l *loading) end() {
	close(l.stop)
	<-l.done
}

package mapping

import (
	"sync/atomic"
	"time"
)

// Tell reports how far a count is until the function it gives is called.
func Tell(done *atomic.Int64, total int64, progress func(done, total int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				progress(done.Load(), total)
			case <-ended:
				progress(done.Load(), total)
				return
			}
		}
	}()
	return func() { close(ended); <-gone }
}

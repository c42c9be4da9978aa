package mapping

// Work that waits for the disk: many pieces, several goroutines, and progress.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ReportProgress reports a count periodically until stop is called.
func ReportProgress(done *atomic.Int64, total int64,
	progress func(done, total int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	stopped, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				progress(done.Load(), total)
			case <-stopped:
				progress(done.Load(), total)
				return
			}
		}
	}()
	return func() { close(stopped); <-finished }
}

// Parallel calls do for 0 to count-1, in order and from several workers, until one fails or ctx
// ends. bytes is the size of a piece and is added to done. spare belongs to the worker, which
// reuses it.
func Parallel(ctx context.Context, workers, count int, done *atomic.Int64,
	do func(i int, spare *[]byte) (bytes int64, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, count) {
		group.Go(func() {
			var spare []byte
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= count {
					return
				}
				bytes, err := do(i, &spare)
				if err != nil {
					cancel(err)
					return
				}
				done.Add(bytes)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

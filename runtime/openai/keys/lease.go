// Leases: what a key's client runs and has stored lasts as long as its key.
//
// What must stay true: removing a key cancels its requests within Interval, also those that no
// connection waits for; then its records are deleted. Replacing a key changes nothing of this.

package keys

import (
	"context"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
)

// Interval is the time in which a change of the file is noticed without a request.
const Interval = 250 * time.Millisecond

// lease is a key's, while it is in the file. Ring.mu guards running.
type lease struct {
	ctx     context.Context // ends when the key is removed
	end     context.CancelFunc
	running int
}

// Bind returns a context that is cancelled for this reason when the key is removed. release must be
// called when what runs with it has ended.
func (c *Client) Bind(ctx context.Context, reason error) (bound context.Context,
	release context.CancelFunc) {
	if c == nil {
		return context.WithCancel(ctx)
	}
	r := c.ring
	bound, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	l := c.lease
	l.running++
	stop := context.AfterFunc(l.ctx, func() { cancel(reason) })
	return bound, sync.OnceFunc(func() {
		stop()
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if l.running--; l.running == 0 && l.ctx.Err() != nil {
			r.forget(c.ID)
		}
	})
}

// endLeases is called with r.mu held, after the keys were read again.
func (r *Ring) endLeases() {
	present := map[string]bool{}
	for _, k := range r.keys {
		present[k.ID] = true
	}
	for id, u := range r.use {
		if present[id] || u.lease == nil {
			continue
		}
		u.lease.end()
		if u.lease.running == 0 {
			r.forget(id)
		}
		u.lease = nil
	}
}

// forget deletes what the client of a removed key has stored.
func (r *Ring) forget(id string) {
	r.forgetting.Go(func() {
		if r.OnRemoval != nil {
			r.OnRemoval(id)
		}
		if _, err := records.DeleteOwned(r.store, id); err != nil {
			r.notify("the records of a removed key are not deleted: " + err.Error())
		}
	})
}

// Watch notices changes of the file until ctx ends.
func (r *Ring) Watch(ctx context.Context) {
	if r == nil {
		return
	}
	clock := time.NewTicker(Interval)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			r.NeedsKey()
		case <-ctx.Done():
			return
		}
	}
}

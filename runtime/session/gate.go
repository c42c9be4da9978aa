// The gate for large work outside the engine: reading and checking bodies, rendering and encoding
// prompts.
//
// What must stay true: a small piece never waits; large ones run a few at a time; a client that
// sends one after another leaves most of the processor time to other active clients.

package session

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// SmallRequest is the most text that is prepared without waiting.
	SmallRequest = 32 << 10
	// maxPreparing limits the text of larger requests that are prepared at the same time.
	maxPreparing = 1 << 20
	// part: a client may use one part in so many of the time while others are active.
	pauseFactor = 4
	// minPause is a pause too short to enforce: that of a prompt of some 100 KiB.
	minPause = 100 * time.Millisecond
	// maxCharge bounds the charge for a piece, whose work may include waiting.
	maxCharge = 2 * time.Second
	// activeWindow is how long a client counts as active after a request, as in the scheduler.
	activeWindow = 2 * time.Second
)

// Gate admits large pieces of work a few at a time. The zero Gate is not ready.
type Gate struct {
	*semaphore.Weighted
	*pauses
}

func NewGate() Gate {
	return Gate{semaphore.NewWeighted(maxPreparing), &pauses{byClient: map[string]pause{}}}
}

// Enter waits until work of so many bytes may begin; leave ends it. The error is ctx's.
func (g Gate) Enter(ctx context.Context, client string, bytes int) (leave func(), err error) {
	if bytes <= SmallRequest {
		g.remaining(client)
		return func() {}, nil
	}
	weight := int64(min(bytes, maxPreparing))
	for entered := false; !entered; {
		if err := g.Await(ctx, client); err != nil {
			return nil, err
		}
		if err := g.Acquire(ctx, weight); err != nil {
			return nil, err
		}
		if entered = g.remaining(client) == 0; !entered { // another piece of the client was first
			g.Release(weight)
		}
	}
	began := time.Now()
	return func() { // charged first: the next to enter may be of the same client
		g.Charge(client, time.Since(began))
		g.Release(weight)
	}, nil
}

// pauses are the pauses of clients after large pieces.
type pauses struct {
	mu       sync.Mutex
	byClient map[string]pause
}

type pause struct{ until, seen time.Time }

// Charge extends a client's pause for a piece of work.
func (p *pauses) Charge(client string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, now := p.byClient[client], time.Now()
	if c.until.Before(now) {
		c.until = now
	}
	c.until = c.until.Add(pauseFactor * min(took, maxCharge))
	p.byClient[client] = c
}

// Await waits for the end of a client's pause. The error is ctx's.
func (p *pauses) Await(ctx context.Context, client string) error {
	for wait := p.remaining(client); wait > 0; wait = p.remaining(client) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// remaining marks a client as active and returns the rest of its pause; 0 if no other is active.
func (p *pauses) remaining(client string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, hasOthers := time.Now(), false
	c := p.byClient[client]
	c.seen = now
	p.byClient[client] = c
	maps.DeleteFunc(p.byClient, func(name string, o pause) bool {
		isActive := now.Sub(o.seen) <= activeWindow
		hasOthers = hasOthers || isActive && name != client
		return !isActive && o.until.Before(now)
	})
	if !hasOthers {
		return 0
	}
	return max(0, c.until.Add(-minPause).Sub(now))
}

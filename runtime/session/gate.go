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
	// preparedAtOnce limits the text of larger requests that are prepared at the same time.
	preparedAtOnce = 1 << 20
	// part: a client may use one part in so many of the time while others are active.
	part = 4
	// forgiven is a pause too short to enforce: that of a prompt of some 100 KiB.
	forgiven = 100 * time.Millisecond
	// longestPiece bounds the charge for a piece, whose work may include waiting.
	longestPiece = 2 * time.Second
	// lately is how long a client counts as active after its last request, as in the scheduler.
	lately = 2 * time.Second
)

// Gate admits large pieces of work a few at a time. The zero Gate is not ready.
type Gate struct {
	*semaphore.Weighted
	*pauses
}

func NewGate() Gate {
	return Gate{semaphore.NewWeighted(preparedAtOnce), &pauses{of: map[string]paused{}}}
}

// Enter waits until work of so many bytes may begin; leave ends it. The error is ctx's.
func (g Gate) Enter(ctx context.Context, client string, bytes int) (leave func(), err error) {
	if bytes <= SmallRequest {
		g.left(client)
		return func() {}, nil
	}
	weight := int64(min(bytes, preparedAtOnce))
	for entered := false; !entered; {
		if err := g.Await(ctx, client); err != nil {
			return nil, err
		}
		if err := g.Acquire(ctx, weight); err != nil {
			return nil, err
		}
		if entered = g.left(client) == 0; !entered { // another piece of the client was first
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
	mu sync.Mutex
	of map[string]paused
}

type paused struct{ until, seen time.Time }

// Charge extends a client's pause for a piece of work.
func (p *pauses) Charge(client string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, now := p.of[client], time.Now()
	if c.until.Before(now) {
		c.until = now
	}
	c.until = c.until.Add(part * min(took, longestPiece))
	p.of[client] = c
}

// Await waits for the end of a client's pause. The error is ctx's.
func (p *pauses) Await(ctx context.Context, client string) error {
	for left := p.left(client); left > 0; left = p.left(client) {
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// left marks a client as active and returns the rest of its pause; 0 if no other is active.
func (p *pauses) left(client string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, others := time.Now(), false
	c := p.of[client]
	c.seen = now
	p.of[client] = c
	maps.DeleteFunc(p.of, func(name string, o paused) bool {
		here := now.Sub(o.seen) <= lately
		others = others || here && name != client
		return !here && o.until.Before(now)
	})
	if !others {
		return 0
	}
	return max(0, c.until.Add(-forgiven).Sub(now))
}

// Large pieces of work beside the engine: bodies that are read and checked, prompts that are
// rendered and encoded.
//
// What must stay true: a small piece never waits; large ones run a few at a time; a client that
// sends one after the other leaves the processors to the others for most of the time, while there
// are others.

package session

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// SmallRequest is the text that is prepared at once.
	SmallRequest = 32 << 10
	// preparedAtOnce is the text of larger requests that are prepared at the same time.
	preparedAtOnce = 1 << 20
	// part of the time, one of so many, is for a client's large pieces while there are others.
	part = 4
	// forgiven is a pause that nobody waits for: that of a prompt of some 100 KiB.
	forgiven = 100 * time.Millisecond
	// longestPiece bounds what counts of a piece: it may have waited for something itself.
	longestPiece = 2 * time.Second
	// lately is how long a client that has left is waited for, as in the scheduler.
	lately = 2 * time.Second
)

// Gate lets large pieces of work in a few at a time. The zero Gate is not ready.
type Gate struct {
	*semaphore.Weighted
	*pauses
}

// NewGate makes a gate.
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
	return func() { // charged first: who is let in next may be of the same client
		g.Charge(client, time.Since(began))
		g.Release(weight)
	}, nil
}

// pauses are those of clients after large pieces.
type pauses struct {
	mu sync.Mutex
	of map[string]paused
}

type paused struct{ until, seen time.Time }

// Charge makes a client's pause longer by that of a piece.
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

// left is what is left of a client's pause, which has come now; 0 where it is alone.
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

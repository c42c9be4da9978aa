// How many interpreters this process runs, and how much memory they may use together.
//
// What must stay true: both limits hold for every caller, since the memory plan counts on them; a
// conversation is told when its interpreter was ended for another.

package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	// MaxInterpreters limits the interpreters; one more ends the one that has been idle longest.
	MaxInterpreters = 8
	// TotalMemory is the memory limit of all of them, bytes.
	TotalMemory = 4 << 30
)

// pool is the interpreters of this process.
type pool struct {
	mu    sync.Mutex
	tools []*Tool // those with an interpreter, least recently used first
	free  chan struct{}
	uses  map[*interpreter]int64
}

var sharedPool = &pool{free: make(chan struct{}), uses: map[*interpreter]int64{}}

// acquire waits until a tool may have an interpreter, and marks it as the last used.
func (p *pool) acquire(ctx context.Context, t *Tool) error {
	limit := MaxInterpreters
	if !t.box.host { // what containers use is not seen here
		limit = int(max(1, min(MaxInterpreters, TotalMemory/t.o.Memory)))
	}
	for {
		p.mu.Lock()
		if i := slices.Index(p.tools, t); i >= 0 {
			p.tools = append(slices.Delete(p.tools, i, i+1), t)
			p.mu.Unlock()
			return nil
		}
		if len(p.tools) < limit {
			p.tools = append(p.tools, t)
			p.mu.Unlock()
			return nil
		}
		idle, free := slices.Clone(p.tools), p.free
		p.mu.Unlock()
		if slices.ContainsFunc(idle, (*Tool).giveUp) {
			continue
		}
		select {
		case <-free:
		case <-ctx.Done():
			return fmt.Errorf("%d other interpreters are running: %w", limit, ctx.Err())
		}
	}
}

// release reports that a tool's cell has ended, and whether its interpreter has.
func (p *pool) release(t *Tool, hasEnded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if hasEnded {
		p.tools = slices.DeleteFunc(p.tools, func(o *Tool) bool { return o == t })
	}
	close(p.free)
	p.free = make(chan struct{})
}

// recordUse records an interpreter's memory; the largest fails if the total is exceeded.
func (p *pool) recordUse(r *interpreter, memory int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses[r] = memory
	sum, largest := int64(0), int64(0)
	for _, n := range p.uses {
		sum, largest = sum+n, max(largest, n)
	}
	if sum > TotalMemory && memory == largest {
		return errors.New("all interpreters together used too much memory, and it used most")
	}
	return nil
}

func (p *pool) remove(r *interpreter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uses, r)
}

// giveUp ends a tool's interpreter for another, unless a cell is running.
func (t *Tool) giveUp() bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	if t.run == nil {
		return false // it is being started
	}
	_ = t.run.close() // killed: it always ends with an error
	t.run, t.evicted = nil, true
	sharedPool.release(t, true)
	return true
}

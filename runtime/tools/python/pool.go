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
	// Most limits the interpreters; one more ends the one that has been idle longest.
	Most = 8
	// Together is the memory limit of all of them, bytes.
	Together = 4 << 30
)

// pool is the interpreters of this process.
type pool struct {
	mu    sync.Mutex
	tools []*Tool // those with an interpreter, least recently used first
	free  chan struct{}
	uses  map[*interpreter]int64
}

var shared = &pool{free: make(chan struct{}), uses: map[*interpreter]int64{}}

// enter waits until a tool may have an interpreter, and marks it as the last used.
func (p *pool) enter(ctx context.Context, t *Tool) error {
	most := Most
	if !t.box.host { // what containers use is not seen here
		most = int(max(1, min(Most, Together/t.o.Memory)))
	}
	for {
		p.mu.Lock()
		if at := slices.Index(p.tools, t); at >= 0 {
			p.tools = append(slices.Delete(p.tools, at, at+1), t)
			p.mu.Unlock()
			return nil
		}
		if len(p.tools) < most {
			p.tools = append(p.tools, t)
			p.mu.Unlock()
			return nil
		}
		idle, free := slices.Clone(p.tools), p.free
		p.mu.Unlock()
		if slices.ContainsFunc(idle, (*Tool).yield) {
			continue
		}
		select {
		case <-free:
		case <-ctx.Done():
			return fmt.Errorf("%d other interpreters are running: %w", most, ctx.Err())
		}
	}
}

// leave reports that a tool's cell has ended, and whether its interpreter has.
func (p *pool) leave(t *Tool, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		p.tools = slices.DeleteFunc(p.tools, func(other *Tool) bool { return other == t })
	}
	close(p.free)
	p.free = make(chan struct{})
}

// over records an interpreter's memory; the largest fails if the total is exceeded.
func (p *pool) over(r *interpreter, memory int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses[r] = memory
	sum, largest := int64(0), int64(0)
	for _, n := range p.uses {
		sum, largest = sum+n, max(largest, n)
	}
	if sum > Together && memory == largest {
		return errors.New("all interpreters together used too much memory, and it used most")
	}
	return nil
}

func (p *pool) forget(r *interpreter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uses, r)
}

// yield ends a tool's interpreter for another, unless a cell is running.
func (t *Tool) yield() bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	if t.run == nil {
		return false // it is being started
	}
	_ = t.run.close() // killed: it always ends with an error
	t.run, t.lost = nil, true
	shared.leave(t, true)
	return true
}

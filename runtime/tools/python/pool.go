// How many interpreters this process has at once, and how much memory all of them may use.
//
// What must stay true: both bounds hold whoever asks, so that the memory plan can count on them;
// a conversation whose interpreter was ended for another is told.

package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	// Most is how many interpreters there are at once; one more ends the one that is idle longest.
	Most = 8
	// Together is the memory of all of them, bytes.
	Together = 4 << 30
)

// pool are the interpreters of this process.
type pool struct {
	mu    sync.Mutex
	tools []*Tool // that have one, the one used last at the end
	free  chan struct{}
	uses  map[*interpreter]int64
}

var shared = &pool{free: make(chan struct{}), uses: map[*interpreter]int64{}}

// enter waits until a tool may have an interpreter, and counts it as the one used last.
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

// leave says that a tool's cell has ended, and whether its interpreter has.
func (p *pool) leave(t *Tool, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		p.tools = slices.DeleteFunc(p.tools, func(other *Tool) bool { return other == t })
	}
	close(p.free)
	p.free = make(chan struct{})
}

// over notes what an interpreter uses, and is an error for the largest of too large ones.
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

// yield ends a tool's interpreter for another, unless a cell runs.
func (t *Tool) yield() bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	if t.run == nil {
		return false // it is about to have one
	}
	_ = t.run.close() // killed: it always ends with an error
	t.run, t.lost = nil, true
	shared.leave(t, true)
	return true
}

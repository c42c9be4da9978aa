// Package sched runs many requests through one engine: continuous batching with chunked prefill,
// pages counted, the youngest preempted when they run out.
//
// One goroutine, the loop, owns all sequences and the page pool. A step goes:
//
//	collect   new requests join
//	settle    cancelled ones leave and their pages are free; the oldest waiting ones join with the
//	          pages that the cache has of them; each gets its rows, unless the plan that was made
//	          beside the step before still stands (grant.go has the policy)
//	compute   the engine's step, then sampling (step.go); meanwhile another goroutine hands out
//	          the tokens of the step before, makes masks and plans the next step (overlap.go)
//	advance   what is computed becomes findable, what left the window is given back
//
// What must stay true:
//   - A request's tokens do not depend on what else runs: the engine computes each row by itself
//     and sampling is by (seed, position). Preemption, chunk sizes and batches change times only.
//   - No request fails for want of pages: what cannot fit alone is refused by Submit, everything
//     else ends.
//   - A step with an error ends the running requests; waiting and later ones run on, on a new
//     engine where Restart gives one.
//   - Prefixes found in the cache change times only: the pages hold what computing would give.
package sched

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// A table of the pool is handed to the engine as it is.
const _ = uint(kv.PageTokens-engine.PageTokens) + uint(engine.PageTokens-kv.PageTokens)

// Engine is what the scheduler needs of engine.Engine. Step fills logits [len(LogitRows), vocab]
// and keeps nothing; Queue, Sample and Wait are called where Caps says that the device samples.
type Engine interface {
	Spec() models.Spec
	Settings() engine.Settings
	Plan() engine.Plan
	Caps() engine.Caps
	Step(ctx context.Context, b *engine.Batch, logits []float32) error
	Queue(ctx context.Context, b *engine.Batch, from []int32) error
	Sample(params []engine.SamplingParams) error
	Wait(sampled []engine.SampledToken) error
	Cache() engine.Region
}

// Options bound a scheduler. Zero values stand for the defaults.
type Options struct {
	Pages               int // KV pages, as the engine has; default 512
	MaxNumBatchedTokens int // rows in a step, at most the engine's; default 512
	MaxNumSeqs          int // sequences that run at once, at most MaxNumBatchedTokens; default 256
	MaxWaiting          int // requests that wait for those; default 2048
	// tokens of a sequence; default what the model was made for, and never more than the pool holds
	ContextLength int

	// NoPrefixCaching computes every prompt from its first token on: no page outlives its sequence.
	NoPrefixCaching bool
	// Spill takes pages that are needed for something else, and gives them back to whom they would
	// save computing; nil: none.
	Spill *kv.Spill
	// Model names the weights and the form of the pages. Schedulers on one Spill share what is
	// equally named.
	Model string
	// Restart gives a fresh engine of the same shape after a step failed, with an empty cache. It
	// is called from the loop, after the running requests got their *EngineError; the waiting ones
	// go on with what it returns. Its error closes the scheduler. nil: the same engine goes on.
	Restart func(fault error) (Engine, error)

	// For tests: their own time, and what they look at, before each step in the loop's goroutine,
	// and when the step behind it is planned, in that which does it.
	now      func() time.Time
	launch   func(*engine.Batch)
	prepared func()
}

func (o Options) withDefaults(spec models.Spec, windowPages int) Options {
	fill := func(v *int, standard int) {
		if *v <= 0 {
			*v = standard
		}
	}
	if o.now == nil {
		o.now = time.Now
	}
	fill(&o.Pages, 512)
	fill(&o.MaxNumBatchedTokens, 512)
	fill(&o.MaxNumSeqs, 256)
	fill(&o.MaxWaiting, 2048)
	fill(&o.ContextLength, spec.MaxPosition)
	o.MaxNumSeqs = min(o.MaxNumSeqs, o.MaxNumBatchedTokens)
	o.ContextLength = min(o.ContextLength, spec.MaxPosition, longest(o.Pages, spec.Window,
		windowPages))
	return o
}

// longest is how many tokens a sequence can have that has the pool for itself.
func longest(pages, window, windowPages int) int {
	n := pages * kv.PageTokens
	for n > 0 && kv.PagesOf(n, 1, window, windowPages) > pages {
		n -= kv.PageTokens
	}
	return n
}

// Scheduler is safe for concurrent use.
type Scheduler struct {
	eng   Engine
	spec  models.Spec
	o     Options
	ctx   context.Context // of the engine's steps; cancelled by Close
	close context.CancelFunc
	wake  chan struct{} // capacity 1: something came in
	done  chan struct{} // closed when the loop has ended

	mu       sync.Mutex
	incoming []*sequence
	live     int // requests that have not ended
	closed   bool
	draining bool
	drained  chan struct{} // closed when draining and nothing is live; made by the first Drain
	stats    Stats
	pace     pace

	// The loop's own.
	pool     *kv.Pool
	root     kv.Hash
	copying  []byte      // room for a page and its twin
	running  []*sequence // oldest first
	waiting  []*sequence // oldest first
	batch    engine.Batch
	logits   []float32 // grown to the most rows that were asked for
	device   onDevice
	sampling []*sequence
	next     atomic.Int32 // place in sampling
	counts   Counts
	ended    int       // since the last publish
	plan     planned   // of the next step
	ahead    bool      // it is made while another runs
	rebuild  bool      // it rebuilds window pages
	launched int       // sequences of running that were there when the step began
	stuck    *sequence // did not fit when pool.Given was stuckAt
	stuckAt  uint64
	lost     error // what those get that are there when the loop ends

	out, outgoing []handout
	outAt         time.Time // when the step that outgoing is of ended
	busy          bool      // between begin and join
	overlap       chan bool
	joined        chan struct{}
}

// New starts a scheduler. The engine must have o.Pages pages and take steps of
// o.MaxNumBatchedTokens rows, and is used by this scheduler alone until Close returns.
func New(eng Engine, o Options) *Scheduler {
	s := &Scheduler{eng: eng, spec: eng.Spec(), wake: make(chan struct{}, 1),
		done:    make(chan struct{}),
		overlap: make(chan bool), joined: make(chan struct{})}
	windowPages := engine.WindowPages(eng.Settings().KVCacheDtype)
	s.o = o.withDefaults(s.spec, windowPages)
	s.pool = kv.NewPool(s.o.Pages, s.spec.Window, windowPages)
	s.keepPrefixes()
	s.ctx, s.close = context.WithCancel(context.Background())
	s.lost = ErrClosed
	s.publish()
	go s.overlapped()
	go s.loop()
	return s
}

// ContextLength is how many tokens a sequence can have, prompt and answer together.
func (s *Scheduler) ContextLength() int { return s.o.ContextLength }

// Submit starts a request; it joins the next step that has room. Cancelling ctx ends it before the
// next step and frees its pages. The error is ErrQueueFull, ErrClosed, a *ContextLengthError, a
// *sample.ParamError or names what is wrong.
func (s *Scheduler) Submit(ctx context.Context, r Request) (*Stream, error) {
	var forced []int32
	if r.Constraint != nil {
		forced = r.Constraint.Forced()
	}
	if err := r.check(forced, s.spec, s.o.ContextLength); err != nil {
		return nil, err
	}
	st := newStream(ctx, len(r.Prompt), s.o.now)
	q := newSequence(r, forced, s.spec, s.o.ContextLength, st)
	if !s.o.NoPrefixCaching {
		q.hashes = kv.Hashes(s.root, nil, q.tokens)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.draining {
		return nil, ErrClosed
	}
	if s.live >= s.o.MaxNumSeqs+s.o.MaxWaiting {
		return nil, ErrQueueFull
	}
	s.live++
	s.incoming = append(s.incoming, q)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return st, nil
}

// Drain lets no new request in (Submit returns ErrClosed), waits until those that were let in have
// ended, and closes the scheduler. When ctx ends first, the rest is ended with ErrClosed and Drain
// returns ctx's error.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining {
		s.draining, s.drained = true, make(chan struct{})
		if s.live == 0 {
			close(s.drained)
		}
	}
	drained := s.drained
	s.mu.Unlock()
	var err error
	select {
	case <-drained:
	case <-s.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, s.Close())
}

// Close ends every request with ErrClosed and waits for the loop. The engine is free then.
func (s *Scheduler) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.close()
	<-s.done
	return nil
}

func (s *Scheduler) loop() {
	defer close(s.done)
	defer close(s.overlap)
	for s.collect() {
		s.settle()
		s.assemble()
		s.publish()
		if len(s.batch.Tokens) > 0 {
			s.compute()
		}
	}
	for _, q := range slices.Concat(s.running, s.waiting) {
		s.end(q, FinishError, s.lost)
	}
	s.running, s.waiting = nil, nil
	if s.o.Spill != nil {
		s.pool.Flush()
	}
	s.publish()
	s.begin(false)
	s.join()
}

// collect takes in new requests and waits while there is nothing to do. False means that the
// scheduler is closed, and that every request it took is in a queue.
func (s *Scheduler) collect() bool {
	for {
		if closed := s.takeIn(); closed {
			return false
		}
		if len(s.running)+len(s.waiting) > 0 {
			return true
		}
		s.publish()
		s.begin(false)
		s.join()
		select {
		case <-s.wake:
		case <-s.ctx.Done():
		}
	}
}

// takeIn puts new requests at the end of those that wait.
func (s *Scheduler) takeIn() (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, s.incoming...) // the youngest, in order
	s.stats.Waiting += len(s.incoming)
	clear(s.incoming)
	s.incoming = s.incoming[:0]
	return s.closed
}

// Package sched runs many requests through one engine: continuous batching with chunked prefill,
// pages counted, the youngest preempted when they run out.
//
// One goroutine, the loop, owns all sequences and the page pool. A step goes:
//
//	collect   new requests join the waiting ones
//	plan      cancelled requests leave and free their pages; the oldest waiting ones are admitted
//	          with their cached pages; each sequence gets its rows, unless the plan that was made
//	          during the previous step is still valid (grant.go has the policy)
//	drafts    guesses of what follows join the rows of sequences that decode (drafts.go)
//	compute   the engine's step, then sampling (step.go); meanwhile another goroutine delivers
//	          the tokens of the previous step, makes masks and plans the next step (overlap.go)
//	advance   computed pages enter the prefix cache, pages outside the window are given back
//
// What must stay true:
//   - A request's tokens do not depend on what else runs: the engine computes each row on its own,
//     and sampling depends on (seed, position). Preemption, chunk sizes and batches change only
//     how long it takes.
//   - No request fails because pages are short: Submit refuses a request that cannot fit alone, and
//     every other can finish.
//   - A failed step ends the running requests. Waiting and later ones run, on a new engine if
//     Restart gives one.
//   - A prefix found in the cache changes only how long a request takes: its pages equal computed
//     ones.
package sched

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/quota"
	"github.com/ossrun/ossrun/runtime/sched/draft"
)

// StepEngine is the part of engine.Engine that the scheduler needs. Step fills logits
// [len(LogitRows), vocab] and keeps no reference. Queue, Sample and Wait are called only if Caps
// says that the device samples.
type StepEngine interface {
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

// Options bound a scheduler. Of the settings it reads Pages and MaxNumBatchedTokens, which the
// engine must have too, MaxNumSeqs, MaxWaiting, MaxModelLen and NoPrefixCaching. Zero values mean
// the defaults; MaxModelLen is never more than the pool holds.
type Options struct {
	engine.Settings

	// Spill keeps the contents of pages that get another use, and restores them for later requests
	// with the same prefix; nil: none.
	Spill *kv.Spill
	// Model names the weights and the page format. Schedulers with the same Spill share pages if
	// they have the same Model. Each of the engine's adapters has pages of its own.
	Model string
	// Restart returns a new engine of the same shape, with an empty cache, after a step failed. The
	// loop calls it after the running requests got their *EngineError; the waiting requests run on
	// the engine that it returns. If it fails, the scheduler is closed. nil: the old engine stays
	// in use.
	Restart func(fault error) (StepEngine, error)

	// For tests: propose replaces the search for drafts and the decision whether they pay; a clock;
	// launch is called before each step and idle before the loop waits, by the loop's goroutine;
	// prepared is called when the next step has been planned, by the goroutine that plans.
	propose  func(tokens []int32, most int) []int32
	now      func() time.Time
	launch   func(*engine.Batch)
	idle     func()
	prepared func()
}

func (o Options) withDefaults(spec models.Spec, windowPages int) Options {
	if o.now == nil {
		o.now = time.Now
	}
	o.Pages = cmp.Or(o.Pages, 512)
	o.MaxNumBatchedTokens = cmp.Or(o.MaxNumBatchedTokens, 512)
	o.MaxNumSeqs = min(cmp.Or(o.MaxNumSeqs, 256), o.MaxNumBatchedTokens)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 2048)
	o.MaxModelLen = min(cmp.Or(o.MaxModelLen, spec.MaxPosition), spec.MaxPosition,
		longest(o.Pages, spec.Window, windowPages))
	return o
}

// longest is how many tokens fit into the pool if it holds one sequence only.
func longest(pages, window, windowPages int) int {
	n := pages * kv.PageTokens
	for n > 0 && kv.PagesOf(n, 1, window, windowPages) > pages {
		n -= kv.PageTokens
	}
	return n
}

// Scheduler is safe for concurrent use.
type Scheduler struct {
	eng   StepEngine
	spec  models.Spec
	o     Options
	ctx   context.Context // of the engine's steps; cancelled by Close
	close context.CancelFunc
	wake  chan struct{} // capacity 1: a request or an order arrived
	done  chan struct{} // closed when the loop has ended

	places *quota.Shared // of requests that have not ended

	mu       sync.Mutex
	incoming []*sequence
	orders   []func() // for the loop, which alone may touch the pool
	closed   bool
	stats    Stats
	pace     pace

	// Used by the loop only.
	pool            *kv.Pool
	roots           []kv.Hash   // of the model, and of each adapter
	entry           []byte      // buffer for a page and its twin
	running         []*sequence // oldest first
	waiting         []*sequence // oldest first
	batch           engine.Batch
	logits          []float32 // grown to the most rows that were asked for
	device          deviceSampling
	gate            draft.Gate
	costs           stepCosts
	stepRows        int // the most rows that the next step may have, before drafts
	sampling        []*sequence
	sampleIndex     atomic.Int32 // place in sampling
	counts          Counts
	endCount        int                  // since the last publish
	plan            planState            // of the next step
	ahead           bool                 // the next step is planned while another runs
	rebuild         bool                 // the next step rebuilds window pages
	runningAtLaunch int                  // how many sequences were running when the step began
	shares          shares               // of running
	lineup          []*sequence          // of one kind, grouped by client (lineUp)
	perClient       map[string]int       // sequences of each client in lineup
	rowLimits       []int                // the most rows of each in lineup
	recent          map[string]time.Time // when a client ran last
	stuck           *sequence            // the one that did not fit when pool.Releases was stuckAt
	stuckAt         uint64
	triedDisplacing bool  // for stuck
	failure         error // of the remaining requests when the loop ends

	out, outgoing []delivery
	outAt         time.Time // when the step that gave outgoing ended
	busy          bool      // between begin and join
	overlap       chan bool
	joined        chan struct{}
	masksReady    sync.WaitGroup // a step's LogitMask waits for it
	logitMask     []uint64       // every token that a mask of the step allows; nil: all
	united        []uint64       // buffer of logitMask
}

// New starts a scheduler. The engine must have o.Pages pages and take steps of
// o.MaxNumBatchedTokens rows. No other code may use it until Close returns.
func New(eng StepEngine, o Options) *Scheduler {
	s := &Scheduler{eng: eng, spec: eng.Spec(), wake: make(chan struct{}, 1),
		done: make(chan struct{}), perClient: map[string]int{}, recent: map[string]time.Time{},
		overlap: make(chan bool), joined: make(chan struct{})}
	windowPages := engine.WindowPages(eng.Settings().KVCacheDtype)
	s.o = o.withDefaults(s.spec, windowPages)
	s.pool = kv.NewPool(s.o.Pages, s.spec.Window, windowPages)
	s.places = quota.New("waiting room", int64(s.o.MaxNumSeqs+s.o.MaxWaiting))
	s.keepPrefixes()
	if s.o.Spill != nil {
		s.o.Spill.Join(s.pool, s.withhold)
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.failure = ErrClosed
	s.publish()
	go s.overlapLoop()
	go s.loop()
	return s
}

// Submit queues a request; it joins the next step that has room. Cancelling ctx ends it before the
// next step and frees its pages. The error is ErrQueueFull, ErrClosed, a *ContextLengthError, a
// *sample.ParamError, or describes the fault of the request.
func (s *Scheduler) Submit(ctx context.Context, r TokenRequest) (*Stream, error) {
	var forced []int32
	if r.Constraint != nil {
		forced = r.Constraint.Forced()
	}
	if err := r.check(forced, s.spec, s.o.MaxModelLen); err != nil {
		return nil, err
	}
	if r.Adapter < 0 || r.Adapter >= len(s.roots) {
		return nil, fmt.Errorf("there is no tune %d", r.Adapter)
	}
	st := newStream(ctx, len(r.Prompt), s.o.now)
	st.progress = r.Progress
	q := newSequence(r, forced, s.spec, s.o.MaxModelLen, st)
	if !s.o.NoPrefixCaching {
		q.root = s.roots[r.Adapter].Salted(r.Salt)
		q.hashes = kv.Hashes(q.root, nil, q.tokens)
		s.logPages(q)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if !q.share.Background && !s.places.Take(q.share.Client, 1) {
		return nil, ErrQueueFull
	}
	s.incoming = append(s.incoming, q)
	s.wakeUp()
	return st, nil
}

func (s *Scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends every request with ErrClosed and waits until the loop has ended. After that the engine
// is no longer used.
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
		s.finishPlan()
		s.addDrafts()
		s.assemble()
		s.publish()
		if len(s.batch.Tokens) > 0 {
			s.compute()
		}
	}
	for _, q := range slices.Concat(s.running, s.waiting) {
		s.end(q, FinishError, s.failure)
	}
	s.running, s.waiting = nil, nil
	if s.o.Spill != nil {
		s.pool.Flush()
		s.o.Spill.Leave(s.pool)
	}
	s.publish()
	s.begin(false)
	s.join()
}

// collect adds new requests to the waiting ones, and blocks while there is nothing to do. It
// returns false once the scheduler is closed; every accepted request is in a queue then.
func (s *Scheduler) collect() bool {
	for {
		if closed := s.queueIncoming(); closed {
			return false
		}
		if len(s.running)+len(s.waiting) > 0 {
			return true
		}
		s.publish()
		s.begin(false)
		s.join()
		if s.o.idle != nil {
			s.o.idle()
		}
		s.logits = nil // up to 0.8 MB a sequence: the largest unused memory
		select {
		case <-s.wake:
		case <-s.ctx.Done():
		}
	}
}

// queueIncoming appends new requests to the waiting ones, and carries out orders.
func (s *Scheduler) queueIncoming() (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, s.incoming...) // the youngest, in order
	s.stats.Waiting += len(s.incoming)
	clear(s.incoming)
	s.incoming = s.incoming[:0]
	for _, order := range s.orders {
		order()
	}
	s.orders = nil
	return s.closed
}

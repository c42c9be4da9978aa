// Counters and gauges of the scheduler, for /metrics and the status line.

package sched

import (
	"math"
	"time"
)

// Stats is a snapshot, taken once a step.
type Stats struct {
	Running int // sequences in the batch
	Waiting int // requests that wait for room, preempted ones included
	Unread  int // tokens of the running ones' prompts that are not computed yet

	PagesTotal, PagesUsed, PagesPeak int
	PagesCached                      int // unused, with a cached prefix; counted as free

	Counts

	running, waiting []int // of each model, if there are adapters
}

// Counts only grow.
type Counts struct {
	Steps           uint64
	Ahead           uint64 // steps that were planned while the previous one ran
	Rows            uint64 // computed rows: prompt tokens, recomputed tokens and decodes
	GeneratedTokens uint64 // delivered
	PromptTokens    uint64 // of admitted requests
	Preemptions     uint64

	// The prefix cache, in prompt tokens of admitted requests: how many were looked up, and how
	// many were found in whole pages and not computed.
	PrefixQueries, PrefixHits uint64
	// rows of prompt tokens computed for the first time; tokens found in part of a page count too,
	// so that no sum of counts tells of a single token
	Prefilled uint64
	// rows computed again for the window layers only: the receptive fields of hits
	Rebuilt               uint64
	Recomputed            uint64 // rows computed again after a preemption
	SwappedOut, SwappedIn uint64 // pages to and from host memory or disk

	// drafts that were tried, their tokens, and how many of these were right
	Drafts, DraftTokens, AcceptedTokens uint64

	NonFinite uint64 // requests that ended because their logits were NaN or infinite
	Faults    uint64 // steps that failed

	Stopped, Length, Cancelled, Failed uint64 // requests, by how they ended
}

// Stats returns the latest snapshot. It is safe for concurrent use and does not delay the loop.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Waiting += len(s.incoming)
	return st
}

// StatsOf is one model's part of Stats: its running and waiting sequences. All other counters are
// the engine's: model 0 has them, adapters do not.
func (s *Scheduler) StatsOf(adapter int) Stats {
	st := s.Stats()
	switch {
	case len(s.roots) == 1:
		return st
	case adapter > 0:
		return Stats{Running: st.running[adapter], Waiting: st.waiting[adapter]}
	}
	st.Running, st.Waiting = st.running[0], st.waiting[0]
	return st
}

func (s *Scheduler) ofEach(list []*sequence) []int {
	counts := make([]int, len(s.roots))
	for _, q := range list {
		counts[q.adapter]++
	}
	return counts
}

func (s *Scheduler) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.step(s.o.now(), s.endCount, s.stats.Running > 0)
	s.endCount = 0
	s.stats = Stats{
		Running: len(s.running), Waiting: len(s.waiting),
		PagesTotal: s.pool.Total(), PagesUsed: s.pool.Used(), PagesPeak: s.pool.Peak(),
		PagesCached: s.pool.Cached(),
		Counts:      s.counts,
	}
	for _, q := range s.running {
		s.stats.Unread += max(q.prompt-q.computed, 0)
	}
	if len(s.roots) > 1 {
		s.stats.running, s.stats.waiting = s.ofEach(s.running), s.ofEach(s.waiting)
	}
}

// How fast requests have ended lately, from which a refused client's waiting time is estimated.

// paceMemory is the time constant of the average: requests that ended so long ago weigh 1/e.
const paceMemory = 30 * time.Second

// The bounds of RetryAfter: with less a client asks all the time, with more it has given up.
const (
	retrySoonest = time.Second
	retryLatest  = time.Minute
)

// pace is an exponentially weighted rate. Only time in which something ran counts, so an idle night
// does not make a server look slow.
type pace struct {
	requests float64 // requests
	spent    float64 // seconds
	last     time.Time
}

// step adds the requests that have ended since the last call; busy tells whether anything ran.
func (p *pace) step(now time.Time, n int, busy bool) {
	if passed := now.Sub(p.last).Seconds(); busy && !p.last.IsZero() && passed > 0 {
		fade := math.Exp(-passed / paceMemory.Seconds())
		p.requests, p.spent = p.requests*fade, p.spent*fade+passed
	}
	p.requests += float64(n)
	p.last = now
}

// wait is how long so many requests will take. Until the first one has ended, it assumes that one
// is about to.
func (p *pace) wait(requests int) time.Duration {
	seconds := float64(requests) * p.spent / max(p.requests, 1)
	return time.Duration(min(seconds, retryLatest.Seconds()) * float64(time.Second))
}

// RetryAfter is after how long a request that is refused now (ErrQueueFull) may be accepted: the
// number of waiting requests, at the rate at which requests have ended lately. It is in whole
// seconds, 1 to 60, and safe for concurrent use.
func (s *Scheduler) RetryAfter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.pace.wait(s.stats.Waiting + len(s.incoming))
	return min(max((wait+time.Second-1).Truncate(time.Second), retrySoonest), retryLatest)
}

// Counters and gauges of the scheduler, for /metrics and the status line.

package sched

// Stats is a snapshot, taken once a step.
type Stats struct {
	Running int // sequences in the batch
	Waiting int // requests that wait for room, preempted ones included

	PagesTotal, PagesUsed, PagesPeak int
	PagesCached                      int // unused, with a cached prefix; counted as free

	Counts
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
	// many were found and not computed.
	PrefixQueries, PrefixHits uint64
	Prefilled                 uint64 // rows of prompt tokens computed for the first time
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

func (s *Scheduler) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.step(s.o.now(), s.ended, s.stats.Running > 0)
	s.live -= s.ended
	s.ended = 0
	if s.draining && s.live == 0 {
		select {
		case <-s.drained:
		default:
			close(s.drained)
		}
	}
	s.stats = Stats{
		Running: len(s.running), Waiting: len(s.waiting),
		PagesTotal: s.pool.Total(), PagesUsed: s.pool.Used(), PagesPeak: s.pool.Peak(),
		PagesCached: s.pool.Cached(),
		Counts:      s.counts,
	}
}

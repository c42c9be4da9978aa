// What the scheduler has done and is doing, for /metrics and the status line.

package sched

// Stats is a snapshot, taken once a step.
type Stats struct {
	Running int // sequences in the batch
	Waiting int // requests that wait for room, preempted ones included

	PagesTotal, PagesUsed, PagesPeak int
	PagesCached                      int // in no table, but with a known prefix; they count as free

	Counts
}

// Counts only grow.
type Counts struct {
	Steps           uint64
	Ahead           uint64 // steps whose rows were granted while the one before ran
	Rows            uint64 // computed: prompt tokens, recomputed ones and decodes
	GeneratedTokens uint64 // delivered
	PromptTokens    uint64 // of admitted requests
	Preemptions     uint64

	// The prefix cache, in tokens of admitted requests: how many were looked up, and how many had
	// not to be computed.
	PrefixQueries, PrefixHits uint64
	Prefilled                 uint64 // rows of prompt tokens computed for the first time
	// rows computed again for the window layers alone: receptive fields of hits
	Rebuilt               uint64
	Recomputed            uint64 // rows computed again after a preemption
	SwappedOut, SwappedIn uint64 // pages to and from host memory or disk

	NonFinite uint64 // requests that ended in logits that are no numbers
	Faults    uint64 // steps that failed

	Stopped, Length, Cancelled, Failed uint64 // requests, by how they ended
}

// Stats may be asked at any time and costs the loop nothing.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Waiting += len(s.incoming)
	return st
}

// publish makes the loop's state visible.
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
		Counts: s.counts,
	}
}

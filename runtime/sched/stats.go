// What the scheduler has done and is doing, for /metrics and the status line.

package sched

// Stats is a snapshot, taken once a step.
type Stats struct {
	Running int // sequences in the batch
	Waiting int // requests that wait for room, preempted ones included

	PagesTotal, PagesUsed, PagesPeak int

	Counts
}

// Counts only grow.
type Counts struct {
	Steps           uint64
	Rows            uint64 // computed: prompt tokens, recomputed ones and decodes
	GeneratedTokens uint64 // delivered
	PromptTokens    uint64 // of admitted requests
	Preemptions     uint64

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
	s.live -= s.ended
	s.ended = 0
	s.stats = Stats{
		Running: len(s.running), Waiting: len(s.waiting),
		PagesTotal: s.pool.Total(), PagesUsed: s.pool.Used(), PagesPeak: s.pool.Peak(),
		Counts: s.counts,
	}
}

// The policy: who runs in the next step, and with how many rows.
//
//	waiting --admit--> running --grant--> rows of the step
//	   ^                  |
//	   +-----preempt------+   (youngest first; its pages are dropped, its tokens kept)
//
// Age decides everything: both queues are oldest first, and every running sequence is older than
// every waiting one, since admission takes the oldest and preemption the youngest. Pages are given
// oldest first. The oldest sequence can always take what it needs, and no request is let in that
// would not fit alone, so every step moves the oldest on, and each request ends.

package sched

import (
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/kv"
)

// drop ends the sequences whose request was cancelled and frees their pages.
func (s *Scheduler) drop(queue []*sequence) []*sequence {
	return slices.DeleteFunc(queue, func(q *sequence) bool {
		if q.stream.ctx.Err() == nil {
			return false
		}
		s.end(q, FinishCancelled, nil)
		return true
	})
}

// admit moves waiting sequences to running while there is room, oldest first: none overtakes one
// that does not fit yet. What the cache has of a sequence it takes with it.
func (s *Scheduler) admit(now time.Time) {
	if len(s.waiting) == 0 || len(s.running) == s.o.MaxNumSeqs {
		return
	}
	// While no page comes free, what did not fit does not fit.
	if len(s.running) > 0 && s.stuck == s.waiting[0] && s.stuckAt == s.pool.Given() {
		return
	}
	s.stuck = nil
	room := s.pool.Free()
	for _, q := range s.running {
		room -= s.outlook(q)
	}
	n := 0
	for _, q := range s.waiting {
		if len(s.running) == s.o.MaxNumSeqs || !s.restored(q) {
			break
		}
		free := s.pool.Free()
		s.adopt(q)
		room -= free - s.pool.Free()
		if need := s.outlook(q); len(s.running) == 0 || need <= room {
			room -= need
		} else {
			s.release(q)
			s.stuck, s.stuckAt = q, s.pool.Given()
			break
		}
		if q.stream.admit(now, min(q.computed, q.prompt)) {
			s.counts.PromptTokens += uint64(q.prompt)
			if !s.o.NoPrefixCaching {
				s.counts.PrefixQueries += uint64(q.prompt)
				s.counts.PrefixHits += uint64(min(q.computed, q.prompt))
			}
		}
		s.running = append(s.running, q)
		n++
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
}

// adopt gives a waiting sequence the pages that hold the beginning of its tokens. The last token is
// always computed, since the next one comes out of it.
func (s *Scheduler) adopt(q *sequence) {
	q.table.Cuts(q.cuts)
	if s.o.NoPrefixCaching {
		return
	}
	q.hashes = kv.Hashes(s.root, q.hashes, q.tokens)
	h := s.pool.Adopt(&q.table, q.tokens, q.hashes, len(q.tokens)-1)
	q.computed, q.seen = h.Rebuild, max(q.seen, h.Tokens)
	if h.Rebuild < h.Tokens {
		q.rebuildFrom, q.rebuildTo = h.Rebuild, h.Tokens
	}
}

// release gives back the pages of q, which keep what was computed of it until they are needed.
func (s *Scheduler) release(q *sequence) {
	computed := q.tokens[:q.computed]
	if q.rebuildTo > 0 {
		computed = nil
	}
	s.pool.Release(&q.table, computed)
	q.computed, q.rows, q.flying, q.rebuildFrom, q.rebuildTo = 0, 0, 0, 0, 0
}

// outlook is how many pages a sequence still needs for what it knows, and for the next page it
// writes. Chunks of one page are reckoned with, since grants shrink to that where pages are short.
func (s *Scheduler) outlook(q *sequence) int {
	return max(0, s.pool.PagesFor(len(q.tokens)+kv.PageTokens, kv.PageTokens)-q.table.Pages())
}

// planned says what the rows that were granted ahead are worth when the step before is over.
type planned uint8

const (
	none     planned = iota // grant again
	tight                   // they stand, unless somebody ends: a prefill would have taken more
	complete                // they stand: everybody has what there is to do
)

// grant gives each running sequence its rows: first one to each that decodes, then the rest of the
// step in fair shares to those that prefill. A share is at least a page, so with many of them the
// younger ones wait; what a share leaves over goes to the oldest.
//
// Sequences whose window layers are rebuilt have steps of their own, since such a step runs another
// program. These take turns with the others, so nobody waits for more than one of them.
//
// Ahead, while a step runs, it takes free pages only. s.plan says what came of it.
func (s *Scheduler) grant(ahead bool) {
	prefills, rebuilds := 0, 0
	for _, q := range s.running {
		q.rows = 0
		if q.rebuildTo > 0 {
			rebuilds++
		} else if q.prefills() {
			prefills++
		}
	}
	s.plan, s.ahead = none, ahead
	if rebuilds > 0 {
		if ahead {
			return // where a rebuild will end is looked at when it is there
		}
		if !s.rebuild || rebuilds == len(s.running) {
			s.grantRebuild()
			s.rebuild = true
			return
		}
	}
	s.plan = complete
	if !ahead {
		s.rebuild = false
	}
	budget := s.o.MaxNumBatchedTokens
	// running loses its youngest while pages are short, hence no range over it
	for i := 0; i < len(s.running); i++ {
		if q := s.running[i]; q.decodes() {
			q.rows = s.fit(q, 1)
			budget -= q.rows
		}
	}
	if prefills == 0 {
		return
	}
	if budget == 0 {
		s.plan = min(s.plan, tight)
		return
	}
	share := budget / min(prefills, max(1, budget/kv.PageTokens))
	spare := budget
	for _, q := range s.running {
		if q.prefills() {
			spare -= min(share, q.left(), spare)
		}
	}
	for i := 0; i < len(s.running) && budget > 0; i++ {
		q := s.running[i]
		if !q.prefills() {
			continue
		}
		rows := min(share, q.left(), budget)
		more := min(spare, q.left()-rows, budget-rows)
		spare -= more
		q.rows = s.fit(q, rows+more)
		budget -= q.rows
	}
	for _, q := range s.running {
		if q.prefills() && q.rows < q.left() {
			s.plan = min(s.plan, tight)
		}
	}
}

// grantRebuild gives the rows of a step to the sequences that are rebuilt, oldest first.
func (s *Scheduler) grantRebuild() {
	budget := s.o.MaxNumBatchedTokens
	for i := 0; i < len(s.running) && budget > 0; i++ {
		if q := s.running[i]; q.rebuildTo > 0 {
			q.rows = s.fitRebuild(q, min(budget, q.rebuildTo-q.computed))
			budget -= q.rows
		}
	}
}

// fitRebuild is fit for window pages alone.
func (s *Scheduler) fitRebuild(q *sequence, want int) int {
	for {
		rows := min(want, s.pool.WindowReach(&q.table)-q.computed)
		if rows > 0 && s.pool.ReserveWindow(&q.table, q.rebuildFrom, q.computed+rows) {
			return rows
		}
		if s.running[len(s.running)-1] == q {
			return 0
		}
		s.preempt()
	}
}

// fit reserves pages for the next rows of q, fewer where pages are short. Where not one fits,
// younger sequences are preempted; 0 means that q is the youngest itself and waits for pages to
// come free, or that the rows are granted ahead.
func (s *Scheduler) fit(q *sequence, want int) int {
	for {
		reach := s.pool.Reach(&q.table) - q.at()
		rows := min(want, reach)
		if rows < want {
			s.plan = none
		}
		if rows > 0 && s.pool.Reserve(&q.table, q.at()+rows) {
			return rows
		}
		if s.ahead || s.running[len(s.running)-1] == q {
			s.plan = none
			return 0
		}
		s.preempt()
	}
}

// preempt sends the youngest running sequence back to waiting. Its tokens stay. What is still in
// the pages when it comes back, or was brought to host memory from there, is taken again; the rest
// is computed again, and since a choice depends on positions alone, its text is the same.
func (s *Scheduler) preempt() {
	last := len(s.running) - 1
	q := s.running[last]
	s.running = slices.Delete(s.running, last, last+1)
	s.release(q)
	s.waiting = slices.Insert(s.waiting, 0, q)
	s.counts.Preemptions++
}

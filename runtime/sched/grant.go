// The policy: who runs in the next step, and with how many rows.
//
//	waiting --admit--> running --grant--> rows of the step
//	   ^                  |
//	   +-----preempt------+   (youngest first; its pages are dropped, its tokens kept)
//
// Age decides everything: both queues are oldest first, and every running sequence is older than every waiting one, since
// admission takes the oldest and preemption the youngest. Pages are given oldest first. The oldest sequence can always
// take what it needs, and no request is let in that would not fit alone, so every step moves the oldest on, and each
// request ends.

package sched

import (
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/kv"
)

// drop ends the sequences whose request was cancelled and frees their pages.
func (s *Scheduler) drop(queue []*sequence, now time.Time) []*sequence {
	return slices.DeleteFunc(queue, func(q *sequence) bool {
		if q.stream.ctx.Err() == nil {
			return false
		}
		s.finish(q, FinishCancelled, nil, now)
		return true
	})
}

// admit moves waiting sequences to running while there is room, oldest first: none overtakes one that does not fit yet.
func (s *Scheduler) admit(now time.Time) {
	if len(s.waiting) == 0 {
		return
	}
	room := s.pool.Free()
	for _, q := range s.running {
		room -= s.outlook(q)
	}
	n := 0
	for _, q := range s.waiting {
		need := s.outlook(q)
		if len(s.running) == s.o.MaxSeqs || len(s.running) > 0 && need > room {
			break
		}
		room -= need
		if q.stream.admit(now) {
			s.counts.PromptTokens += uint64(q.prompt)
		}
		s.running = append(s.running, q)
		n++
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
}

// outlook is how many pages a sequence still needs for what it knows, and for the next page it writes. Chunks of one
// page are reckoned with, since grants shrink to that where pages are short.
func (s *Scheduler) outlook(q *sequence) int {
	return max(0, kv.PagesFor(len(q.tokens)+kv.PageTokens, kv.PageTokens, s.spec.Window)-q.table.Pages())
}

// grant gives each running sequence its rows: first one to each that decodes, then the rest of the step in fair shares to
// those that prefill. A share is at least a page, so with many of them the younger ones wait; what a share leaves over
// goes to the oldest.
func (s *Scheduler) grant() {
	budget := s.o.MaxBatchedTokens
	prefills := 0
	for _, q := range s.running {
		q.rows = 0
		if q.left() > 1 {
			prefills++
		}
	}
	// running loses its youngest while pages are short, hence no range over it
	for i := 0; i < len(s.running); i++ {
		if q := s.running[i]; q.left() == 1 {
			q.rows = s.fit(q, 1)
			budget -= q.rows
		}
	}
	if prefills == 0 || budget == 0 {
		return
	}
	share := budget / min(prefills, max(1, budget/kv.PageTokens))
	spare := budget
	for _, q := range s.running {
		if q.left() > 1 {
			spare -= min(share, q.left(), spare)
		}
	}
	for i := 0; i < len(s.running) && budget > 0; i++ {
		q := s.running[i]
		if q.left() <= 1 {
			continue
		}
		rows := min(share, q.left(), budget)
		more := min(spare, q.left()-rows, budget-rows)
		spare -= more
		q.rows = s.fit(q, rows+more)
		budget -= q.rows
	}
}

// fit reserves pages for the next rows of q, fewer where pages are short. Where not one fits, younger sequences are
// preempted; 0 means that q is the youngest itself and waits for pages to come free.
func (s *Scheduler) fit(q *sequence, want int) int {
	for {
		reach := q.table.Room() + s.pool.Free()/2*kv.PageTokens - q.computed
		if rows := min(want, reach); rows > 0 && s.pool.Reserve(&q.table, q.computed+rows) {
			return rows
		}
		if s.running[len(s.running)-1] == q {
			return 0
		}
		s.preempt()
	}
}

// preempt sends the youngest running sequence back to waiting. Its tokens stay; they are computed again later, and since
// a choice depends on positions alone, its text is the same.
func (s *Scheduler) preempt() {
	last := len(s.running) - 1
	q := s.running[last]
	s.running = slices.Delete(s.running, last, last+1)
	s.pool.Release(&q.table)
	q.computed, q.rows = 0, 0
	s.waiting = slices.Insert(s.waiting, 0, q)
	s.counts.Preemptions++
}

// The policy: who runs in the next step, and with how many rows.
//
//	waiting --admit--> running --grant--> rows of the step
//	   ^                  |
//	   +-----preempt------+   (youngest first; its pages are dropped, its tokens kept)
//
// Running sequences are in the order of their admission, and pages are given to the oldest first.
// The oldest is never displaced, so it always gets its pages. A request that would not fit alone is
// refused, so every step advances the oldest sequence, or others of its client whose turn it is.
// share.go decides which is admitted next: clients without a running sequence are first, then the
// oldest, so every request ends.

package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/kv"
)

// dropCancelled ends the sequences whose request was cancelled and frees their pages.
func (s *Scheduler) dropCancelled(queue []*sequence) []*sequence {
	return slices.DeleteFunc(queue, func(q *sequence) bool {
		if q.stream.ctx.Err() == nil {
			return false
		}
		s.pool.WithholdTable(&q.table) // it has tokens that its reader does not know of
		s.end(q, FinishCancelled, nil)
		return true
	})
}

// admit moves waiting sequences to running while there is room, in the order of share.go. If one
// does not fit, later ones wait too. An admitted sequence gets the cached pages of its prefix.
// While a step runs, no sequence is displaced.
func (s *Scheduler) admit(now time.Time, ahead bool) (displaced bool) {
	hasOthers, displaced := s.yield(ahead)
	for len(s.waiting) > 0 {
		next := s.fairest()
		q := s.waiting[next]
		if q.share.Background && (hasOthers || len(s.running) > 0 &&
			s.gate.Costs(len(s.running)+1) > patience.Seconds()) { // others wait for a step's end
			return displaced
		}
		// The sequence that did not fit last time still does not, unless a page was freed since or
		// another can be displaced only now.
		full := len(s.running) == s.o.MaxNumSeqs
		stuck := s.stuck == q && s.stuckAt == s.pool.Releases() && (ahead || s.triedDisplacing)
		if len(s.running) > 0 && stuck || full && ahead || !s.restorePrefix(q) {
			return displaced
		}
		if full && !s.displace(q) {
			return displaced
		}
		s.stuck, displaced = nil, displaced || full
		s.adopt(q)
		for len(s.running) > 0 && s.pagesNeeded(q) > s.spare() {
			if ahead || !s.displace(q) {
				s.release(q)
				s.stuck, s.stuckAt, s.triedDisplacing = q, s.pool.Releases(), !ahead
				return displaced
			}
			displaced = true
		}
		next = slices.Index(s.waiting, q) // displaced sequences are before it
		s.waiting = slices.Delete(s.waiting, next, next+1)
		cached := min(q.computed, q.prompt)
		hits := kv.WholePages(cached)
		if q.stream.admit(now, hits) {
			s.counts.PromptTokens += uint64(q.prompt)
			if !s.o.NoPrefixCaching {
				s.counts.PrefixQueries += uint64(q.prompt)
				s.counts.PrefixHits += uint64(hits)
				s.counts.Prefilled += uint64(cached - hits)
			}
		}
		s.running, q.lastStep = append(s.running, q), s.counts.Steps
	}
	return displaced
}

// spare is how many pages are left when all running sequences have theirs.
func (s *Scheduler) spare() int {
	spare := s.pool.Free()
	for _, q := range s.running {
		spare -= s.pagesNeeded(q)
	}
	return spare
}

// adopt gives a waiting sequence the cached pages of its prefix. The last token is always computed,
// since its logits are needed for the next token.
func (s *Scheduler) adopt(q *sequence) {
	q.table.Cuts(q.cuts)
	q.table.Root(q.root)
	q.table.InMemory(q.inMemory)
	if s.o.NoPrefixCaching || q.score.enabled {
		return
	}
	q.hashes = kv.Hashes(q.root, q.hashes, q.tokens)
	h := s.pool.Adopt(&q.table, q.tokens, q.hashes, len(q.tokens)-1)
	q.computed, q.seen = h.Rebuild, max(q.seen, h.Tokens)
	if h.Rebuild < h.Tokens {
		q.rebuildFrom, q.rebuildTo = h.Rebuild, h.Tokens
	}
}

// release gives back the pages of q. Their contents stay in the prefix cache until the pages are
// needed for something else.
func (s *Scheduler) release(q *sequence) {
	computed := q.tokens[:q.computed]
	if q.rebuildTo > 0 {
		computed = nil
	}
	s.logPages(q)
	s.pool.Release(&q.table, computed)
	q.computed, q.rows, q.inFlight, q.rebuildFrom, q.rebuildTo = 0, 0, 0, 0, 0
}

// pagesNeeded is how many pages a sequence still needs for its known tokens and one more page. It
// assumes chunks of one page, since grants shrink to that when pages are short.
func (s *Scheduler) pagesNeeded(q *sequence) int {
	return max(0, s.pool.PagesFor(len(q.tokens)+kv.PageTokens, kv.PageTokens)-q.table.Pages())
}

// planState says whether rows that were granted ahead can still be used once the previous step is
// over.
type planState uint8

const (
	none     planState = iota // no: grant again
	tight                     // yes, unless a sequence ends: a prefill could then take more rows
	complete                  // yes: every sequence has all the rows that it can use
)

// grant gives each running sequence its rows of the next step: first one row to each that decodes,
// or whose turn it is (turns.go), then the remaining rows to those that prefill (grantPrefill).
//
// Sequences whose window layers are rebuilt get steps of their own, since such a step runs another
// program. These steps alternate with the others, so no sequence waits for more than one of them.
//
// With ahead a step is still running: grant then uses free pages only, and s.plan says whether the
// result can be used.
func (s *Scheduler) grant(ahead bool) {
	prefills, rebuilds, isAlone := 0, 0, s.isAlone()
	for _, q := range s.running {
		q.rows, q.rests = 0, false
		if q.rebuildTo > 0 {
			rebuilds++
		} else if q.prefills() {
			prefills++
		}
	}
	s.plan, s.ahead = none, ahead
	if rebuilds > 0 {
		if ahead {
			return // rebuilds are not planned ahead
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
	if !isAlone && s.takeTurns() {
		s.plan = tight
	}
	budget := s.o.MaxNumBatchedTokens
	// not a range loop: fit may preempt the youngest and shorten s.running
	for i := 0; i < len(s.running); i++ {
		if q := s.running[i]; q.decodes() && !q.rests {
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
	decodes := s.o.MaxNumBatchedTokens - budget
	if decodes > 0 || !isAlone || s.running[0].share.Background {
		budget = max(s.withinPatience(decodes, budget), min(budget, prefills)) // a row for each
	}
	s.stepRows = decodes + budget
	s.grantPrefill(budget)
}

// grantPrefill divides budget rows among the clients that prefill, in equal shares. Of a client's
// sequences those with the least left to compute are first, so that the first tokens of a burst
// come one after the other and not all at its end; its oldest has a page in each step, so that it
// ends. Rows that a client does not need go to the first that does.
func (s *Scheduler) grantPrefill(budget int) {
	s.lineUp((*sequence).prefills)
	s.rowLimits = s.rowLimits[:0]
	clients, remaining, scored := len(s.perClient), budget, false
	for list := s.lineup; len(list) > 0; clients-- {
		n := s.perClient[list[0].share.Client]
		part, oldest := remaining/clients, list[0]
		slices.SortStableFunc(list[:n], func(a, b *sequence) int {
			return cmp.Compare(a.remaining(), b.remaining())
		})
		oldestMost := s.mostRows(oldest, &scored) // first, since one has scores in a step
		reserve := min(kv.PageTokens, oldestMost)
		for _, q := range list[:n] {
			most := oldestMost
			if q == oldest {
				reserve = 0
			} else {
				most = s.mostRows(q, &scored)
			}
			q.rows = max(0, min(most, part-reserve))
			part, remaining, s.rowLimits = part-q.rows, remaining-q.rows, append(s.rowLimits, most)
		}
		list = list[n:]
	}
	for i, q := range s.lineup {
		extra := min(remaining, s.rowLimits[i]-q.rows)
		q.rows, remaining = q.rows+extra, remaining-extra
	}
	// not a range loop, as in grant
	for i := 0; i < len(s.running); i++ {
		if q := s.running[i]; q.prefills() && q.rows > 0 {
			q.rows = s.fit(q, q.rows)
		}
	}
	for _, q := range s.running {
		if q.prefills() && q.rows < q.remaining() {
			s.plan = min(s.plan, tight)
		}
	}
}

// grantRebuild gives all rows of a step to the sequences that are rebuilt, oldest first.
func (s *Scheduler) grantRebuild() {
	budget := s.o.MaxNumBatchedTokens
	for i := 0; i < len(s.running) && budget > 0; i++ {
		if q := s.running[i]; q.rebuildTo > 0 {
			q.rows = s.fitRebuild(q, min(budget, q.rebuildTo-q.computed))
			budget -= q.rows
		}
	}
}

// fitRebuild is fit for a rebuild, which needs window pages only.
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

// fit reserves pages for the next rows of q and returns how many rows fit: fewer than want if pages
// are short. If not even one fits, younger sequences are preempted. 0 means that q is the youngest
// and must wait for free pages, or that rows are granted ahead, when nothing may be preempted.
func (s *Scheduler) fit(q *sequence, want int) int {
	for {
		reach := s.pool.Reach(&q.table) - q.position()
		rows := min(want, reach)
		if rows < want {
			s.plan = none
		}
		if rows > 0 && s.pool.Reserve(&q.table, q.position()+rows) {
			return rows
		}
		if s.ahead || s.running[len(s.running)-1] == q {
			s.plan = none
			return 0
		}
		s.preempt()
	}
}

// preempt moves the youngest running sequence back to the waiting ones. Its tokens are kept. When
// it is admitted again, it reuses cached and swapped-out pages, and computes the others again.
// Sampling depends on seed and position only, so its text does not change.
func (s *Scheduler) preempt() { s.preemptAt(len(s.running) - 1) }

func (s *Scheduler) preemptAt(i int) {
	q := s.running[i]
	s.running = slices.Delete(s.running, i, i+1)
	s.release(q)
	s.waiting = slices.Insert(s.waiting, 0, q)
	s.counts.Preemptions++
}

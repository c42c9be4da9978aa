// If several clients run, the sequences of one that decodes many take turns. So a step is short,
// and the others do not wait for all of its rows. A client that has run alone for a while has every
// row; until then another may return, and finds a short step.
//
// What must stay true:
//   - Each client has as many rows as the one that wants the fewest, and rows that one does not
//     need go to the others.
//   - The longest waiting sequence is next, so none waits for more than one turn of its client's.

package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// shortStep is a step time that never needs shortening, whatever its part of a first token.
	shortStep = 10 * time.Millisecond
	// recency is how long a client that has left still counts.
	recency = 2 * time.Second
)

// isAlone reports whether one client runs, or the background, and no other has within recency.
func (s *Scheduler) isAlone() bool {
	now := s.o.now()
	for _, q := range s.running {
		if !q.share.Background {
			s.recent[q.share.Client] = now
		}
	}
	maps.DeleteFunc(s.recent, func(_ string, t time.Time) bool { return now.Sub(t) > recency })
	return len(s.recent) <= 1
}

// lineUp puts the running sequences of a kind into s.lineup, grouped by client: clients with few
// first, and the oldest of each client first.
func (s *Scheduler) lineUp(kind func(*sequence) bool) {
	s.lineup = s.lineup[:0]
	clear(s.perClient)
	for _, q := range s.running {
		if kind(q) {
			s.lineup = append(s.lineup, q)
			s.perClient[q.share.Client]++
		}
	}
	slices.SortStableFunc(s.lineup, func(a, b *sequence) int {
		return cmp.Or(cmp.Compare(s.perClient[a.share.Client], s.perClient[b.share.Client]),
			cmp.Compare(a.share.Client, b.share.Client))
	})
}

// takeTurns marks the sequences that rest in the next step, so that clients share it, and reports
// whether any rests.
func (s *Scheduler) takeTurns() (rest bool) {
	prefill := 0
	for _, q := range s.running {
		if q.prefills() {
			prefill += q.remaining()
		}
	}
	s.lineUp((*sequence).decodes)
	clients, least := len(s.perClient), len(s.lineup)
	for _, n := range s.perClient {
		least = min(least, n)
	}
	if len(s.recent) > clients { // one that does not decode now will want a row
		least = 1
	}
	width := s.width(clients*least, prefill)
	if width == len(s.lineup) {
		return false
	}
	for queue := s.lineup; len(queue) > 0; clients-- {
		n := s.perClient[queue[0].share.Client]
		slices.SortStableFunc(queue[:n], func(a, b *sequence) int {
			return cmp.Compare(a.lastStep, b.lastStep)
		})
		rows := min(n, max(1, width/clients))
		for _, q := range queue[rows:n] {
			q.rests = true
		}
		queue, width = queue[n:], width-rows
	}
	return true
}

// width is the largest number of decode rows for which a step is short, or takes at most 1.5 times
// as long as with equal rows; prefill rows count in both. It is equal while no step with more rows
// was measured.
func (s *Scheduler) width(equal, prefill int) (rows int) {
	prefill = min(prefill, s.withinPatience(equal, s.o.MaxNumBatchedTokens-equal))
	most := max(shortStep.Seconds(), 1.5*s.gate.Costs(equal+prefill))
	for rows = equal; rows < len(s.lineup); rows++ {
		if costs := s.gate.Costs(rows + 1 + prefill); costs == 0 || costs > most {
			break
		}
	}
	return rows
}

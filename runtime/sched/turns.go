// Where several clients run, the sequences of one that decodes many take turns. So a step is short,
// and the others do not wait for all of its rows. A client that has run alone for a while has every
// row; until then another may come back, and finds a short step.
//
// What must stay true:
//   - Each client has as many rows as the one that wants the fewest, and rows that one does not
//     need go to the others.
//   - Whoever waited longest is next, so no sequence waits for more than one turn of its client's.

package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// short is a step that nobody minds, whatever its part of a first token.
	short = 10 * time.Millisecond
	// lately is how long a client that has left is waited for.
	lately = 2 * time.Second
)

// alone tells whether only one client runs, and only one has lately.
func (s *Scheduler) alone() bool {
	now := s.o.now()
	for _, q := range s.running {
		s.recent[q.share.Client] = now
	}
	maps.DeleteFunc(s.recent, func(_ string, at time.Time) bool { return now.Sub(at) > lately })
	return len(s.recent) == 1
}

// lineUp puts the running sequences of a kind into s.turn: those of clients that have few first,
// and the oldest of a client.
func (s *Scheduler) lineUp(kind func(*sequence) bool) {
	s.turn = s.turn[:0]
	clear(s.each)
	for _, q := range s.running {
		if kind(q) {
			s.turn = append(s.turn, q)
			s.each[q.share.Client]++
		}
	}
	slices.SortStableFunc(s.turn, func(a, b *sequence) int {
		return cmp.Or(cmp.Compare(s.each[a.share.Client], s.each[b.share.Client]),
			cmp.Compare(a.share.Client, b.share.Client))
	})
}

// takeTurns marks the sequences of several clients that rest in the next step, and tells whether
// any does.
func (s *Scheduler) takeTurns() (rest bool) {
	prefill := 0
	for _, q := range s.running {
		if q.prefills() {
			prefill += q.left()
		}
	}
	s.lineUp((*sequence).decodes)
	clients, least := len(s.each), len(s.turn)
	for _, n := range s.each {
		least = min(least, n)
	}
	if len(s.recent) > clients { // one that does not decode now will want a row
		least = 1
	}
	width := s.width(clients*least, prefill)
	if width == len(s.turn) {
		return false
	}
	for left := s.turn; len(left) > 0; clients-- {
		n := s.each[left[0].share.Client]
		slices.SortStableFunc(left[:n], func(a, b *sequence) int {
			return cmp.Compare(a.ran, b.ran)
		})
		rows := min(n, max(1, width/clients))
		for _, q := range left[rows:n] {
			q.rests = true
		}
		left, width = left[n:], width-rows
	}
	return true
}

// width is the most rows of sequences that decode with which a step is short, or takes no more than
// half as long again as with equal rows alone; either step has the rows that prefill too. While no
// step had so few rows, its time is unknown, and width is equal.
func (s *Scheduler) width(equal, prefill int) (rows int) {
	prefill = min(prefill, s.o.MaxNumBatchedTokens-equal)
	most := max(short.Seconds(), 1.5*s.gate.Costs(equal+prefill))
	for rows = equal; rows < len(s.turn); rows++ {
		if costs := s.gate.Costs(rows + 1 + prefill); costs == 0 || costs > most {
			break
		}
	}
	return rows
}

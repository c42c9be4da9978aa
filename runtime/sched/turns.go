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
	// short is the length of a step that is always acceptable, whatever its part of a first token.
	short = 10 * time.Millisecond
	// lately is how long a client that has left is waited for.
	lately = 2 * time.Second
)

// isAlone tells whether only one client runs, and only one has lately.
func (s *Scheduler) isAlone() bool {
	now := s.o.now()
	for _, q := range s.running {
		s.recent[q.share.Client] = now
	}
	maps.DeleteFunc(s.recent, func(_ string, last time.Time) bool { return now.Sub(last) > lately })
	return len(s.recent) == 1
}

// lineUp puts the running sequences of a kind into s.turn: those of clients that have few first,
// and the oldest of a client.
func (s *Scheduler) lineUp(kind func(*sequence) bool) {
	s.turn = s.turn[:0]
	clear(s.perClient)
	for _, q := range s.running {
		if kind(q) {
			s.turn = append(s.turn, q)
			s.perClient[q.share.Client]++
		}
	}
	slices.SortStableFunc(s.turn, func(a, b *sequence) int {
		return cmp.Or(cmp.Compare(s.perClient[a.share.Client], s.perClient[b.share.Client]),
			cmp.Compare(a.share.Client, b.share.Client))
	})
}

// takeTurns marks the sequences of several clients that rest in the next step, and tells whether
// any does.
func (s *Scheduler) takeTurns() (rest bool) {
	prefill := 0
	for _, q := range s.running {
		if q.prefills() {
			prefill += q.remaining()
		}
	}
	s.lineUp((*sequence).decodes)
	clients, least := len(s.perClient), len(s.turn)
	for _, n := range s.perClient {
		least = min(least, n)
	}
	if len(s.recent) > clients { // one that does not decode now will want a row
		least = 1
	}
	width := s.width(clients*least, prefill)
	if width == len(s.turn) {
		return false
	}
	for queue := s.turn; len(queue) > 0; clients-- {
		n := s.perClient[queue[0].share.Client]
		slices.SortStableFunc(queue[:n], func(a, b *sequence) int {
			return cmp.Compare(a.lastStep, b.lastStep)
		})
		rows := min(n, max(1, width/clients))
		for _, q := range queue[rows:n] {
			q.skipsTurn = true
		}
		queue, width = queue[n:], width-rows
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

// Where several clients run, the sequences of one that decodes many take turns. So a step is short,
// and the others do not wait for all of its rows. A client that runs alone has every row.
//
// What must stay true:
//   - Each client has as many rows as the one that wants the fewest, and rows that one does not
//     need go to the others.
//   - Whoever waited longest is next, so no sequence waits for more than one turn of its client's.

package sched

import (
	"cmp"
	"slices"
	"time"
)

// short is a step that nobody minds: 40 tokens a second is faster than anybody reads.
const short = 25 * time.Millisecond

// takeTurns marks the sequences of several clients that rest in the next step, and tells whether
// any does.
func (s *Scheduler) takeTurns() (rest bool) {
	prefill := 0
	s.decoding = s.decoding[:0]
	clear(s.decode)
	for _, q := range s.running {
		if q.decodes() {
			s.decoding = append(s.decoding, q)
			s.decode[q.share.Client]++
		} else if q.prefills() {
			prefill += q.left()
		}
	}
	clients, least := len(s.decode), len(s.decoding)
	for _, n := range s.decode {
		least = min(least, n)
	}
	width := s.width(clients*least, prefill)
	if width == len(s.decoding) {
		return false
	}
	slices.SortStableFunc(s.decoding, func(a, b *sequence) int { // those who need few first
		return cmp.Or(cmp.Compare(s.decode[a.share.Client], s.decode[b.share.Client]),
			cmp.Compare(a.share.Client, b.share.Client), cmp.Compare(a.ran, b.ran))
	})
	for left := s.decoding; len(left) > 0; clients-- {
		n := s.decode[left[0].share.Client]
		rows := min(n, max(1, width/clients))
		for _, q := range left[rows:n] {
			q.rests = true
		}
		left, width = left[n:], width-rows
	}
	return true
}

// width is the most rows of sequences that decode with which a step is short, or takes no more than
// twice what it takes with equal rows alone; either step has the rows that prefill too. While no
// step had so few rows, its time is unknown, and width is equal.
func (s *Scheduler) width(equal, prefill int) (rows int) {
	prefill = min(prefill, s.o.MaxNumBatchedTokens-equal)
	most := max(short.Seconds(), 2*s.gate.Costs(equal+prefill))
	for rows = equal; rows < len(s.decoding); rows++ {
		if costs := s.gate.Costs(rows + 1 + prefill); costs == 0 || costs > most {
			break
		}
	}
	return rows
}

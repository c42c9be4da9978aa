// Who is next where not all have room: the sequence whose client has the fewest running, then whose
// request has, then the oldest. One that waits takes the place of another only where that one's
// client or request keeps more than it gets, so nobody is displaced in turns.

package sched

import "cmp"

// shares are how many sequences run, by client and by request.
type shares struct {
	clients  map[string]int
	requests map[*Share]int
}

func (s *Scheduler) countShares() {
	if s.of.clients == nil {
		s.of = shares{map[string]int{}, map[*Share]int{}}
	}
	clear(s.of.clients)
	clear(s.of.requests)
	for _, q := range s.running {
		s.of.clients[q.share.Client]++
		s.of.requests[q.share]++
	}
}

func (s *Scheduler) compareShares(a, b *sequence) int {
	return cmp.Or(cmp.Compare(s.of.clients[a.share.Client], s.of.clients[b.share.Client]),
		cmp.Compare(s.of.requests[a.share], s.of.requests[b.share]))
}

// fairest is the place in the queue of the sequence that is next.
func (s *Scheduler) fairest() (next int) {
	s.countShares()
	for i, q := range s.waiting {
		if s.compareShares(q, s.waiting[next]) < 0 {
			next = i
		}
	}
	return next
}

// displace makes room for a waiting sequence: it moves the youngest running one of the largest
// share to the waiting ones, unless that share is hardly larger than this sequence's.
func (s *Scheduler) displace(q *sequence) bool {
	victim := -1
	for i, r := range s.running {
		if victim < 0 || s.compareShares(r, s.running[victim]) >= 0 {
			victim = i
		}
	}
	if victim < 0 {
		return false
	}
	large, own := s.running[victim].share, q.share
	if s.of.clients[large.Client] <= s.of.clients[own.Client]+1 &&
		(large.Client != own.Client || s.of.requests[large] <= s.of.requests[own]+1) {
		return false
	}
	s.preemptAt(victim)
	s.countShares()
	return true
}

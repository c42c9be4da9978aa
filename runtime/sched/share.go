// Which sequence is next if not all have room: that of the client with the fewest running, then of
// the request with the fewest, then the oldest. A waiting one displaces another only if that one's
// client or request keeps more than it gets, so sequences do not displace each other in turns.
// Background sequences give up their room to any other, and get none before.

package sched

import (
	"cmp"
	"slices"
)

// shares are how many sequences run, by client and by request.
type shares struct {
	clients  map[string]int
	requests map[*Share]int
}

func (s *Scheduler) countShares() {
	if s.shares.clients == nil {
		s.shares = shares{map[string]int{}, map[*Share]int{}}
	}
	clear(s.shares.clients)
	clear(s.shares.requests)
	for _, q := range s.running {
		s.shares.clients[q.share.Client]++
		s.shares.requests[q.share]++
	}
}

func (s *Scheduler) compareShares(a, b *sequence) int {
	return cmp.Or(cmp.Compare(s.shares.clients[a.share.Client], s.shares.clients[b.share.Client]),
		cmp.Compare(s.shares.requests[a.share], s.shares.requests[b.share]))
}

// yield moves the background sequences to the waiting ones if others wait or run. While a step runs
// (ahead) it only tells that this is to be done.
func (s *Scheduler) yield(ahead bool) (hasOthers, yields bool) {
	isOther := func(q *sequence) bool { return !q.share.Background }
	hasOthers = slices.ContainsFunc(s.running, isOther) || slices.ContainsFunc(s.waiting, isOther)
	for i, q := range slices.Backward(s.running) {
		if hasOthers && q.share.Background {
			if yields = true; !ahead {
				s.preemptAt(i)
			}
		}
	}
	return hasOthers, yields
}

// fairest is the place in the queue of the sequence that is next.
func (s *Scheduler) fairest() (next int) {
	s.countShares()
	for i, q := range s.waiting {
		best := s.waiting[next].share.Background
		if best && !q.share.Background || best == q.share.Background &&
			s.compareShares(q, s.waiting[next]) < 0 {
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
	large, smaller := s.running[victim].share, q.share
	if s.shares.clients[large.Client] <= s.shares.clients[smaller.Client]+1 &&
		(large.Client != smaller.Client ||
			s.shares.requests[large] <= s.shares.requests[smaller]+1) {
		return false
	}
	s.preemptAt(victim)
	s.countShares()
	return true
}

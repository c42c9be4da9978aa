// How fast requests have ended lately. From this a refused client is told how long to wait.

package sched

import (
	"math"
	"time"
)

// paceMemory is the time constant of the average: what happened so long ago has a weight of 1/e.
const paceMemory = 30 * time.Second

// The bounds of RetryAfter: with less a client asks all the time, with more it has given up.
const (
	retrySoonest = time.Second
	retryLatest  = time.Minute
)

// pace is an exponentially weighted rate. Only time in which something ran counts, so an idle night
// does not make a server look slow.
type pace struct {
	ended float64 // requests
	spent float64 // seconds
	last  time.Time
}

// step adds the requests that have ended since the last call; busy tells whether anything ran.
func (p *pace) step(now time.Time, ended int, busy bool) {
	if passed := now.Sub(p.last).Seconds(); busy && !p.last.IsZero() && passed > 0 {
		fade := math.Exp(-passed / paceMemory.Seconds())
		p.ended, p.spent = p.ended*fade, p.spent*fade+passed
	}
	p.ended += float64(ended)
	p.last = now
}

// wait is how long so many requests will take. Until the first one has ended, it assumes that one
// is about to.
func (p *pace) wait(requests int) time.Duration {
	seconds := float64(requests) * p.spent / max(p.ended, 1)
	return time.Duration(min(seconds, retryLatest.Seconds()) * float64(time.Second))
}

// RetryAfter is after how long a request that is refused now (ErrQueueFull) may be accepted: the
// number of waiting requests, at the rate at which requests have ended lately. It is in whole
// seconds, 1 to 60, and safe for concurrent use.
func (s *Scheduler) RetryAfter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.pace.wait(s.stats.Waiting + len(s.incoming))
	return min(max((wait+time.Second-1).Truncate(time.Second), retrySoonest), retryLatest)
}

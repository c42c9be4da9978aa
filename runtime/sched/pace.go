// The pace: how fast requests have ended lately, which is what a refused client is told to wait by.

package sched

import (
	"math"
	"time"
)

// paceMemory is how far back the pace looks: what happened so long ago weighs a third.
const paceMemory = 30 * time.Second

// What RetryAfter stays between: sooner is a client that knocks all the time, later is one that has
// given up.
const (
	retrySoonest = time.Second
	retryLatest  = time.Minute
)

// pace is a rate that forgets. Only time in which something ran counts, so a quiet night does not
// make a server look slow.
type pace struct {
	ended float64 // requests
	spent float64 // seconds
	last  time.Time
}

// step notes that so many requests have ended since the last call; busy tells that something ran
// since then.
func (p *pace) step(now time.Time, ended int, busy bool) {
	if passed := now.Sub(p.last).Seconds(); busy && !p.last.IsZero() && passed > 0 {
		fade := math.Exp(-passed / paceMemory.Seconds())
		p.ended, p.spent = p.ended*fade, p.spent*fade+passed
	}
	p.ended += float64(ended)
	p.last = now
}

// wait is how long so many requests will take. Before the first has ended, as if one were about to.
func (p *pace) wait(requests int) time.Duration {
	seconds := float64(requests) * p.spent / max(p.ended, 1)
	return time.Duration(min(seconds, retryLatest.Seconds()) * float64(time.Second))
}

// RetryAfter is when a request that is refused now (ErrQueueFull) may expect to get in and soon
// run: the requests that wait, at the pace at which requests ended lately. It is whole seconds, 1
// to 60, and may be asked at any time.
func (s *Scheduler) RetryAfter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.pace.wait(s.stats.Waiting + len(s.incoming))
	return min(max((wait+time.Second-1).Truncate(time.Second), retrySoonest), retryLatest)
}

// Handing out: what a step gave its readers is given to them while the next step runs, by a goroutine of its own, since
// waking hundreds of readers takes as long as everything else between two steps.
//
// What must stay true: between handOut and handedOut nobody else touches a stream's end that the loop writes, so a
// stream's tokens come in order and its finish comes last.

package sched

// handout is one token for a stream, or its end.
type handout struct {
	stream *Stream
	token  Token
	more   bool // token is one; else the stream ends
	finish Finish
	err    error
}

// handOut begins to give out what is noted in s.out.
func (s *Scheduler) handOut() {
	if len(s.out) == 0 {
		return
	}
	s.outgoing, s.out = s.out, s.outgoing[:0]
	s.outAt = s.o.now()
	s.handing = true
	s.deliver <- struct{}{}
}

// handedOut waits for the end of it.
func (s *Scheduler) handedOut() {
	if s.handing {
		<-s.delivered
		s.handing = false
		clear(s.outgoing) // holds no stream alive
	}
}

// deliverer is the goroutine. It ends when s.deliver is closed.
func (s *Scheduler) deliverer() {
	for range s.deliver {
		for i := range s.outgoing {
			if h := &s.outgoing[i]; h.more {
				h.stream.push(h.token, s.outAt)
			} else {
				h.stream.end(h.finish, h.err, s.outAt)
			}
		}
		s.delivered <- struct{}{}
	}
}

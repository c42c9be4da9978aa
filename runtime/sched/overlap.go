// Work that overlaps a step: what can be done while the engine runs is done then, by a goroutine
// of its own.
//
//	deliver   what the step before gave its readers goes to them; waking hundreds takes as long as
//	          everything else
//	masks     the tokens that the running step may choose: they follow from those before, so they
//	          are made now
//	hashes    the names of the pages that the step fills
//	plan      new requests are taken in, those that waited are admitted with the pages the cache
//	          has of them, pages that were swapped out are brought back, and the next step's rows
//	          get their pages. Each sequence stands where the running step will leave it; only
//	          which token it gets is not known
//
// When the step is over the loop has to sample, move the sequences on and fill the tokens in. If
// something came otherwise than planned (somebody joined or was cancelled, a text ended where rows
// were short, tokens follow by themselves) it grants anew, which is cheap; what was admitted,
// found, brought back and reserved stays.
//
// What must stay true:
//   - From begin to join everything of the loop's belongs to this goroutine, but for the batch that
//     runs and its logits.
//   - No page that the running step reads or writes changes hands: nothing is preempted, given back
//     or committed here.
//   - Between begin and join nobody else touches a stream's end that the loop writes, so a stream's
//     tokens come in order and its finish comes last.

package sched

import (
	"github.com/ossrun/ossrun/runtime/kv"
)

// handout is one token for a stream, or its end.
type handout struct {
	stream *Stream
	token  Token
	more   bool // token is one; else the stream ends
	finish Finish
	err    error
}

// begin hands out what is noted in s.out, and with plan does the rest of the list above. join waits
// for the end of it.
func (s *Scheduler) begin(plan bool) {
	if !plan && len(s.out) == 0 {
		return
	}
	s.outgoing, s.out = s.out, s.outgoing[:0]
	s.outAt = s.o.now()
	s.busy = true
	s.overlap <- plan
}

func (s *Scheduler) join() {
	if s.busy {
		<-s.joined
		s.busy = false
		clear(s.outgoing) // holds no stream alive
	}
}

// overlapped is the goroutine. It ends when s.overlap is closed.
func (s *Scheduler) overlapped() {
	for plan := range s.overlap {
		for i := range s.outgoing {
			if h := &s.outgoing[i]; h.more {
				h.stream.push(h.token, s.outAt)
			} else {
				h.stream.end(h.finish, h.err, s.outAt)
			}
		}
		if plan {
			s.prepare()
		}
		s.joined <- struct{}{}
	}
}

// fewMasks is up to how many masks one goroutine makes sooner than several can be woken.
const fewMasks = 8

// prepare does what the running step leaves to do for itself and for the next one.
func (s *Scheduler) prepare() {
	masks := 0
	for _, q := range s.sampling {
		if q.held != nil {
			masks++
		}
	}
	if masks > 0 {
		s.spread(masks > fewMasks, (*sequence).allow)
	}
	if !s.o.NoPrefixCaching {
		for _, q := range s.running {
			if q.flying > 0 {
				q.hashes = kv.Hashes(s.root, q.hashes, q.tokens)
			}
		}
	}
	s.takeIn()
	s.waiting = s.drop(s.waiting)
	s.admit(s.o.now())
	s.grant(true)
	if s.o.prepared != nil {
		s.o.prepared()
	}
}

// settle makes the next step's plan final once the step before is over. What waits is looked at
// again, since pages and seats may have come free.
func (s *Scheduler) settle() {
	stands := s.plan != none
	for _, queue := range []*[]*sequence{&s.running, &s.waiting} {
		n := len(*queue)
		*queue = s.drop(*queue)
		stands = stands && n == len(*queue)
	}
	n := len(s.running)
	s.admit(s.o.now())
	if stands && n == len(s.running) {
		s.counts.Ahead++
	} else {
		s.grant(false)
	}
	s.plan = none
}

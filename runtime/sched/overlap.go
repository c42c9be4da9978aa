// Work that overlaps a step: a second goroutine does it while the engine runs.
//
//	deliver   the tokens of the previous step go to their readers; waking hundreds of readers
//	          takes as long as everything else
//	masks     which tokens the running step may sample; they depend on earlier tokens only
//	hashes    the hashes of the pages that the step fills
//	plan      new requests are collected, waiting ones are admitted with their cached pages,
//	          pages that were swapped out are restored, and the rows of the next step get their
//	          pages. Each sequence counts as if the running step were over; only its new token
//	          is not known yet
//
// When the step is over, the loop only has to sample, advance the sequences and fill in the tokens.
// If the plan is no longer valid (a request joined or was cancelled, a sequence ended while rows
// were short, a constraint forced tokens), rows are granted again, which is cheap. Admissions and
// adopted, restored or reserved pages stay.
//
// What must stay true:
//   - From begin to join this goroutine owns everything of the loop, except the running batch and
//     its logits.
//   - No page that the running step reads or writes gets another owner: nothing is preempted,
//     released or committed here.
//   - From begin to join no other code writes to the streams, so a stream's tokens are in order and
//     its finish is last.

package sched

import (
	"math/bits"
	"slices"

	"github.com/ossrun/ossrun/runtime/kv"
)

// delivery is one token for a stream, or the end of the stream.
type delivery struct {
	stream   *Stream
	token    Token
	hasToken bool // false: the stream ends
	finish   FinishReason
	err      error
}

// begin starts the goroutine's work: it delivers s.out and, with plan, does everything else in the
// list above. join waits until it is done.
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
		clear(s.outgoing) // lets the streams be collected
	}
}

// overlapLoop is the goroutine's function. It ends when s.overlap is closed.
func (s *Scheduler) overlapLoop() {
	for plan := range s.overlap {
		for i := range s.outgoing {
			if h := &s.outgoing[i]; h.hasToken {
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

// fewMasks is the number of masks up to which one goroutine is faster than waking several.
const fewMasks = 8

// prepare makes the masks and hashes of the running step and plans the next step.
func (s *Scheduler) prepare() {
	masks := 0
	for _, q := range s.sampling {
		if q.constraint != nil {
			masks++
		}
	}
	if masks > 0 {
		s.parallel(masks > fewMasks, (*sequence).allow)
	}
	if s.batch.LogitMask != nil {
		s.uniteMasks()
		s.masksReady.Done()
	}
	if !s.o.NoPrefixCaching {
		for _, q := range s.running {
			if q.inFlight > 0 {
				q.hashes = kv.Hashes(q.root, q.hashes, q.tokens)
			}
		}
	}
	s.queueIncoming()
	s.waiting = s.dropCancelled(s.waiting)
	yields := s.admit(s.o.now(), true)
	s.grant(true)
	if yields {
		s.plan = none // the rows of the background go to others
	}
	if s.o.prepared != nil {
		s.o.prepared()
	}
}

// narrowFor is how many masks after a narrow one another narrow one is expected.
const narrowFor = 16

// isNarrow reports whether a mask allows less than an eighth of the tokens. Free text allows nearly
// all.
func isNarrow(mask []uint64) bool {
	ones := 0
	for _, word := range mask {
		ones += bits.OnesCount64(word)
	}
	return mask != nil && ones < 8*len(mask)
}

// skipMaskedLogits lets the step leave out the logits that no mask allows. Each row of logits must
// sample one token, without logprobs: masks of drafts are made too late. Waiting for masks costs a
// tenth of a millisecond, so this happens only near masks that allow few tokens.
func (s *Scheduler) skipMaskedLogits() {
	if len(s.sampling) == 0 || len(s.batch.LogitRows) != len(s.sampling) ||
		slices.ContainsFunc(s.sampling, func(q *sequence) bool {
			return q.narrowMasks == 0 || q.sampler.Logprobs()
		}) {
		return
	}
	s.masksReady.Add(1)
	s.batch.LogitMask = func() []uint64 {
		s.masksReady.Wait()
		return s.logitMask
	}
}

// uniteMasks finds the tokens that at least one mask of the step allows.
func (s *Scheduler) uniteMasks() {
	s.logitMask = s.sampling[0].allowed
	if len(s.sampling) == 1 {
		return
	}
	s.united = append(s.united[:0], s.logitMask...)
	s.logitMask = s.united
	for _, q := range s.sampling {
		if q.allowed == nil {
			s.logitMask = nil
			return
		}
		for i, word := range q.allowed {
			s.united[i] |= word
		}
	}
}

// finishPlan makes the plan of the next step final once the previous step is over. Waiting
// sequences are considered again, since the step may have freed pages and places in the batch.
func (s *Scheduler) finishPlan() {
	valid := s.plan != none
	for _, queue := range []*[]*sequence{&s.running, &s.waiting} {
		n := len(*queue)
		*queue = s.dropCancelled(*queue)
		valid = valid && n == len(*queue)
	}
	n := len(s.running)
	displaced := s.admit(s.o.now(), false)
	if valid && !displaced && n == len(s.running) {
		s.counts.Ahead++
	} else {
		s.grant(false)
	}
	s.plan = none
}

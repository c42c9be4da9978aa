// Steps on a device that chooses tokens: the logits stay there, and the device never waits for the
// host.
//
//	step n     Queue(n) ............ Sample(n)            Wait(n), advance
//	step n+1                                   Queue(n+1) ................. Sample(n+1)
//
// While the device runs the forward pass of a step, the masks of its tokens are made and the next
// step is planned (overlap.go). Then the choice is queued, and behind it, where the plan stands,
// the next forward pass, which takes the tokens from the device's memory: only then the host waits,
// for tokens that are there already. A step that was queued like this may have rows of a sequence
// that ended meanwhile: what they compute harms nobody, since the device runs one step after
// another and pages change hands between two of them, and what is chosen for them is not looked at.
//
// What must stay true: a request gets the tokens that the host would choose from the same logits.

package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// onDevice is what steps on a device need beside what all steps do.
type onDevice struct {
	// of each row of the batch: the row of the last sample whose token it takes, or -1
	from    []int32
	choices []engine.SamplingParams // of the step that is sampled
	chosen  []engine.SampledToken
	queued  int   // logit rows of the step that is queued and not sampled; 0: none
	waiting []int // choices of the samples not waited for, oldest first
}

// samplesOnDevice tells whether this step's tokens can be sampled on the engine's device.
func (s *Scheduler) samplesOnDevice() bool {
	return s.eng.Caps().Samples && !s.batch.Rebuild && len(s.sampling) > 0 && s.editable(s.sampling)
}

// editable tells whether the device has room for what these sequences change of their logits. Long
// texts under penalties may not have it; their steps are sampled on the host.
func (s *Scheduler) editable(list []*sequence) bool {
	n := 0
	for _, q := range list {
		n += q.sampler.Edits() + 1
	}
	return n <= engine.MostEdits(s.o.MaxNumSeqs)
}

// computeOnDevice runs the batch, and the steps after it as long as each can be queued before the
// tokens of the one before are known. After an error every sequence that was running has ended.
func (s *Scheduler) computeOnDevice() {
	err := s.queue(nil)
	for err == nil {
		rows := len(s.batch.Tokens)
		s.begin(true)
		s.join()
		if err = s.choices(); err != nil {
			break
		}
		ahead := s.assembleAhead()
		if ahead {
			if err = s.queue(s.device.from); err != nil {
				break
			}
		}
		if err = s.take(); err != nil {
			break
		}
		s.counts.Steps++
		s.counts.Rows += uint64(rows)
		s.advance()
		if !ahead {
			return
		}
		s.counts.Ahead++
		s.plan = none
		s.running = s.drop(s.running)
		s.promote()
		s.publish()
	}
	s.abandon()
	if s.ctx.Err() == nil { // else closed: the loop ends and says so to everyone
		s.fault(err)
	}
}

func (s *Scheduler) queue(from []int32) error {
	if s.o.launch != nil {
		s.o.launch(&s.batch)
	}
	if err := s.eng.Queue(s.ctx, &s.batch, from); err != nil {
		return err
	}
	s.device.queued = len(s.batch.LogitRows)
	return nil
}

// choices queues the choice of the running step's tokens. Rows whose sequence has ended get any.
func (s *Scheduler) choices() error {
	d := &s.device
	d.choices = d.choices[:0]
	for range d.queued {
		d.choices = append(d.choices, engine.SamplingParams{TopP: 1, Logprobs: -1})
	}
	for _, q := range s.sampling {
		var c engine.SamplingParams
		if c, q.err = q.sampler.RowParams(len(q.tokens), q.allowed); q.err == nil {
			d.choices[q.logits] = c
		}
	}
	err := s.eng.Sample(d.choices)
	clear(d.choices) // holds no mask alive
	if err != nil {
		return err
	}
	d.waiting, d.queued = append(d.waiting, d.queued), 0
	return nil
}

// assembleAhead writes the rows of the next step to s.batch as they were planned, where that can be
// queued now. The sequences stand where the running step will leave them.
func (s *Scheduler) assembleAhead() bool {
	if s.plan == none || s.ctx.Err() != nil {
		return false
	}
	edits := 0
	for _, q := range s.running {
		if q.stream.ctx.Err() != nil {
			return false // has no part in a step any more
		}
		edits += q.sampler.Edits() + 2
	}
	if edits > engine.MostEdits(s.o.MaxNumSeqs) {
		return false
	}
	b, d := &s.batch, &s.device
	b.Tokens, b.Seqs, b.LogitRows, b.Rebuild, d.from = b.Tokens[:0], b.Seqs[:0], b.LogitRows[:0],
		false, d.from[:0]
	for _, q := range s.running {
		q.next.rows, q.next.logits = q.rows, -1
		if q.rows == 0 {
			continue
		}
		at := q.at()
		for i := at; i < at+q.rows; i++ {
			if i < len(q.tokens) {
				b.Tokens, d.from = append(b.Tokens, q.tokens[i]), append(d.from, -1)
			} else {
				b.Tokens, d.from = append(b.Tokens, 0), append(d.from, int32(q.logits))
			}
		}
		b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(at), Rows: int32(q.rows),
			Full: q.table.Full(), Window: q.table.Window()})
		if q.rows == q.left() && q.known() < q.most {
			q.next.logits = len(b.LogitRows)
			b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
		}
	}
	return len(b.LogitRows) > 0
}

// take waits for the running step's tokens.
func (s *Scheduler) take() error {
	d := &s.device
	n := d.waiting[0]
	for len(d.chosen) < n {
		d.chosen = append(d.chosen, engine.SampledToken{})
	}
	chosen := d.chosen[:n]
	clear(chosen)
	d.waiting = d.waiting[1:]
	if err := s.eng.Wait(chosen); err != nil {
		return err
	}
	s.spread(len(s.sampling) > fewMasks, func(q *sequence) { q.chosen(chosen[q.logits]) })
	return nil
}

// chosen notes what the device chose.
func (q *sequence) chosen(c engine.SampledToken) {
	q.allowed, q.fed = nil, nil
	if q.err != nil {
		return
	}
	q.sampled, q.err = c, sample.Check(c)
	q.follows()
}

// promote makes the step that is queued the running one, for the sequences that have not ended.
// Where tokens followed by themselves, the token that the step gives is none of the text's.
func (s *Scheduler) promote() {
	s.sampling = s.sampling[:0]
	for _, q := range s.running {
		q.flying, q.logits = q.next.rows, -1
		if q.next.logits >= 0 && q.at() == len(q.tokens) {
			q.logits = q.next.logits
			s.sampling = append(s.sampling, q)
		}
		q.next.rows, q.next.logits = 0, -1
	}
	s.launched = len(s.running)
}

// abandon lets the device come to an end with what is under way, after an error. Errors that follow
// from it say nothing new.
func (s *Scheduler) abandon() {
	d := &s.device
	if d.queued > 0 {
		d.choices = d.choices[:0]
		for range d.queued {
			d.choices = append(d.choices, engine.SamplingParams{TopP: 1, Logprobs: -1})
		}
		if s.eng.Sample(d.choices) == nil {
			d.waiting = append(d.waiting, d.queued)
		}
	}
	for _, n := range d.waiting {
		if s.eng.Wait(make([]engine.SampledToken, n)) != nil {
			break
		}
	}
	d.queued, d.waiting = 0, nil
}

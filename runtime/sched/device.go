// Steps on a device that samples: the logits stay on the device, and it never waits for the host.
//
//	step n     Queue(n) ............ Sample(n)            Wait(n), advance
//	step n+1                                   Queue(n+1) ................. Sample(n+1)
//
// While the device runs the forward pass of a step, the host makes the masks of its tokens and
// plans the next step (overlap.go). Then it queues the sampling. If the plan is still valid it also
// queues the next forward pass, which takes the sampled tokens from the device's memory. Only then
// does the host wait for the tokens, which usually are ready by then.
//
// A step that is queued this way may have rows of a sequence that has ended meanwhile. This is
// safe: the device runs steps one after another, pages get a new owner only between two steps, and
// the tokens sampled for such rows are ignored.
//
// A draft begins with tokens that the host must know. So a step that may have one is not queued
// ahead, and if it has one the host samples its tokens (step.go).
//
// What must stay true: a request gets the tokens that the host would sample from the same logits.

package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"slices"
)

// deviceSampling is the state that only steps with sampling on the device need.
type deviceSampling struct {
	// for each row of the batch: which row of the last sampling gives its token, or -1 if the token
	// is known
	from    []int32
	choices []engine.SamplingParams // of the step that is sampled
	chosen  []engine.SampledToken
	queued  int   // logit rows of the step that is queued and not sampled yet; 0: none
	waiting []int // rows of each sampling whose tokens were not fetched yet, oldest first
}

// samplesOnDevice tells whether this step's tokens can be sampled on the engine's device.
func (s *Scheduler) samplesOnDevice() bool {
	return s.eng.Caps().Samples && !s.batch.Rebuild && len(s.sampling) > 0 &&
		s.editable(s.sampling) && !slices.ContainsFunc(s.running, func(q *sequence) bool {
		return q.scores() || len(q.draft.tokens) > 0
	})
}

// editable tells whether the device has room for the changes to the logits of these sequences
// (penalties and biases). If it has not, as with penalties over long texts, the host samples.
func (s *Scheduler) editable(list []*sequence) bool {
	n := 0
	for _, q := range list {
		n += q.sampler.MaxEdits() + 1
	}
	return n <= engine.MostEdits(s.o.MaxNumSeqs)
}

// computeOnDevice runs the batch, and further steps for as long as each can be queued before the
// tokens of the previous one are known. After an error every sequence that was running has ended.
func (s *Scheduler) computeOnDevice() {
	began := s.o.now()
	err := s.queue(nil)
	for err == nil {
		rows := len(s.batch.Tokens)
		s.begin(true)
		s.join()
		if err = s.queueSampling(); err != nil {
			break
		}
		ahead := s.assembleAhead()
		if ahead {
			if err = s.queue(s.device.from); err != nil {
				break
			}
		}
		if err = s.finishStep(); err != nil {
			break
		}
		s.counts.Steps++
		s.counts.Rows += uint64(rows)
		s.observe(rows, began)
		began = s.o.now()
		s.advance()
		if !ahead {
			return
		}
		s.counts.Ahead++
		s.plan = none
		s.running = s.dropCancelled(s.running)
		s.promote()
		s.publish()
	}
	s.abandon()
	if s.ctx.Err() == nil { // else the scheduler was closed, and the loop ends all requests
		s.failRunning(err)
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

// chooseAny makes sampling parameters for the queued step that allow any token.
func (d *deviceSampling) chooseAny() {
	d.choices = d.choices[:0]
	for range d.queued {
		d.choices = append(d.choices, engine.SamplingParams{Draw: engine.Draw{TopP: 1},
			Logprobs: -1})
	}
}

// queueSampling queues the sampling of the running step. Rows of ended sequences get any token.
func (s *Scheduler) queueSampling() error {
	d := &s.device
	d.chooseAny()
	for _, q := range s.sampling {
		var c engine.SamplingParams
		if c, q.err = q.sampler.RowParams(len(q.tokens), q.allowed); q.err == nil {
			d.choices[q.logitRow] = c
		}
	}
	err := s.eng.Sample(d.choices)
	clear(d.choices) // lets the masks be collected
	if err != nil {
		return err
	}
	d.waiting, d.queued = append(d.waiting, d.queued), 0
	return nil
}

// assembleAhead writes the planned rows of the next step to s.batch. It returns false if the step
// cannot be queued now. The sequences count as if the running step were over.
func (s *Scheduler) assembleAhead() bool {
	if s.plan == none || s.ctx.Err() != nil || s.mayDraft() {
		return false
	}
	edits := 0
	for _, q := range s.running {
		if q.stream.ctx.Err() != nil {
			return false // cancelled: the step must be planned without it
		}
		if q.scores() {
			return false // its logits are wanted here
		}
		edits += q.sampler.MaxEdits() + 2
	}
	if edits > engine.MostEdits(s.o.MaxNumSeqs) {
		return false
	}
	s.emptyBatch(false)
	for _, q := range s.running {
		if q.next.rows, q.next.logits = q.rows, -1; q.rows > 0 {
			q.next.logits = s.addRows(q)
		}
	}
	return len(s.batch.LogitRows) > 0
}

func (s *Scheduler) finishStep() error {
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
	s.parallel(len(s.sampling) > fewMasks, func(q *sequence) { q.acceptChosen(chosen[q.logitRow]) })
	return nil
}

func (q *sequence) acceptChosen(c engine.SampledToken) {
	q.allowed = nil
	if q.err != nil {
		return
	}
	q.err = sample.Check(c)
	q.acceptSampled(c)
}

// promote makes the queued step the running one, for the sequences that have not ended. If the
// constraint has forced tokens meanwhile, the step's row has the wrong place in the text, and its
// token is not used.
func (s *Scheduler) promote() {
	s.sampling = s.sampling[:0]
	for _, q := range s.running {
		q.inFlight, q.logitRow = q.next.rows, -1
		if q.next.logits >= 0 && q.position() == len(q.tokens) {
			q.logitRow = q.next.logits
			s.sampling = append(s.sampling, q)
		}
		q.next.rows, q.next.logits = 0, -1
	}
	s.runningAtLaunch = len(s.running)
}

// abandon waits, after an error, until all queued work is done. Further errors are ignored: they
// follow from the first one.
func (s *Scheduler) abandon() {
	d := &s.device
	if d.queued > 0 {
		d.chooseAny()
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

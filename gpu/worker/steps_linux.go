package worker

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Steps on the worker's side.

func (s *server) forward(m *message) (*message, error) {
	r := reader{from: s.shared.slot(m.number)[:m.shared]}
	number, n := r.word(), int(r.word())
	readBatch(&r, &s.batch)
	if err := r.end(); err != nil {
		return nil, err
	}
	x, err := s.step(number)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(&s.batch, x.program); err != nil {
		return nil, err
	}
	if want := len(s.batch.LogitRows) * x.program.Spec.Vocab; n != want {
		return nil, fmt.Errorf("%d logits are asked for, the step gives %d", n, want)
	}
	logits, err := s.shared.logits(n)
	if err != nil {
		return nil, err
	}
	return &message{kind: done}, x.Forward(&s.batch, logits)
}

// advance chooses the tokens of the step queued before, then queues the next batch, then waits for the tokens. Where it does not choose, nobody
// waits for an answer, so what goes wrong is kept for the next one that does.
func (s *server) advance(m *message) (*message, error) {
	r := reader{from: s.shared.slot(m.number)[:m.shared]}
	choosing := r.word()
	sampled, err := s.samplingStep(choosing)
	var choices []engine.SamplingParams
	if sampled != nil {
		choices = readChoices(&r)
	}
	queued, err2 := s.samplingStep(r.word())
	var from []int32
	if queued != nil {
		readBatch(&r, &s.batch)
		from, err2 = readFrom(&r, len(s.batch.Tokens))
	}
	if err := errors.Join(err, err2, r.end()); err != nil {
		if choosing == 0 {
			s.unsaid = err
			return nil, nil
		}
		return nil, err
	}
	var chosen error
	if sampled != nil {
		if chosen = s.unsaid; chosen == nil {
			chosen = sampled.sample(choices)
		}
		s.unsaid = nil
	}
	if queued != nil {
		queued.queue(&s.batch, from)
	}
	if sampled == nil {
		return nil, nil
	}
	if chosen != nil {
		return nil, chosen
	}
	return s.tokens(m.number, sampled, len(choices))
}

// tokens waits for a choice and writes what came of it.
func (s *server) tokens(number uint32, sampled *heldStep, n int) (*message, error) {
	chosen := make([]engine.SampledToken, n)
	if err := sampled.Step.(engine.SamplingStep).Wait(chosen); err != nil {
		return nil, err
	}
	w := writer{to: s.shared.answer(number)}
	writeChosen(&w, chosen)
	if w.full {
		return nil, errSlotFull
	}
	return &message{kind: done, shared: uint32(w.n)}, nil
}

// samplingStep finds a step that chooses tokens; nil for the number 0.
func (s *server) samplingStep(number uint32) (*heldStep, error) {
	if number == 0 {
		return nil, nil
	}
	x, err := s.step(number)
	if err != nil {
		return nil, err
	}
	if _, ok := x.Step.(engine.SamplingStep); !ok {
		return nil, engine.ErrNoSampling
	}
	return x, nil
}

// queue starts a batch. Nobody waits for it, so its error is kept for the choice that follows.
func (x *heldStep) queue(b *engine.Batch, from []int32) {
	if x.fault = checkBatch(b, x.program); x.fault == nil {
		x.fault = x.Step.(engine.SamplingStep).Queue(b, from)
	}
	x.queued = len(b.LogitRows)
}

func (x *heldStep) sample(choices []engine.SamplingParams) error {
	queued := x.queued
	x.queued = 0
	switch {
	case x.fault != nil:
		return x.fault
	case len(choices) == 0 || len(choices) != queued:
		return fmt.Errorf("%d choices for a step with logits of %d rows", len(choices), queued)
	}
	for _, c := range choices {
		for _, e := range c.Edits {
			if e.ID < 0 || int(e.ID) >= x.program.Spec.Vocab {
				return fmt.Errorf("token %d of an edit is outside the vocabulary of %d", e.ID, x.program.Spec.Vocab)
			}
		}
	}
	return x.Step.(engine.SamplingStep).Sample(choices)
}

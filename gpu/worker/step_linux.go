package worker

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Steps as this side has them.
//
// Choosing tokens on the device costs one message each way as well: Sample writes into a slot and sends nothing, Queue adds its batch behind it and
// sends both, and the tokens come back by themselves. Wait sends a choice that no batch followed.

type step struct {
	d      *Device
	number uint32 // 0 once it is closed
	vocab  int
}

// samplingStep is a step of a device that chooses tokens.
type samplingStep struct{ *step }

var (
	_ engine.Step         = (*step)(nil)
	_ engine.SamplingStep = samplingStep{}
)

// Compile sends the program and keeps the number of the step that it became.
func (d *Device) Compile(p *engine.Program) (engine.Step, error) {
	text, err := encodeProgram(p, func(r engine.Region) (uint32, error) {
		have, ok := r.(*region)
		if !ok || have.d != d || have.number == 0 {
			return 0, errors.New("it does not lie in the memory of this device")
		}
		return have.number, nil
	})
	if err != nil {
		return nil, err
	}
	if len(text) > mostText {
		return nil, fmt.Errorf("a program of %d bytes is longer than the %d that the GPU worker takes", len(text), mostText)
	}
	var t stepText
	if err := d.c.callText(compile, text, &t, nil, nil); err != nil {
		return nil, err
	}
	d.use(1)
	for _, tap := range t.Taps {
		if tap.Buffer < 0 || tap.Buffer >= len(p.Buffers) {
			return nil, fmt.Errorf("buffer %d of %d is a tap's", tap.Buffer, len(p.Buffers))
		}
		b := p.Buffers[tap.Buffer]
		b.Region, b.Offset = &region{d, tap.Region, tap.Bytes}, tap.Offset
	}
	s := &step{d, t.Step, p.Spec.Vocab}
	if t.Samples {
		return samplingStep{s}, nil
	}
	return s, nil
}

// Forward runs one batch: a message there with the batch in the slot, a message back with the logits behind the slots.
func (s *step) Forward(b *engine.Batch, logits []float32) error {
	if s.number == 0 {
		return engine.ErrClosed
	}
	area, err := s.d.c.logits(len(logits))
	if err != nil {
		return err
	}
	full := false
	err = s.d.c.call(forward, nil, nil, func(slot []byte) int {
		w := writer{to: slot}
		w.word(s.number)
		w.word(uint32(len(logits)))
		writeBatch(&w, b)
		if full = w.full; full { // an empty slot is refused on the other side
			return 0
		}
		return w.n
	}, func([]byte) error {
		copy(logits, area)
		return nil
	})
	if full {
		return errSlotFull
	}
	return err
}

// Profiling is switched on the other side; where that fails there is no profile.
func (s *step) Profiling(on bool) {
	if s.number != 0 {
		_ = s.d.c.call(profiling, profilingText{s.number, on}, nil, nil, nil)
	}
}

// Profile is the last step's times.
func (s *step) Profile() []int64 {
	if s.number == 0 {
		return nil
	}
	var t profileText
	if err := s.d.c.call(profile, stepText{Step: s.number}, &t, nil, nil); err != nil {
		return nil
	}
	return t.Nanoseconds
}

// Close frees the step. It may be called more than once.
func (s *step) Close() error {
	if s.number == 0 {
		return nil
	}
	number := s.number
	s.number = 0
	s.d.use(-1)
	return s.d.forget(s.d.c.call(drop, stepText{Step: number}, nil, nil, nil))
}

// Queue sends a batch, and in front of it the choice that is pending.
func (s samplingStep) Queue(b *engine.Batch, from []int32) error {
	if s.number == 0 {
		return engine.ErrClosed
	}
	return s.d.c.queue(s.number, b, from)
}

// Sample prepares the choice for the batch queued last.
func (s samplingStep) Sample(choices []engine.SamplingParams) error {
	if s.number == 0 {
		return engine.ErrClosed
	}
	return s.d.c.sample(s.number, choices)
}

// Wait gives the tokens of the oldest Sample.
func (s samplingStep) Wait(chosen []engine.SampledToken) error { return s.d.c.wait(chosen) }

// An advance has two parts in its slot, each a step's number and what it is about; the number 0 stands for a part that is not there.

func (c *connection) sample(step uint32, choices []engine.SamplingParams) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return err
	}
	number, err := c.next()
	if err != nil {
		return err
	}
	p := &pending{number: number, w: writer{to: c.shared.slot(number)}}
	p.w.word(step)
	writeChoices(&p.w, choices)
	if p.w.full {
		c.last-- // nothing was sent under this number
		return errSlotFull
	}
	c.pending = p
	return nil
}

func (c *connection) queue(step uint32, b *engine.Batch, from []int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, before := c.pending, 0
	if p == nil {
		number, err := c.next()
		if err != nil {
			return err
		}
		p = &pending{number: number, w: writer{to: c.shared.slot(number)}}
		p.w.word(0)
	} else {
		before = p.w.n
	}
	p.w.word(step)
	writeBatch(&p.w, b)
	writeFrom(&p.w, from)
	if !p.w.full {
		c.pending = nil
		c.steps.Add(1)
		return c.advance(p, before > 0)
	}
	if before == 0 {
		c.last--
	} else {
		p.w.n, p.w.full = before, false // the choice alone is still to be sent
	}
	return errSlotFull
}

// flush sends a choice that no batch has followed.
func (c *connection) flush() error {
	p := c.pending
	if p == nil {
		return nil
	}
	c.pending = nil
	p.w.word(0)
	if p.w.full {
		c.last--
		return errSlotFull
	}
	return c.advance(p, true)
}

// advance sends the slot.
func (c *connection) advance(p *pending, samples bool) error {
	if err := c.send(&message{kind: advance, number: p.number, shared: uint32(p.w.n)}); err != nil {
		return err
	}
	if samples {
		c.waiting = append(c.waiting, p.number)
	}
	return nil
}

func (c *connection) wait(chosen []engine.SampledToken) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return err
	}
	for len(c.tokens) == 0 {
		if c.lost != nil {
			return c.lost
		}
		if len(c.waiting) == 0 {
			return errors.New("nothing was sampled that could be waited for")
		}
		if err := c.receive(c.deadlines.Step, advance); err != nil {
			return err
		}
		if err := c.putAside(); err != nil {
			return err
		}
	}
	o := c.tokens[0]
	c.tokens = c.tokens[1:]
	if o.err != nil {
		return o.err
	}
	if len(o.chosen) != len(chosen) {
		return c.mistrust(fmt.Errorf("%d tokens for a choice of %d", len(o.chosen), len(chosen)))
	}
	copy(chosen, o.chosen)
	return nil
}

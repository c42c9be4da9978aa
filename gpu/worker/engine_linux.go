package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A worker's model, as the parent sees it.
//
// Sampling, too, costs one message each way per step: Sample writes into a slot and sends nothing,
// Queue adds its batch and sends both, and the tokens arrive without a further request. Wait sends
// a choice that no batch followed.

type model struct {
	b    *Backend
	spec models.Spec
	text loadedText
	caps engine.Caps

	mu     sync.Mutex
	closed bool
}

var _ engine.Engine = (*model)(nil)

func (e *model) Spec() models.Spec         { return e.spec }
func (e *model) Settings() engine.Settings { return e.text.Settings }
func (e *model) Plan() engine.Plan         { return e.text.Plan }
func (e *model) Caps() engine.Caps         { return e.b.Caps() }
func (e *model) Cache() engine.Region      { return pool{e} }

// usable makes the checks of in-process engines, so that no request is sent that would be refused.
func (e *model) usable(ctx context.Context, b *engine.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.CheckFor(e.spec, e.text.Settings); err != nil {
		return err
	}
	return e.open()
}

func (e *model) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return engine.ErrClosed
	}
	return nil
}

// Step runs one batch: the batch is written to the slot, the logits are read after the slots.
func (e *model) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	return e.step(ctx, step, b, logits, nil)
}

func (e *model) Measure(ctx context.Context, b *engine.Batch, logits []float32) ([]engine.Timing,
	error) {
	var t timesText
	err := e.step(ctx, measure, b, logits, &t)
	return t.Times, err
}

func (e *model) step(ctx context.Context, k kind, b *engine.Batch, logits []float32,
	result any) error {
	if err := e.usable(ctx, b); err != nil {
		return err
	}
	want := len(b.LogitRows) * e.spec.Vocab
	if len(logits) < want {
		return fmt.Errorf("room for %d logits, %d are asked for", len(logits), want)
	}
	area, err := e.b.c.logits(want)
	if err != nil {
		return err
	}
	full := false
	err = e.b.c.call(request{kind: k, into: result, fill: func(slot []byte) int {
		c := codec{slot: slot}
		value(&c, &want)
		batchIn(&c, b)
		if full = c.bad; full { // an empty slot is refused on the other side
			return 0
		}
		return len(slot) - len(c.slot)
	}, take: func([]byte) error {
		copy(logits, area)
		return nil
	}})
	if full {
		return errSlotFull
	}
	return err
}

// Tap reads a tap from the memory of a step's logits.
func (e *model) Tap(name string, rows int) (data []byte, err error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	var t bytesText
	take := func([]byte) error {
		area := e.b.c.shared.bytes[slotsBytes:]
		if t.Bytes < 0 || t.Bytes > int64(len(area)) {
			return fmt.Errorf("a tap of %d bytes in %d", t.Bytes, len(area))
		}
		data = bytes.Clone(area[:t.Bytes])
		return nil
	}
	err = e.b.c.call(request{kind: tap, ask: tapText{name, rows}, into: &t, take: take})
	return data, err
}

// Queue sends the pending choice, if there is one, and a batch.
func (e *model) Queue(ctx context.Context, b *engine.Batch, from []int32) error {
	if err := e.usable(ctx, b); err != nil {
		return err
	}
	if !e.caps.Samples {
		return engine.ErrNoSampling
	}
	if from != nil && len(from) != len(b.Tokens) {
		return fmt.Errorf("%d rows say where their token comes from, the step has %d", len(from),
			len(b.Tokens))
	}
	return e.b.c.queue(b, from)
}

// Sample prepares the choice for the batch queued last.
func (e *model) Sample(choices []engine.SamplingParams) error {
	if err := e.open(); err != nil {
		return err
	}
	return e.b.c.sample(choices)
}

func (e *model) Wait(chosen []engine.SampledToken) error {
	if err := e.open(); err != nil {
		return err
	}
	return e.b.c.wait(chosen)
}

// Close frees the model. A lost worker's is freed already.
func (e *model) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.b.c.call(request{kind: unload})
	e.b.mu.Lock()
	e.b.loaded = false
	e.b.mu.Unlock()
	if errors.Is(err, ErrLost) || errors.Is(err, engine.ErrClosed) {
		return nil
	}
	return err
}

type pool struct{ e *model }

func (p pool) Bytes() int64 { return p.e.text.CacheBytes }

func (p pool) Free() error { return errors.New("a KV pool is freed with its engine") }

func (p pool) Read(offset int64, dst []byte) error { return p.copy(readCache, offset, dst) }

func (p pool) Write(offset int64, src []byte) error { return p.copy(writeCache, offset, src) }

func (p pool) copy(k kind, offset int64, data []byte) error {
	if err := cmp.Or(p.e.open(), engine.Inside(offset, len(data), p.Bytes())); err != nil {
		return err
	}
	for piece := range slices.Chunk(data, pieceBytes) {
		r := request{kind: k, ask: bytesText{offset, int64(len(piece))}}
		if k == writeCache {
			r.fill = func(slot []byte) int { return copy(slot, piece) }
		} else {
			r.take = func(answer []byte) error {
				if copy(piece, answer) < len(piece) {
					return fmt.Errorf("%d of %d bytes were read", len(answer), len(piece))
				}
				return nil
			}
		}
		if err := p.e.b.c.call(r); err != nil {
			return err
		}
		offset += int64(len(piece))
	}
	return nil
}

// An advance has two optional parts in its slot, each after a flag that tells if it is present.

func (c *connection) begin() (*pending, error) {
	number, err := c.next()
	if err != nil {
		return nil, err
	}
	return &pending{number, codec{slot: c.shared.slot(number)}}, nil
}

func (c *connection) sample(choices []engine.SamplingParams) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flush(); err != nil {
		return err
	}
	p, err := c.begin()
	if err != nil {
		return err
	}
	flag(&p.codec, new(true))
	choicesIn(&p.codec, &choices)
	if p.bad {
		c.last-- // nothing was sent under this number
		return errSlotFull
	}
	c.pending = p
	return nil
}

func (c *connection) queue(b *engine.Batch, from []int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	hasBatch, samples := false, c.pending != nil
	p := c.pending
	if !samples {
		var err error
		if p, err = c.begin(); err != nil {
			return err
		}
		flag(&p.codec, &hasBatch)
	}
	choiceOnly := p.codec
	hasBatch = true
	flag(&p.codec, &hasBatch)
	batchIn(&p.codec, b)
	list(&p.codec, &from)
	switch {
	case !p.bad:
		c.pending = nil
		c.steps.Add(1)
		return c.advance(p, samples)
	case samples:
		p.codec = choiceOnly // the choice alone is still to be sent
	default:
		c.last--
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
	flag(&p.codec, new(false))
	if p.bad {
		c.last--
		return errSlotFull
	}
	return c.advance(p, true)
}

func (c *connection) advance(p *pending, samples bool) error {
	if err := c.send(&message{kind: advance, number: p.number,
		shared: uint32(slotBytes - len(p.slot))}); err != nil {
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
		if err := c.receive(c.stepDeadline(), advance); err != nil {
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
		return c.disable(fmt.Errorf("%d tokens for a choice of %d", len(o.chosen), len(chosen)))
	}
	copy(chosen, o.chosen)
	return nil
}

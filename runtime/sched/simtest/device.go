// An engine whose device chooses tokens, as engine.Engine does where its device can.

package simtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// Device is an Engine with Queue, Sample and Wait. It keeps to the order that engine/sampling.go
// allows and refuses any other.
type Device struct {
	*Engine
	// Fail is asked before each call ("queue", "sample", "wait"); its error is the call's.
	Fail func(call string) error
	// Calls are the calls made so far; Overlaps counts the steps that were queued before the tokens
	// of the previous step were asked for.
	Calls    []string
	Overlaps int

	logits  []float32
	rows    int // of logits, 0: nothing is queued
	last    []int32
	waiting [][]engine.SampledToken
}

// NewDevice makes one around an engine.
func NewDevice(e *Engine) *Device { return &Device{Engine: e} }

// Caps say that it samples.
func (d *Device) Caps() engine.Caps { return engine.Caps{Samples: true} }

func (d *Device) call(name string) error {
	d.Calls = append(d.Calls, name)
	if d.Fail != nil {
		return d.Fail(name)
	}
	return nil
}

// Queue computes at once: a device runs queued work in order, so no caller can tell.
func (d *Device) Queue(ctx context.Context, b *engine.Batch, from []int32) error {
	if err := errors.Join(ctx.Err(), d.call("queue")); err != nil {
		return err
	}
	own := *b
	own.Tokens = append([]int32(nil), b.Tokens...)
	for i, f := range from {
		if f >= 0 {
			own.Tokens[i] = d.last[f]
		}
	}
	if len(d.waiting) > 0 {
		d.Overlaps++
	}
	d.rows = len(b.LogitRows)
	d.logits = make([]float32, d.rows*d.spec.Vocab)
	return d.Step(ctx, &own, d.logits)
}

// Sample chooses from the logits of the step queued last.
func (d *Device) Sample(choices []engine.SamplingParams) error {
	if err := d.call("sample"); err != nil {
		return err
	}
	if d.rows == 0 || len(choices) != d.rows || len(d.waiting) == 2 {
		panic(fmt.Sprintf("%d choices for %d rows, %d samples wait", len(choices), d.rows,
			len(d.waiting)))
	}
	chosen := make([]engine.SampledToken, len(choices))
	d.last = make([]int32, len(choices))
	for i, c := range choices {
		chosen[i] = choose(c, d.logits[i*d.spec.Vocab:(i+1)*d.spec.Vocab])
		d.last[i] = max(chosen[i].ID, 0)
	}
	d.rows = 0
	d.waiting = append(d.waiting, chosen)
	return nil
}

// choose is sample.Row with a device's way to say that there is no token.
func choose(p engine.SamplingParams, logits []float32) engine.SampledToken {
	sampled, err := sample.Row(logits, p)
	switch {
	case errors.Is(err, sample.ErrNonFinite):
		return engine.SampledToken{ID: engine.NotFinite}
	case err != nil:
		return engine.SampledToken{ID: engine.NothingAllowed}
	}
	return sampled
}

// Wait gives the tokens of the oldest sample, which is over whether or not it fails.
func (d *Device) Wait(chosen []engine.SampledToken) error {
	if len(d.waiting) == 0 || len(chosen) != len(d.waiting[0]) {
		panic(fmt.Sprintf("%d samples wait, %d tokens are asked for", len(d.waiting), len(chosen)))
	}
	copy(chosen, d.waiting[0])
	d.waiting = d.waiting[1:]
	return d.call("wait")
}

// Idle tells that nothing is queued and nothing waits.
func (d *Device) Idle() bool { return d.rows == 0 && len(d.waiting) == 0 }

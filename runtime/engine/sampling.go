package engine

import (
	"context"
	"errors"
	"fmt"
)

// Sampling on the device, where the logits are. A device that samples runs a step as three calls,
// of which only the last one waits:
//
//	Queue   the forward pass of a batch; a row's token may be one that the last Sample chose and
//	        that the host has not read yet
//	Sample  how a token is chosen for each of the batch's logit rows; masks are needed now, not
//	        at Queue, so a grammar may take its time
//	Wait    the tokens of the oldest Sample that was not waited for
//
// A scheduler that stays one step ahead calls Queue(1) Sample(1), then for every n: Queue(n+1) with
// the tokens of n left on the device, Wait(n), the masks that follow from n, Sample(n+1). At most
// two Samples may be waiting.

// SamplingParams says how one token is chosen. Steps apply in the order that runtime/sample
// documents; penalties and biases are Edits.
type SamplingParams struct {
	Draw
	// one bit per token, set if the token is allowed, the lowest of a word first; nil: all
	Mask  []uint64
	Edits []Edit // at most one for a token
	// -1: none; n: the token's own, and n rivals. With any, Sample waits
	Logprobs int
}

// Draw is how a token is drawn from the probabilities of a row. Kernels read it in this layout.
type Draw struct {
	Temperature, TopP, MinP float32 // 0 takes the highest logit; 1 is off; 0 is off
	TopK                    int32   // 0 is off
	Seed                    uint64
	Position                int64
}

// Edit changes one logit v before the choice: v / Repetition if v is positive, else v * Repetition;
// then minus Penalty, plus Bias. Logprobs are those of the unedited logits.
type Edit struct {
	ID                        int32
	Repetition, Penalty, Bias float32
}

// SampledToken is a sampled token and the requested logprobs.
type SampledToken struct {
	ID      int32 // or one of the two below
	Logprob float32
	Top     []TokenLogprob // most probable first
}

// TokenLogprob is a token that might have been chosen.
type TokenLogprob struct {
	ID      int32
	Logprob float32
}

// Values of SampledToken.ID without a token.
const (
	NotFinite      = -1 // a logit is NaN or infinite: the device or the weights are broken
	NothingAllowed = -2 // the mask and the edits leave no token
)

// SamplingStep is a Step whose device chooses tokens.
type SamplingStep interface {
	Step
	// Queue starts a batch that passed Batch.Check. from is nil, or for each row -1 or the row of
	// the Sample before whose token it takes.
	Queue(b *Batch, from []int32) error
	// Sample starts the choice of a token for each logit row of the batch queued last.
	Sample(choices []SamplingParams) error
	// Wait waits for the oldest Sample and fills chosen, as long as its choices.
	Wait(chosen []SampledToken) error
}

var ErrNoSampling = errors.New("this device does not choose tokens")

// sampling is the state of an engine's queued steps.
type sampling struct {
	steps   []SamplingStep // sampled and not waited for, oldest first
	lengths []int          // how many choices each has
	queued  SamplingStep   // not sampled yet
	rows    int            // logit rows of queued
	last    int            // rows of the last Sample
}

// editsPerRow is how many edits fit for each row of logits.
const editsPerRow = 512

// MostEdits is how many edits all choices of a step with so many rows of logits may have.
func MostEdits(rows int) int { return rows * editsPerRow }

// mostWaiting is how many Samples may be waiting.
const mostWaiting = 2

func (e *InProcess) Queue(ctx context.Context, b *Batch, from []int32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	target, err := e.bucketFor(ctx, b)
	if err != nil {
		return err
	}
	if err := e.checkFrom(b, from); err != nil {
		return err
	}
	step, ok := target.step.(SamplingStep)
	if !ok {
		return ErrNoSampling
	}
	if err := step.Queue(b, from); err != nil {
		return err
	}
	e.last, e.chosen.queued, e.chosen.rows = target, step, len(b.LogitRows)
	return nil
}

func (e *InProcess) checkFrom(b *Batch, from []int32) error {
	if from != nil && len(from) != len(b.Tokens) {
		return fmt.Errorf("%d rows say where their token comes from, the step has %d", len(from),
			len(b.Tokens))
	}
	for i, f := range from {
		if f < -1 || int(f) >= e.chosen.last {
			return fmt.Errorf("row %d takes the token of row %d of a sample of %d", i, f,
				e.chosen.last)
		}
	}
	return nil
}

func (e *InProcess) Sample(choices []SamplingParams) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.chosen
	switch {
	case e.closed:
		return ErrClosed
	case c.queued == nil:
		return errors.New("no step is queued that could be sampled")
	case len(choices) != c.rows || len(choices) == 0:
		return fmt.Errorf("%d choices for a step with logits of %d rows", len(choices), c.rows)
	case len(c.steps) == mostWaiting:
		return fmt.Errorf("%d samples wait to be read already", mostWaiting)
	}
	for i, x := range choices {
		for _, edit := range x.Edits {
			if edit.ID < 0 || int(edit.ID) >= e.spec.Vocab {
				return fmt.Errorf("row %d: token %d of an edit is outside the vocabulary of %d", i,
					edit.ID, e.spec.Vocab)
			}
		}
	}
	step := c.queued
	c.queued = nil
	if err := step.Sample(choices); err != nil {
		return err
	}
	c.steps, c.lengths, c.last = append(c.steps, step), append(c.lengths, len(choices)),
		len(choices)
	return nil
}

// Wait gives the tokens of the oldest Sample; chosen must be as long as its choices.
func (e *InProcess) Wait(chosen []SampledToken) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.chosen
	switch {
	case e.closed:
		return ErrClosed
	case len(c.steps) == 0:
		return errors.New("nothing was sampled that could be waited for")
	case len(chosen) != c.lengths[0]:
		return fmt.Errorf("room for %d tokens of a sample of %d", len(chosen), c.lengths[0])
	}
	step := c.steps[0]
	c.steps, c.lengths = c.steps[1:], c.lengths[1:]
	return step.Wait(chosen)
}

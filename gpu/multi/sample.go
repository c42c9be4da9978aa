package multi

import (
	"errors"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Tokens chosen on the last card. The host takes part in every cut of a step's forward pass: so
// Queue runs the pass in a goroutine, and Sample joins it.
//
//	Queue(n+1)   goroutine: wait for the tokens of n, embed them on the first card, ...
//	             last card (queued, not waited for)
//	Wait(n)      the same tokens, for the caller
//	Sample(n+1)  joins the goroutine, queues the choice on the last card
//
// The first card needs the token that the last one has chosen, so waiting for it costs no time.

// samplingStep is a step whose last segment is on a device that samples.
type samplingStep struct {
	*step
	last engine.SamplingStep
}

var _ engine.SamplingStep = (*samplingStep)(nil)

// settle waits for the running pass and returns its error.
func (d *Device) settle() error {
	d.passing.Lock()
	p := d.pass
	d.passing.Unlock()
	if p == nil {
		return nil
	}
	return p()
}

// drain waits for the last pass's final segment, on the last card. The lock is held.
func (d *Device) drain() error {
	pending := d.pending
	d.pending = nil
	if pending == nil {
		return nil
	}
	return pending.Finish()
}

// sample is one Sample, and its tokens when they have been waited for.
type sample struct {
	chosen []engine.SampledToken
	wait   func() error // for them
}

// fifo are the Samples not read yet, oldest first.
type fifo struct {
	sync.Mutex
	waiting []*sample
	latest  *sample // of the last Sample, read or not
}

// await waits for the tokens of the oldest Samples, up to those of last. The lock is held.
func (f *fifo) await(last *sample) error {
	for _, x := range f.waiting {
		if x.wait(); x == last {
			break
		}
	}
	return last.wait()
}

func (s *samplingStep) Queue(b *engine.Batch, from []int32) error {
	d := s.dev
	d.settle() // Sample reports its error
	d.mu.Lock()
	closed := s.closed
	d.mu.Unlock()
	if closed {
		return engine.ErrClosed
	}
	b, from = copyBatch(b), slices.Clone(from)
	done := make(chan error, 1)
	go func() { done <- s.forward(b, from) }()
	d.passing.Lock()
	defer d.passing.Unlock()
	d.pass = sync.OnceValue(func() error { return <-done })
	return nil
}

// forward runs the pass, and leaves the last segment queued.
func (s *samplingStep) forward(b *engine.Batch, from []int32) error {
	d := s.dev
	if err := d.tokens.fill(b.Tokens, from); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.run(b, nil, func(last *part) error {
		if err := s.last.Queue(b, nil); err != nil {
			return err
		}
		if r, ok := last.step.(runner); ok {
			d.pending = r
		}
		return nil
	})
}

// fill replaces the tokens of rows that take theirs from the last Sample.
func (f *fifo) fill(tokens, from []int32) error {
	f.Lock()
	defer f.Unlock()
	for i, row := range from {
		if row < 0 {
			continue
		}
		if f.latest == nil || int(row) >= len(f.latest.chosen) {
			return errors.New("a row takes its token from a sample, and there was none")
		}
		if err := f.await(f.latest); err != nil {
			return err
		}
		// a row without a choice belongs to no sequence, so any token will do
		tokens[i] = max(f.latest.chosen[row].ID, 0)
	}
	return nil
}

// Sample joins the pass and queues the choice.
func (s *samplingStep) Sample(choices []engine.SamplingParams) error {
	d := s.dev
	if err := d.settle(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.closed {
		return engine.ErrClosed
	}
	if err := s.last.Sample(choices); err != nil {
		return err
	}
	x := &sample{chosen: make([]engine.SampledToken, len(choices))}
	x.wait = sync.OnceValue(func() error { return s.last.Wait(x.chosen) })
	d.tokens.Lock()
	defer d.tokens.Unlock()
	d.tokens.waiting, d.tokens.latest = append(d.tokens.waiting, x), x
	return nil
}

func (s *samplingStep) Wait(chosen []engine.SampledToken) error {
	f := &s.dev.tokens
	f.Lock()
	defer f.Unlock()
	if len(f.waiting) == 0 {
		return errors.New("nothing was sampled that could be waited for")
	}
	x := f.waiting[0]
	err := f.await(x)
	f.waiting = f.waiting[1:]
	copy(chosen, x.chosen)
	return err
}

// copyBatch copies a batch, so that the caller may continue to change its own.
func copyBatch(b *engine.Batch) *engine.Batch {
	x := &engine.Batch{Tokens: slices.Clone(b.Tokens), LogitRows: slices.Clone(b.LogitRows),
		Twins: slices.Clone(b.Twins), Rebuild: b.Rebuild}
	for _, q := range b.Seqs {
		x.Seqs = append(x.Seqs, engine.SeqRows{Start: q.Start, Rows: q.Rows,
			Full: slices.Clone(q.Full), Window: slices.Clone(q.Window)})
	}
	return x
}

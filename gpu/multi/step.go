package multi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// A step over several devices: one segment after the other, and the buffers moved between them.

type step struct {
	dev   *Device
	p     *engine.Program
	pool  *cache
	parts []part
	loads []*load

	bounce []byte // for buffers moved through the host
	bare   engine.Batch
	closed bool
}

var _ engine.Step = (*step)(nil)

// runner is a step whose device runs later requests after it. Start is Forward without logits.
type runner interface {
	Start(b *engine.Batch) error
	Finish() error
}

// Forward gives as times those of the operations on their devices, without the moves between these.
func (s *step) Forward(b *engine.Batch, logits []float32, times []int64) error {
	s.dev.settle()
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	return s.run(b, times, func(last *part) error {
		return last.step.Forward(b, logits, last.timesOf(times))
	})
}

// run runs the segments; last runs the last one. The device's lock is held.
func (s *step) run(b *engine.Batch, times []int64, last func(*part) error) (err error) {
	if s.closed {
		return engine.ErrClosed
	}
	if err := s.dev.drain(); err != nil {
		return err
	}
	if err := s.pool.notePages(b); err != nil {
		return err
	}
	var l *loading
	if len(s.loads) > 0 {
		l = start(s.loads)
		defer l.end()
	}
	running := -1 // the part whose experts are read from a staging area
	defer func() {
		if err != nil {
			// no work of this step may be queued when the next one runs; report the first error
			for i := range s.parts {
				if r, ok := s.parts[i].step.(runner); ok {
					r.Finish()
				}
			}
		}
	}()
	for i := range s.parts {
		x := &s.parts[i]
		if x.load >= 0 {
			if running >= 0 {
				if r, ok := s.parts[running].step.(runner); ok {
					if err := r.Finish(); err != nil {
						return s.annotate(&s.parts[running], err)
					}
				}
				close(l.freed[s.parts[running].load]) // its area can be written again
			}
			running = i
			if err := <-l.ready[x.load]; err != nil {
				return s.annotate(x, err)
			}
		}
		if err := s.move(b, x.bring); err != nil {
			return s.annotate(x, err)
		}
		if i == len(s.parts)-1 {
			err = last(x)
		} else {
			err = s.begin(x, b, times)
		}
		if err != nil {
			return s.annotate(x, err)
		}
	}
	return nil
}

func (s *step) annotate(x *part, err error) error {
	first, last := s.p.Ops[x.from].Label, s.p.Ops[x.to-1].Label
	return fmt.Errorf("%s, %s to %s: %w", s.dev.devices[x.device].Name(), first, last, err)
}

// begin starts a part, or runs it to its end on a device that cannot only start it.
func (s *step) begin(x *part, b *engine.Batch, times []int64) error {
	if !x.tables {
		b = s.withoutTables(b)
	}
	if r, ok := x.step.(runner); ok && times == nil {
		return r.Start(b)
	}
	return x.step.Forward(b, nil, x.timesOf(times))
}

// timesOf are the times of this part's operations among a step's.
func (x *part) timesOf(times []int64) []int64 {
	if times == nil {
		return nil
	}
	return times[x.from:x.to]
}

// withoutTables is a batch for segments that do not see the cache: some devices flatten block
// tables each time.
func (s *step) withoutTables(b *engine.Batch) *engine.Batch {
	s.bare = engine.Batch{Tokens: b.Tokens, LogitRows: b.LogitRows, Rebuild: b.Rebuild,
		Seqs: s.bare.Seqs[:0]}
	for _, q := range b.Seqs {
		s.bare.Seqs = append(s.bare.Seqs, engine.SeqRows{Start: q.Start, Rows: q.Rows})
	}
	return &s.bare
}

func (s *step) Close() (err error) {
	s.dev.settle()
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, x := range slices.Backward(s.parts) { // the first of a chain has what the others use
		if x.step != nil {
			err = errors.Join(err, x.step.Close())
		}
	}
	s.dev.users.Release()
	return err
}

package device

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A step on a GPU: the launches of a program as a graph, and the state that is copied before it.

type step struct {
	dev        *Device
	p          *engine.Program
	layout     layout
	reference  bool        // no variants
	steady     bool        // only those that give a row the same bits in steps of any size
	multiplier *multiplier // of matrices of many rows; nil: the best that the compute mode allows
	forced     []Variant   // used wherever they fit; nil: the device's, or the fastest
	// lead is the earlier step of a chain whose state this one shares; nil: it has its own.
	lead *step

	resources   // of this step alone
	state       *stateMemory
	logits      *sharedRegion // f32 [rows, vocab]; nil when the program gives none
	frequencies kernels.Pointer
	sampler     *sampler // nil if logits is

	partial, arrived *sharedRegion // of blocks that divide a sum; nil for the reference kernels
	terms            *sharedRegion // of MXFP4 activations; may be nil too
	scratch          kernels.Scratch

	phases []phase
	graph  *driver.Graph
}

var _ engine.Step = (*step)(nil)

// Compile turns a program into a graph.
func (d *Device) Compile(p *engine.Program) (engine.Step, error) {
	s, err := d.compile(&step{p: p})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// compile compiles a step whose program and options the caller has filled in.
func (d *Device) compile(s *step) (*step, error) {
	p := s.p
	if p.Settings.ISA != "" {
		return nil, fmt.Errorf("instruction set %q is the CPU's: a GPU has one", p.Settings.ISA)
	}
	if err := fits(p); err != nil {
		return nil, err
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	if s.forced == nil {
		s.forced = d.forced
	}
	s.dev, s.layout = d, layoutOf(p)
	s.resources.d = d
	s.steady = p.Settings.Deterministic && !s.reference && !d.reference
	s.reference = s.reference || d.reference
	if err := s.build(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *step) build() (err error) {
	d := s.dev
	if s.lead != nil {
		s.state = s.lead.state
	} else if s.state, err = d.joinState(s.layout.bytes()); err != nil {
		return err
	}
	for i, op := range s.p.Ops {
		if err := s.prepare(op); err != nil {
			return operationError(i, op, err)
		}
	}
	if s.logits != nil {
		if err := s.joinSampler(); err != nil {
			return err
		}
	}
	if err := s.shareScratch(); err != nil {
		return err
	}
	if err := s.cut(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.graph, err = d.stream.Capture(s.launchAll); err != nil {
		return fmt.Errorf("record the step as a graph: %w", err)
	}
	return nil
}

// prepare checks an operation's buffers and makes other memory that it needs.
func (s *step) prepare(op *engine.Op) (err error) {
	for _, b := range slices.Concat(op.Out, op.In, op.W) {
		if err := engine.Within(s.p, b,
			func(r *region) bool { return r.dev == s.dev && r.address != 0 }); err != nil {
			return err
		}
		if b != nil && b.Home == engine.Logits && s.logits == nil {
			if s.logits, err = s.dev.shareMemory(logitsMemory, s.p.BytesOf(b)); err != nil {
				return err
			}
		}
	}
	if op.Kind != engine.Angles || s.frequencies != 0 {
		return nil
	}
	s.frequencies = s.upload(engine.Bytes(op.Frequencies))
	return s.err
}

// shareScratch gets the shared memory that kernels need besides the program's own.
func (s *step) shareScratch() (err error) {
	if s.reference {
		return nil
	}
	terms := termsBytes(s.p.Spec, s.p.Settings.Compute, s.p.Rows, s.dev.target.Unit)
	if terms > 0 {
		if s.terms, err = s.dev.shareMemory(termsMemory, terms); err != nil {
			return err
		}
	}
	partial, arrived := kernels.ScratchBytes(s.p.Rows, s.heads(), s.p.Spec.MaxPosition,
		s.p.Spec.Hidden, s.p.Spec.Vocab, s.steady)
	if s.partial, err = s.dev.shareMemory(partialMemory, partial); err != nil {
		return err
	}
	if s.arrived, err = s.dev.shareMemory(arrivedMemory, arrived); err == nil {
		s.scratch = kernels.Scratch{Partial: s.partial.address, Arrived: s.arrived.address,
			Steady: s.steady}
	}
	return err
}

// launchAll queues the step. Kernels of few rows overlap; those of many, which steady steps have,
// fill the card, and others that wait there would be in their way.
func (s *step) launchAll() error {
	s.dev.stream.Overlap(s.dev.overlaps && s.p.Rows <= kernels.DecodeRows && !s.steady)
	defer s.dev.stream.Overlap(false)
	for i := range s.phases {
		if err := s.launch(i); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) launch(i int) error {
	for _, l := range s.phases[i].ready {
		if err := l.queue(s.dev.stream); err != nil {
			return fmt.Errorf("%s: %w", s.p.Ops[s.phases[i].from].Label, err)
		}
	}
	return nil
}

func (s *step) Forward(b *engine.Batch, logits []float32, times []int64) error {
	return s.locked(func() error {
		if times != nil {
			return s.timed(b, logits, times)
		}
		return s.forward(b, logits, s.launchGraph)
	})
}

// locked does work with the device locked. An error returns once the failed work has ended: the
// next work writes into the same pinned memory.
func (s *step) locked(work func() error) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.graph == nil {
		return engine.ErrClosed
	}
	err := work()
	if err != nil {
		s.dev.stream.Synchronize() // report the error above
	}
	return err
}

func (s *step) forward(b *engine.Batch, logits []float32, launch func() error) error {
	if err := s.queue(b, nil, launch); err != nil {
		return err
	}
	if len(logits) > 0 && s.logits != nil {
		if err := s.dev.read(s.logits.address, engine.Bytes(logits)); err != nil {
			return fmt.Errorf("read the logits: %w", err)
		}
	} else if err := s.dev.stream.Synchronize(); err != nil {
		return fmt.Errorf("run the step: %w", err)
	}
	return nil
}

// queue sends the state and launches the step; from as in Queue.
func (s *step) queue(b *engine.Batch, from []int32, launch func() error) error {
	if s.lead == nil {
		if err := s.sendState(b, from); err != nil {
			return err
		}
	}
	if err := launch(); err != nil {
		return fmt.Errorf("launch the step: %w", err)
	}
	return nil
}

func (s *step) launchGraph() error { return s.graph.Launch(s.dev.stream) }

func (s *step) sendState(b *engine.Batch, from []int32) error {
	if most := s.logitRows(s.layout.bucket); len(b.LogitRows) > most {
		return fmt.Errorf("logits of %d rows are asked for, this step has room for %d",
			len(b.LogitRows), most)
	}
	if len(b.Seqs) > s.layout.seqs {
		return fmt.Errorf("rows of %d sequences are in a step, this one has room for %d",
			len(b.Seqs), s.layout.seqs)
	}
	if err := s.state.send(func(state []byte) int {
		return s.layout.write(state, b, s.p.Spec.Window, s.p.Spec.ExpertsPerToken)
	}); err != nil {
		return err
	}
	return s.feed(from)
}

// timed runs a batch phase by phase, with a mark before each and after the last.
func (s *step) timed(b *engine.Batch, logits []float32, times []int64) (err error) {
	h := resources{d: s.dev}
	defer func() {
		if err != nil {
			s.dev.stream.Synchronize() // the marks are not freed before; report the first error
		}
		err = errors.Join(err, h.close())
	}()
	marks := make([]*driver.Event, len(s.phases)+1)
	for i := range marks {
		marks[i] = h.event(true)
	}
	if h.err != nil {
		return h.err
	}
	if err := s.forward(b, logits, func() error {
		for i := range s.phases {
			if err := marks[i].Record(s.dev.stream); err != nil {
				return err
			}
			if err := s.launch(i); err != nil {
				return err
			}
		}
		return marks[len(s.phases)].Record(s.dev.stream)
	}); err != nil {
		return err
	}
	clear(times)
	for i, ph := range s.phases {
		took, err := marks[i+1].Since(marks[i])
		if err != nil {
			return fmt.Errorf("read the clock of %s: %w", s.p.Ops[ph.from].Label, err)
		}
		times[s.heaviest(ph)] = took.Nanoseconds()
	}
	return nil
}

// heaviest is the operation with most weights of a phase, which has the whole phase's time.
func (s *step) heaviest(ph phase) (index int) {
	most := int64(-1)
	for i := ph.from; i < ph.to; i++ {
		var bytes int64
		for _, w := range s.p.Ops[i].W {
			if w != nil {
				bytes += s.p.BytesOf(w)
			}
		}
		if bytes > most {
			index, most = i, bytes
		}
	}
	return index
}

// Close waits for queued work and frees everything. It may be called more than once.
func (s *step) Close() error {
	s.dev.mu.Lock()
	if s.layout.bucket == 0 {
		s.dev.mu.Unlock()
		return nil
	}
	s.layout = layout{}
	var errs []error
	if s.graph != nil {
		// a card that still runs a graph or writes tokens must not find them freed
		errs = append(errs, s.dev.stream.Synchronize(), s.graph.Close())
		s.graph = nil
	}
	s.dev.mu.Unlock()
	defer s.dev.users.Release()
	if s.sampler != nil {
		errs = append(errs, s.sampler.leave())
	}
	for _, r := range []*sharedRegion{s.logits, s.partial, s.arrived, s.terms} {
		if r != nil {
			errs = append(errs, r.leave())
		}
	}
	if s.state != nil && s.lead == nil {
		errs = append(errs, s.state.leave())
	}
	return errors.Join(append(errs, s.resources.close())...)
}

package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A step on a GPU: the launches of a program as a graph, and the state in front of it.

type step struct {
	dev       *Device
	p         *engine.Program
	layout    layout
	reference bool  // no variants
	way       *way  // as in choice
	lead      *step // whose state this step has, being behind it in a chain; nil: it has its own

	state       *stateMemory  // layout
	logits      *sharedRegion // f32 [rows, vocab]; nil when the program gives none
	frequencies *region
	// once it has sampled; changed under both of the device's locks, joining and mu
	sampler *sampler

	partial, arrived *sharedRegion // of the attention kernels, nil where no kernel needs them
	terms            *sharedRegion // of activations in MXFP4, as well

	phases []readyPhase
	graph  *driver.Graph
	whole  *persistent     // the same in one launch, where that was chosen and can be
	marks  []*driver.Event // before each phase and behind the last, while profiling
	ns     []int64         // of each operation
	ran    bool            // ns is of a step
}

// readyPhase is a phase with its launches packed.
type readyPhase struct {
	phase
	ready []launch
}

var _ engine.Step = (*step)(nil)

// Compile turns a program into a graph.
func (d *Device) Compile(p *engine.Program) (engine.Step, error) {
	if p.Settings.ISA != "" {
		return nil, fmt.Errorf("instruction set %q is the CPU's: a GPU has one", p.Settings.ISA)
	}
	s, err := d.compile(p, choice{reference: d.reference})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// choice is of the kernels that a step may have.
type choice struct {
	reference bool // no variants
	way       *way // of matrices of many rows; nil: the best that the compute mode allows
}

func (d *Device) compile(p *engine.Program, c choice) (*step, error) {
	return d.build(&step{p: p, reference: c.reference, way: c.way})
}

// compileBehind compiles a program of a chain.
func (d *Device) compileBehind(lead *step, p *engine.Program) (*step, error) {
	return d.build(&step{p: p, reference: d.reference, lead: lead})
}

func (d *Device) build(s *step) (*step, error) {
	p := s.p
	if err := fits(p); err != nil {
		return nil, err
	}
	if err := d.use(1); err != nil {
		return nil, err
	}
	s.dev, s.layout, s.reference = d, layoutOf(p), s.reference || p.Settings.Deterministic
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
	r := &recorder{dev: d, p: s.p, t: d.target, layout: s.layout,
		state: kernels.Pointer(s.state.at), reference: s.reference, only: s.way}
	for i, op := range s.p.Ops {
		if err := s.prepare(r, op); err != nil {
			return operationError{i, op.Label, err}
		}
	}
	if err := s.shareScratch(r); err != nil {
		return err
	}
	phases, err := r.phases()
	if err != nil {
		return err
	}
	for _, ph := range phases {
		made := readyPhase{phase: ph}
		for _, l := range ph.launches {
			ready, err := r.ready(l)
			if err != nil {
				return operationError{ph.from, s.p.Ops[ph.from].Label, err}
			}
			made.ready = append(made.ready, ready)
		}
		s.phases = append(s.phases, made)
	}
	if s.whole, err = s.makePersistent(); err != nil {
		return fmt.Errorf("the step as one launch: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.graph, err = d.stream.Capture(func() error {
		for i := range s.phases {
			if err := s.launch(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the step as a graph: %w", err)
	}
	return nil
}

// prepare checks an operation's buffers and makes the memory that it needs beside them.
func (s *step) prepare(r *recorder, op *engine.Op) (err error) {
	for _, list := range [][]*engine.Buffer{op.Out, op.In, op.W} {
		for _, b := range list {
			if err := r.own(b); err != nil {
				return err
			}
			if b == nil || b.Home != engine.Logits || s.logits != nil {
				continue
			}
			if s.logits, err = s.dev.share(logitsMemory, s.p.BytesOf(b)); err != nil {
				return err
			}
			r.logits = kernels.Pointer(s.logits.at)
		}
	}
	if op.Kind != engine.Angles || s.frequencies != nil {
		return nil
	}
	data := make([]byte, 0, 4*len(op.Frequencies))
	for _, f := range op.Frequencies {
		data = binary.NativeEndian.AppendUint32(data, math.Float32bits(f))
	}
	if s.frequencies, err = s.dev.alloc(int64(len(data))); err != nil {
		return err
	}
	r.frequencies = kernels.Pointer(s.frequencies.at)
	return s.frequencies.Write(0, data)
}

// shareScratch joins the memory that kernels need beside the program's own.
func (s *step) shareScratch(r *recorder) (err error) {
	if bytes := r.termsBytes(); bytes > 0 {
		if s.terms, err = s.dev.share(termsMemory, bytes); err != nil {
			return err
		}
		r.mx = kernels.Pointer(s.terms.at)
	}
	h := r.heads()
	if !kernels.Attends(h) || s.reference {
		return nil
	}
	r.attends, r.runs = true, r.t.AttendRuns(h, s.p.Spec.MaxPosition)
	if bytes := kernels.DecodePartialBytes(s.p.Rows, h, s.p.Spec.MaxPosition); bytes > 0 {
		if s.partial, err = s.dev.share(partialMemory, bytes); err != nil {
			return err
		}
		r.partial = kernels.Pointer(s.partial.at)
	}
	if s.arrived, err = s.dev.share(arrivedMemory, int64(4*s.p.Rows*h.KV)); err != nil {
		return err
	}
	r.arrived = kernels.Pointer(s.arrived.at)
	return nil
}

// launch queues one phase.
func (s *step) launch(i int) error {
	for _, l := range s.phases[i].ready {
		if err := s.dev.stream.Launch(l.function, l.shape, l.args); err != nil {
			return fmt.Errorf("%s: %w", s.p.Ops[s.phases[i].from].Label, err)
		}
	}
	return nil
}

// Forward runs one batch and waits for its logits.
func (s *step) Forward(b *engine.Batch, logits []float32) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.closed() {
		return engine.ErrClosed
	}
	return s.settled(s.forward(b, logits))
}

// closed tells that the step or its device was closed; the lock is held.
func (s *step) closed() bool { return s.graph == nil || s.dev.closed }

// settled passes an error on when nothing of what failed is under way any more: what comes next
// writes into the same pinned memory. The lock is held.
func (s *step) settled(err error) error {
	if err != nil {
		s.dev.stream.Synchronize() // the error above is the one to tell
	}
	return err
}

func (s *step) forward(b *engine.Batch, logits []float32) error {
	if err := s.queue(b, nil); err != nil {
		return err
	}
	if len(logits) > 0 && s.logits != nil {
		if err := s.dev.read(s.logits.at, bytesOf(logits)); err != nil {
			return fmt.Errorf("read the logits: %w", err)
		}
	} else if err := s.dev.stream.Synchronize(); err != nil {
		return fmt.Errorf("run the step: %w", err)
	}
	return s.clock()
}

// queue sends the state and launches the step; from as in Queue.
func (s *step) queue(b *engine.Batch, from []int32) error {
	if s.lead == nil {
		if err := s.sendState(b, from); err != nil {
			return err
		}
	}
	if s.marks != nil {
		return s.queueTimed()
	}
	if s.whole != nil {
		if err := s.whole.queue(s.dev.stream); err != nil {
			return fmt.Errorf("launch the step: %w", err)
		}
		return nil
	}
	if err := s.graph.Launch(s.dev.stream); err != nil {
		return fmt.Errorf("launch the step: %w", err)
	}
	return nil
}

func (s *step) sendState(b *engine.Batch, from []int32) error {
	if most := s.logitRows(s.layout.bucket); len(b.LogitRows) > most {
		return fmt.Errorf("logits of %d rows are asked for, this step has room for %d",
			len(b.LogitRows), most)
	}
	if len(b.Seqs) > s.layout.seqs {
		return fmt.Errorf("rows of %d sequences are in a step, this one has room for %d",
			len(b.Seqs), s.layout.seqs)
	}
	err := s.state.send(func(state []byte) int {
		return s.layout.write(state, b, s.p.Spec.Window,
			s.p.Spec.ExpertsPerToken)
	})
	if err != nil {
		return err
	}
	return s.feed(from)
}

// queueTimed launches the phases one by one, with a mark before each.
func (s *step) queueTimed() error {
	for i := range s.phases {
		if err := s.marks[i].Record(s.dev.stream); err != nil {
			return err
		}
		if err := s.launch(i); err != nil {
			return err
		}
	}
	return s.marks[len(s.phases)].Record(s.dev.stream)
}

// clock reads the marks of a step that has ended.
func (s *step) clock() error {
	if s.marks == nil {
		return nil
	}
	clear(s.ns)
	for i, ph := range s.phases {
		took, err := s.marks[i+1].Since(s.marks[i])
		if err != nil {
			return fmt.Errorf("read the clock of %s: %w", s.p.Ops[ph.from].Label, err)
		}
		s.ns[s.heaviest(ph.phase)] = took.Nanoseconds()
	}
	s.ran = true
	return nil
}

// heaviest is the operation of a phase whose weights are most: the time of the whole phase is noted
// as its own, since the others run inside.
func (s *step) heaviest(ph phase) (at int) {
	most := int64(-1)
	for i := ph.from; i < ph.to; i++ {
		var bytes int64
		for _, w := range s.p.Ops[i].W {
			if w != nil {
				bytes += s.p.BytesOf(w)
			}
		}
		if bytes > most {
			at, most = i, bytes
		}
	}
	return at
}

// bytesOf is the memory of float32 values.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// Profiling makes or frees the marks. Where the driver refuses them there is no profile.
func (s *step) Profiling(on bool) {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.ran = false
	if !on || s.graph == nil {
		s.unmark()
		return
	}
	if s.marks != nil {
		return
	}
	s.ns = make([]int64, len(s.p.Ops))
	for range len(s.phases) + 1 {
		e, err := s.dev.ctx.NewEvent(true)
		if err != nil {
			s.unmark()
			return
		}
		s.marks = append(s.marks, e)
	}
}

func (s *step) unmark() error {
	var errs []error
	for _, e := range s.marks {
		errs = append(errs, e.Close())
	}
	s.marks, s.ns = nil, nil
	return errors.Join(errs...)
}

// Profile is the last step's times.
func (s *step) Profile() []int64 {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if !s.ran {
		return nil
	}
	return append([]int64(nil), s.ns...)
}

// Close waits for what is queued, and frees the graph and the state. It may be called more than
// once.
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
	errs = append(errs, s.unmark())
	s.dev.users--
	s.dev.mu.Unlock()
	errs = append(errs, s.leaveSampler())
	if s.whole != nil {
		errs = append(errs, s.whole.free())
	}
	for _, r := range []*sharedRegion{s.logits, s.partial, s.arrived, s.terms} {
		if r != nil {
			errs = append(errs, r.leave())
		}
	}
	if s.state != nil && s.lead == nil {
		errs = append(errs, s.state.leave())
	}
	if s.frequencies != nil {
		errs = append(errs, s.frequencies.Free())
	}
	return errors.Join(errs...)
}

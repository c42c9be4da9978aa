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
	dev    *Device
	p      *engine.Program
	layout layout
	plain  bool  // no forms
	way    *way  // as in choice
	lead   *step // whose state this step has, being behind it in a chain; nil: it has its own

	state       *region       // layout
	logits      *sharedRegion // f32 [rows, vocab]; nil when the program gives none
	frequencies *region
	pinned      [2]stateOnItsWay // in turn: one is written while the device reads the other
	turn        int
	sampler     *sampler // once it has sampled

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

// stateOnItsWay is pinned memory for a state, and the mark behind the copy that last read it.
type stateOnItsWay struct {
	memory *driver.HostMemory
	sent   *driver.Event
}

var _ engine.Step = (*step)(nil)

// Compile turns a program into a graph.
func (d *Device) Compile(p *engine.Program) (engine.Step, error) {
	if p.Options.ISA != "" {
		return nil, fmt.Errorf("instruction set %q is the CPU's: a GPU has one", p.Options.ISA)
	}
	s, err := d.compile(p, choice{plain: d.plain})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// choice is of the kernels that a step may have.
type choice struct {
	plain bool // no forms
	way   *way // of matrices of many rows; nil: the best that the compute mode allows
}

func (d *Device) compile(p *engine.Program, c choice) (*step, error) {
	return d.build(&step{p: p, plain: c.plain, way: c.way})
}

// compileBehind compiles a program of a chain.
func (d *Device) compileBehind(lead *step, p *engine.Program) (*step, error) {
	return d.build(&step{p: p, plain: d.plain, lead: lead})
}

func (d *Device) build(s *step) (*step, error) {
	p := s.p
	if err := fits(p); err != nil {
		return nil, err
	}
	if err := d.use(1); err != nil {
		return nil, err
	}
	s.dev, s.layout, s.plain = d, layoutOf(p), s.plain || p.Options.Deterministic
	if err := s.build(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *step) build() (err error) {
	d := s.dev
	if err := s.ownState(); err != nil {
		return err
	}
	r := &recorder{dev: d, p: s.p, t: d.target, layout: s.layout, state: kernels.Pointer(s.state.at), plain: s.plain, only: s.way}
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

// ownState makes the memory of the state, on the card and on the way there; or takes that of the chain.
func (s *step) ownState() (err error) {
	if s.lead != nil {
		s.state = s.lead.state
		return nil
	}
	if s.state, err = s.dev.alloc(int64(s.layout.bytes())); err != nil {
		return err
	}
	for i := range s.pinned {
		if s.pinned[i].memory, err = s.dev.ctx.AllocHost(s.layout.bytes()); err != nil {
			return err
		}
		if s.pinned[i].sent, err = s.dev.ctx.NewEvent(false); err != nil {
			s.pinned[i].sent = nil
			return err
		}
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
	if !kernels.Attends(h) || s.plain {
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
	if s.graph == nil || s.dev.closed {
		return engine.ErrClosed
	}
	err := s.forward(b, logits)
	if err != nil {
		s.dev.stream.Synchronize() // nothing of it is under way when the next one begins; the error above is the one to tell
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
		return fmt.Errorf("logits of %d rows are asked for, this step has room for %d", len(b.LogitRows), most)
	}
	p := &s.pinned[s.turn]
	s.turn = 1 - s.turn
	if err := p.sent.Synchronize(); err != nil {
		return fmt.Errorf("wait for the state's memory: %w", err)
	}
	used := s.layout.write(p.memory.Bytes(), b, s.p.Spec.Window, s.p.Spec.ExpertsPerToken)
	if err := s.dev.stream.CopyIn(s.state.at, p.memory, 0, used); err != nil {
		return fmt.Errorf("send the step's state: %w", err)
	}
	if err := p.sent.Record(s.dev.stream); err != nil {
		return fmt.Errorf("send the step's state: %w", err)
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

// heaviest is the operation of a phase whose weights are most: the time of the whole phase is noted as its own, since the others run inside.
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

// Close frees the graph and the state. It may be called more than once.
func (s *step) Close() error {
	s.dev.mu.Lock()
	if s.layout.bucket == 0 {
		s.dev.mu.Unlock()
		return nil
	}
	s.layout = layout{}
	errs := []error{s.unmark()}
	if s.graph != nil {
		errs = append(errs, s.graph.Close())
		s.graph = nil
	}
	for _, p := range s.pinned {
		if p.memory != nil {
			errs = append(errs, p.memory.Free())
		}
		if p.sent != nil {
			errs = append(errs, p.sent.Close())
		}
	}
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
	for _, r := range []*region{s.state, s.frequencies} {
		if r != nil && (r != s.state || s.lead == nil) {
			errs = append(errs, r.Free())
		}
	}
	return errors.Join(errs...)
}

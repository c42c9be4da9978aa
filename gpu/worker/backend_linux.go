package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The GPUs of a worker, as the parent sees them.

type Options struct {
	Program   []string          // the worker's executable and its arguments
	Settings  engine.Settings   // the devices to open
	Notify    func(line string) // gets lines for people; may be nil
	Log       func(line string) // gets the worker's output; may be nil
	Identity  Identity          // the zero value is ThisBuild()
	Deadlines Deadlines

	logits int64    // bytes of shared memory for logits; 0: logitsBytes
	demo   *os.File // the demo's pack for a worker without one; nil: it has its own
}

// Backend is the engine.Backend of a worker, with one model at a time. After the worker's end every
// call fails with ErrLost, except Close.
type Backend struct {
	c      *connection
	notify func(line string)

	mu     sync.Mutex
	text   backendText
	loaded bool
}

var _ Local = (*Backend)(nil)

// Start runs a worker and has it open its GPUs.
func Start(o Options) (_ *Backend, err error) {
	o.Identity, o.logits = cmp.Or(o.Identity, ThisBuild()), cmp.Or(o.logits, logitsBytes)
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	o.Deadlines.Setup = cmp.Or(o.Deadlines.Setup, setupDeadline)
	s, file, err := newShared(o.logits)
	if err != nil {
		return nil, err
	}
	p, err := start(o.Program, file, o.demo, o.Log)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the GPU worker: %w", err), s.close())
	}
	b := &Backend{c: &connection{p: p, shared: s, deadlines: o.Deadlines}, notify: o.Notify}
	if err := b.greet(o); err != nil {
		return nil, errors.Join(err, b.c.disconnect())
	}
	return b, nil
}

// greet makes sure that the other side is of this build, and has it open its GPUs.
func (b *Backend) greet(o Options) error {
	var theirs Identity
	if err := b.c.call(request{kind: hello,
		ask: helloText{o.Identity, int64(len(b.c.shared.bytes))}, into: &theirs}); err != nil {
		return err
	}
	if err := o.Identity.match(theirs); err != nil {
		return err
	}
	var t backendText
	if err := b.c.call(request{kind: open, ask: o.Settings, into: &t}); err != nil {
		return err
	}
	b.setOpen(t)
	return nil
}

// setOpen notes the worker's open devices.
func (b *Backend) setOpen(t backendText) {
	b.mu.Lock()
	b.text = t
	b.mu.Unlock()
	b.c.several.Store(t.Several)
	for _, line := range t.Notes {
		b.notify(line)
	}
}

func (b *Backend) open() backendText {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text
}

func (b *Backend) Name() string { return b.open().Name + ", in a process of its own" }

// Caps gives the GPUs'. A worker is started only for a card.
func (b *Backend) Caps() engine.Caps {
	caps := b.open().Caps
	caps.Discrete = true
	return caps
}

func (b *Backend) Several() bool { return b.open().Several }

// Kernels describes the worker's kernels, with a sentence for each that is wrong.
func (b *Backend) Kernels() (summary string, wrong []string) {
	t := b.open()
	return t.Kernels, slices.Clone(t.Wrong)
}

func (b *Backend) Traffic() Traffic {
	return Traffic{b.c.steps.Load(), b.c.sent.Load(), b.c.received.Load()}
}

// Memory asks the GPUs; lost ones have nothing free.
func (b *Backend) Memory() (total, free int64) {
	var m memoryText
	if err := b.c.call(request{kind: memory, into: &m}); err != nil {
		return b.open().Total, 0
	}
	return m.Total, m.Free
}

func (b *Backend) Room(spec models.Spec, s engine.Settings) (engine.Room, error) {
	return b.room(askRoom{spec, s, false})
}

func (b *Backend) RoomHere(spec models.Spec, s engine.Settings) (engine.Room, error) {
	return b.room(askRoom{spec, s, true})
}

func (b *Backend) room(ask askRoom) (engine.Room, error) {
	var t roomText
	if err := b.c.call(request{kind: room, ask: ask, into: &t}); err != nil {
		return engine.Room{}, err
	}
	b.setOpen(t.Backend)
	return t.Room, nil
}

// Load has the worker open the same checkpoint as ckpt, and load it.
func (b *Backend) Load(ctx context.Context, ckpt *checkpoint.Checkpoint, s engine.Settings,
	progress func(done, total int64)) (engine.Engine, error) {
	if ckpt.Path == "" && ckpt.Spec.Name != models.Demo {
		return nil, fmt.Errorf("%s is not a file, so a GPU engine in a process of its own "+
			"cannot open it", ckpt.Spec.Name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loaded {
		return nil, errors.New("a GPU worker has one model at a time")
	}
	var t loadedText
	onPart := func(text []byte) (bool, error) {
		var p progressText
		if err := json.Unmarshal(text, &p); err != nil {
			return false, err
		}
		if progress != nil {
			progress(p.Done, p.Total)
		}
		return ctx.Err() == nil, nil
	}
	ask := loadText{Path: ckpt.Path, Lora: ckpt.Refs, AdapterIDs: ckpt.AdapterIDs,
		Spec: ckpt.Spec, Files: ckpt.FileStates().Files, Settings: s}
	err := b.c.call(request{kind: load, ask: ask, into: &t, part: onPart})
	if err = errors.Join(ctx.Err(), err); err != nil {
		return nil, err
	}
	b.loaded = true
	return &model{b: b, spec: ckpt.Spec, text: t, caps: b.text.Caps}, nil
}

func (b *Backend) Test(ctx context.Context, ask json.RawMessage,
	emit func(json.RawMessage) error) error {
	var failed error
	err := b.c.call(request{kind: test, ask: ask, part: func(text []byte) (bool, error) {
		failed = errors.Join(ctx.Err(), emit(slices.Clone(text)))
		return failed == nil, nil
	}})
	if failed != nil {
		return failed
	}
	return err
}

func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loaded && !b.isLost() {
		return fmt.Errorf("%s is closed with a model in use", b.text.Name)
	}
	return b.c.disconnect()
}

func (b *Backend) isLost() bool {
	select {
	case <-b.c.p.done:
		return true
	default:
		return false
	}
}

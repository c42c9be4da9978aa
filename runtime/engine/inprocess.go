package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/q8"
)

// An engine in this process: memory laid out and allocated once, one compiled step per bucket.

// InProcess is the Engine of a device of this process. The checkpoint must stay open until Close.
type InProcess struct {
	dev      Device
	spec     models.Spec
	settings Settings
	plan     Plan

	mu      sync.Mutex
	buckets []bucket // ascending by rows
	rebuild []bucket // the rebuild steps that were needed so far, in any order
	kv      Region
	scratch Region
	weights map[string]Region
	dense   []*q8.Copy // with DenseQ8: the checkpoint's and its adapters', nil for one without
	last    *bucket    // ran the last step
	chosen  sampling
	closed  bool
}

// A bucket is the program for steps of up to that many rows.
type bucket struct {
	program *Program
	step    Step
}

var ErrClosed = errors.New("the engine is closed")

// New uploads the weights and compiles the steps. On failure it frees everything.
func New(dev Device, ckpt *checkpoint.Checkpoint, o Settings) (*InProcess, error) {
	return load(context.Background(), dev, ckpt, o, nil)
}

func load(ctx context.Context, dev Device, ckpt *checkpoint.Checkpoint, o Settings,
	progress func(done, total int64)) (*InProcess, error) {
	o, err := o.On(dev).withDefaults()
	if err != nil {
		return nil, err
	}
	caps := dev.Caps()
	if !caps.Has(o.Compute) {
		return nil, fmt.Errorf("%s has no kernels for the compute mode %s: use %s", dev.Name(),
			o.Compute, strings.Join(caps.Computes, " or "))
	}
	if o.Adapters = ckpt.Adapters; len(o.Adapters) > 0 && !caps.Adapters {
		return nil, fmt.Errorf("%s computes one model at a time", dev.Name())
	}
	e := &InProcess{dev: dev, spec: ckpt.Spec, settings: o, weights: map[string]Region{}}
	if o.KVCacheDtype == KVFP8 && !caps.FP8KV {
		return nil, fmt.Errorf("%s has no kernels for KV pages in 8 bits: use bf16", dev.Name())
	}
	if o.Dense == DenseQ8 {
		if !caps.DenseQ8 {
			return nil, fmt.Errorf("%s has no kernels for dense weights in 8 bits: use %s",
				dev.Name(), DenseBF16)
		}
		if err := e.openDense(ckpt); err != nil {
			return nil, errors.Join(fmt.Errorf("the 8-bit copy of the dense weights: %w", err),
				e.Close())
		}
	}
	if err := e.build(ctx, ckpt, progress); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// openDense opens the 8-bit copies of the checkpoint and of the adapters that change dense weights.
func (e *InProcess) openDense(ckpt *checkpoint.Checkpoint) (err error) {
	e.dense = make([]*q8.Copy, 1+len(ckpt.Adapters))
	for i := range e.dense {
		if i > 0 && !slices.ContainsFunc(ckpt.Adapters[i-1].Changed, q8.Replaces) {
			continue
		}
		if e.dense[i], err = q8.Open(ckpt.ForAdapter(i), e.settings.DenseCache); err != nil {
			return err
		}
	}
	return nil
}

// bytesOf returns a weight's bytes and the checkpoint that holds them.
func (e *InProcess) bytesOf(b *Buffer, ckpt *checkpoint.Checkpoint) (data []byte,
	source *checkpoint.Checkpoint, err error) {
	name, ckpt := b.tensor(), ckpt.ForAdapter(b.Adapter)
	if b.Type == U8 && q8.Replaces(name) {
		return e.dense[b.Adapter].Tensor(name), ckpt, nil
	}
	tensor, err := ckpt.Tensor(name)
	return tensor.Data, ckpt, err
}

// build begins with the largest bucket, which has every weight and the arena of all.
func (e *InProcess) build(ctx context.Context, ckpt *checkpoint.Checkpoint,
	progress func(done, total int64)) error {
	for _, rows := range Buckets(e.settings.MaxNumBatchedTokens) {
		p, err := Record(e.spec, e.settings, rows)
		if err != nil {
			return err
		}
		if e.kv == nil {
			if err := e.allocate(ctx, p, ckpt, progress); err != nil {
				return err
			}
		}
		e.place(p)
		step, err := e.dev.Compile(p)
		if err != nil {
			return fmt.Errorf("compile a step of %d rows: %w", rows, err)
		}
		e.buckets = append([]bucket{{p, step}}, e.buckets...)
	}
	return nil
}

func (e *InProcess) place(p *Program) {
	p.Layout()
	for _, b := range p.Buffers {
		switch b.Home {
		case Scratch:
			b.Region = e.scratch
		case Cache:
			b.Region = e.kv
		case Weight:
			b.Region = e.weights[b.Name]
		}
	}
}

// allocate takes the memory the largest program needs and uploads the weights it names.
func (e *InProcess) allocate(ctx context.Context, p *Program, ckpt *checkpoint.Checkpoint,
	progress func(done, total int64)) (err error) {
	e.plan = planOf(p)
	alloc, upload := placing(e.dev, p)
	if e.kv, err = alloc(Cache, e.plan.KV()); err != nil {
		return fmt.Errorf("allocate %d KV pages: %w", e.plan.Pages, err)
	}
	if e.scratch, err = alloc(Scratch, e.plan.Scratch); err != nil {
		return fmt.Errorf("allocate scratch for %d rows: %w", p.Rows, err)
	}
	var uploaded int64
	discrete := e.dev.Caps().Discrete
	for _, b := range p.Buffers {
		if b.Home != Weight {
			continue
		}
		data, source, err := e.bytesOf(b, ckpt)
		if err != nil {
			return err
		}
		if int64(len(data)) != p.BytesOf(b) {
			return fmt.Errorf("%s has %d bytes, the model needs %d", b.Name, len(data),
				p.BytesOf(b))
		}
		if e.weights[b.Name], err = upload(b, data); err != nil {
			return fmt.Errorf("upload %s: %w", b.Name, err)
		}
		if discrete {
			source.Release(b.tensor()) // the card has a copy
		}
		if uploaded += int64(len(data)); progress != nil {
			progress(uploaded, e.plan.Weights)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Buckets are the rows of the programs, largest first: maxRows, then the powers of two below.
func Buckets(maxRows int) []int {
	buckets := []int{maxRows}
	for power := 1 << bits.Len(uint(maxRows-1)) / 2; power > 0; power /= 2 {
		buckets = append(buckets, power)
	}
	return buckets
}

func (e *InProcess) Spec() models.Spec  { return e.spec }
func (e *InProcess) Settings() Settings { return e.settings }
func (e *InProcess) Plan() Plan         { return e.plan }
func (e *InProcess) Caps() Caps         { return e.dev.Caps() }
func (e *InProcess) Cache() Region      { return e.kv }

func (e *InProcess) Step(ctx context.Context, b *Batch, logits []float32) error {
	_, err := e.run(ctx, b, logits, false)
	return err
}

func (e *InProcess) Measure(ctx context.Context, b *Batch, logits []float32) ([]Timing, error) {
	return e.run(ctx, b, logits, true)
}

// Timing is one operation of a measured step.
type Timing struct {
	Label       string
	Kind        Kind
	Nanoseconds int64
	Bytes       int64 // the least it had to move
}

func (e *InProcess) run(ctx context.Context, b *Batch, logits []float32, timed bool) ([]Timing,
	error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	target, err := e.bucketFor(ctx, b)
	if err != nil {
		return nil, err
	}
	want := len(b.LogitRows) * e.spec.Vocab
	if len(logits) < want {
		return nil, fmt.Errorf("room for %d logits, %d are asked for", len(logits), want)
	}
	p, ns := target.program, []int64(nil)
	if timed {
		ns = make([]int64, len(p.Ops))
	}
	e.last = target
	err = target.step.Forward(b, logits[:want], ns)
	if err = cmp.Or(err, mapping.Damaged()); err != nil { // weights that were cut off read as zeros
		return nil, err
	}
	if !timed {
		return nil, nil
	}
	times := make([]Timing, len(ns))
	work := p.WorkOf(b)
	for i := range ns {
		times[i] = Timing{p.Ops[i].Label, p.Ops[i].Kind, ns[i], p.Bytes(p.Ops[i], work)}
	}
	return times, nil
}

// bucketFor checks a batch and returns the smallest bucket with its rows. The lock is held.
func (e *InProcess) bucketFor(ctx context.Context, b *Batch) (*bucket, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.closed {
		return nil, ErrClosed
	}
	if err := b.CheckFor(e.spec, e.settings); err != nil {
		return nil, err
	}
	rows := max(len(b.Tokens), len(b.LogitRows))
	i := slices.IndexFunc(e.buckets, func(x bucket) bool { return x.program.Rows >= rows })
	if b.Rebuild {
		return e.rebuildBucket(&e.buckets[i])
	}
	return &e.buckets[i], nil
}

func (e *InProcess) Tap(name string, rows int) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if e.last == nil {
		return nil, fmt.Errorf("no step has run")
	}
	b := e.last.program.Buffer("tap." + name)
	if b == nil {
		return nil, fmt.Errorf("there is no tap %q", name)
	}
	if most := e.last.program.RowsOf(b); rows > most {
		return nil, fmt.Errorf("%d rows of a tap of %d are asked for", rows, most)
	}
	data := make([]byte, int64(rows)*int64(b.Width)*b.Type.Size())
	return data, b.Region.Read(b.Offset, data)
}

// DenseBytes is the size of the 8-bit copies of the dense weights; 0 without one.
func (e *InProcess) DenseBytes() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var n int64
	for _, dense := range e.dense {
		if dense != nil {
			n += dense.Bytes()
		}
	}
	return n
}

func (e *InProcess) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	for _, b := range slices.Concat(e.buckets, e.rebuild) {
		errs = append(errs, b.step.Close())
	}
	regions := []Region{e.kv, e.scratch}
	for _, r := range e.weights {
		regions = append(regions, r)
	}
	for _, r := range regions {
		if r != nil {
			errs = append(errs, r.Free())
		}
	}
	for _, dense := range e.dense {
		if dense != nil {
			errs = append(errs, dense.Close())
		}
	}
	e.dense = nil
	e.buckets, e.rebuild, e.weights, e.last = nil, nil, nil, nil
	return errors.Join(errs...)
}

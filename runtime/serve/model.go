// One loaded model, from its files to the first turn: open, choose the device, plan, bring in the
// weights, make the engine. Or its tokens are made elsewhere: by vLLM that this program starts, or
// by servers that run already; the port, the tools and the store in front are this program's.
//
// What must stay true: whatever fails, nothing stays open; a step that fails ends the running turns
// only, and the waiting ones go on with a new engine, on a device that was opened anew.

package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/remote/pool"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// demoContext is the demo's longest context. It was trained on short conversations, but a coding
// agent begins with 8,000 to 12,000 tokens; more would only let it ramble for longer.
const demoContext = 16384

// swapContext is the least context, in tokens, for which a model is loaded beside another one:
// agents can work with it. Where there is room for less, the other model is unloaded.
const swapContext = 32768

// slowStart is a load of a GGUF file after which one in the released order is worth its disk.
var slowStart = 10 * time.Second

// ModelError is a model that is damaged or does not fit.
type ModelError struct{ Err error }

func (e *ModelError) Error() string { return e.Err.Error() }
func (e *ModelError) Unwrap() error { return e.Err }

// Model is a loaded model.
type Model struct {
	*session.Model
	plan    Plan
	ckpt    *checkpoint.Checkpoint
	backend engine.Backend
	engine  engine.Engine
	dense   string     // type of the engine's dense weights; "" where servers compute it
	tunes   []*Model   // of the same engine; they end with it
	behind  *behind    // works for later starts; nil: nobody does
	servers *pool.Pool // make its tokens; nil: engine does

	// reopen opens a backend in place of one whose device has failed; nil: that goes on.
	reopen func(failed engine.Backend) (engine.Backend, error)
	// damaged is told that the weights' files are not what they were; nil: nobody.
	damaged func(error)

	failures  int    // engines in a row that failed at their first step
	goodSteps uint64 // when the last engine failed
}

// Plan is the memory plan that the model was loaded with.
func (m *Model) Plan() Plan { return m.plan }

// Close ends the running turns and frees everything, the device included.
func (m *Model) Close() error {
	var err error
	m.behind.end()
	if m.Model != nil {
		err = m.Model.Close()
	}
	if m.engine != nil {
		err = errors.Join(err, m.engine.Close())
	}
	if m.ckpt != nil {
		err = errors.Join(err, m.ckpt.Close())
	}
	if m.backend != nil {
		err = errors.Join(err, m.backend.Close())
	}
	return err
}

// LoadOn loads a model on a backend, which Close closes. What the settings leave open is chosen for
// the backend.
func LoadOn(found checkpoint.Found, b engine.Backend, s engine.Settings) (_ *Model, err error) {
	m := &Model{backend: b}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.ckpt, err = found.Open(); err != nil {
		return nil, err
	}
	s = settingsOf(b, found, m.ckpt.Spec, SettingsFor(b, Options{Settings: s}))
	r, err := b.Room(m.ckpt.Spec, s)
	if err != nil {
		return nil, err
	}
	if err := m.start(context.Background(), found, s, r, nil, nil); err != nil {
		return nil, err
	}
	return m, nil
}

// load is the whole sequence, beside models that stay loaded. The error wraps errNoRoom where there
// is no room beside them.
func (m *Models) load(found checkpoint.Found, others []loadedModel) (_ *Model, err error) {
	ctx := m.ctx
	model := &Model{}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, model.Close())
		if ctx.Err() != nil {
			err = context.Canceled
		}
	}()
	if model.ckpt, err = found.Open(); err != nil {
		return nil, &ModelError{err}
	}
	b, err := m.take()
	if err != nil {
		return nil, err
	}
	model.backend = b
	taken := m.kept.untouched()
	// what the others have planned is theirs, though it may not be touched yet
	for _, o := range others {
		taken += o.(*Model).plan.Total - model.shares(o.(*Model))
	}
	if onGPU(b) {
		taken = 0
	}
	if _, free := b.Memory(); len(others) > 0 && free-taken < found.Bytes {
		return nil, errNoRoom
	}
	spec := model.ckpt.Spec
	var s engine.Settings
	var r engine.Room
	if model.backend, s, r, err = m.fit(b, found, model.ckpt); err != nil {
		return nil, err
	}
	r.Free -= taken
	dense := copiedOf(found, model.ckpt)
	s, r, copyable := denseNow(model.backend, dense, m.options.Settings, s, r)
	model.reopen = func(failed engine.Backend) (engine.Backend, error) {
		return m.reopen(failed, spec, s)
	}
	model.damaged = m.tellDamaged
	began := time.Now()
	err = model.start(ctx, found, s, r, m.kept, m.options.Progress)
	switch {
	// alone it may fit; if it does not, that error is the one to be told
	case err != nil && len(others) > 0:
		return nil, errors.Join(errNoRoom, err)
	case err != nil:
		return nil, &ModelError{err}
	case len(others) > 0 && (model.plan.OnDisk > 0 || model.ContextLength() < swapContext) &&
		!found.Demo:
		return nil, errNoRoom
	}
	if slow := model.plan.Slow(); slow != "" {
		m.options.Notify(found.Name + ": " + slow)
	}
	notes := Notes(found.Words())
	var works []workBehind
	copies := ""
	if copyable {
		copies = s.DenseCache
		works = append(works, m.copyDense(model, dense, s.DenseCache))
	}
	if took := time.Since(began); found.GGUF != nil && !model.ckpt.Mapped() && took > slowStart {
		notes = append(notes, fmt.Sprintf("putting the weights of this GGUF file in order took "+
			"%.0f s. While nothing runs they are written in that order (%s in %s), for the next "+
			"start", took.Seconds(), gb(found.Bytes), checkpoint.OrderedFolder()))
		works = append(works, m.order(model, found))
	}
	if !copyable && s.Dense == engine.DenseQ8 && s.DenseCache != "" {
		works = append(works, m.checkDense(model, dense, s.DenseCache))
	}
	for _, note := range notes {
		m.options.Notify(found.Name + ": " + note)
	}
	if len(works) > 0 {
		m.doBehind(model, copies, works)
	}
	return model, nil
}

// shares is how many bytes of what another model has planned are this one's experts too: both map
// the same files. Those of a GGUF file, and of the demo, are in memory of each model's own.
func (m *Model) shares(o *Model) (bytes int64) {
	if m.ckpt.Path == "" || m.ckpt.Path != o.ckpt.Path || !m.ckpt.Mapped() ||
		!o.ckpt.Mapped() {
		return 0
	}
	for _, t := range m.ckpt.Spec.Tensors() {
		if strings.Contains(t.Name, ".mlp.experts.") {
			bytes += t.Bytes()
		}
	}
	return max(0, bytes-o.plan.OnDisk)
}

// reopen gives a failed backend back and opens another one for a model of shape spec.
func (m *Models) reopen(failed engine.Backend, spec models.Spec, s engine.Settings) (engine.Backend,
	error) {
	if err := failed.Close(); err != nil { // what it held stays held while this process runs
		m.options.Notify("the device that failed was not closed: " + err.Error())
	}
	b, err := m.open()
	if err != nil {
		return nil, err
	}
	if _, err := b.Room(spec, s); err != nil { // places a model that takes several GPUs
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// start makes the engine of an open checkpoint on a backend with room for it. kept and p may be
// nil.
func (m *Model) start(ctx context.Context, found checkpoint.Found, s engine.Settings, r engine.Room,
	kept *kept,
	p progress) (err error) {
	tables := make(chan struct{}) // of package grammar, made while the weights are read
	go func() {
		grammar.Prepare()
		close(tables)
	}()
	defer func() { <-tables }()
	spec := m.ckpt.Spec
	if found.Demo || found.GGUF != nil && !m.ckpt.Mapped() {
		r.OnDisk = 0 // their weights are unpacked into memory
	}
	if spec.Vocab != token.VocabSize {
		return fmt.Errorf(
			"%s has a vocabulary of %d tokens, which is not o200k_harmony's %d: it cannot chat",
			found.Name, spec.Vocab, token.VocabSize)
	}
	if m.plan, err = makePlan(spec, s, r); err != nil {
		return fmt.Errorf("%s: %w", found.Name, err)
	}
	s.Pages, s.OnDisk = m.plan.Pages, m.plan.OnDisk > 0
	if m.engine, err = m.newEngine(ctx, found, s, p); err != nil {
		return fmt.Errorf("%s: %w", found.Name, err)
	}
	m.dense = m.engine.Settings().Dense
	s.MaxModelLen = m.plan.Context
	o := session.Options{ID: found.Name, Device: m.backend.Name(),
		Scheduler: sched.Options{Settings: s, Restart: m.restart}}
	if kept != nil {
		o.Store = kept.store
		if o.Scheduler.Spill = kept.spill(m.plan); o.Scheduler.Spill != nil {
			o.Scheduler.Model, err = fingerprint(m.ckpt, m.engine.Settings(), onGPU(m.backend))
			if err != nil {
				return fmt.Errorf("%s: %w", found.Name, err)
			}
		}
	}
	o.Scheduler.Tunes = pagesOf(o.Scheduler.Model, m.ckpt)
	m.Model = session.New(m.engine, o)
	m.addTunes(found)
	return nil
}

// progress shows a long work until it is done.
type progress func(what string) (show func(done, total int64), done func())

func (p progress) during(what string, work func(show func(done, total int64)) error) error {
	if p == nil {
		return work(func(int64, int64) {})
	}
	show, done := p(what)
	defer done()
	return work(show)
}

// readWeights brings weights into the host's memory with several readers: files that are mapped
// into the page cache, those of a GGUF file in the engine's order into memory of their own, where
// no device takes a copy of them.
func readWeights(ctx context.Context, found checkpoint.Found, ckpt *checkpoint.Checkpoint,
	b engine.Backend,
	s engine.Settings, p progress) error {
	var replaced checkpoint.Replaced // by an 8-bit copy that an earlier start has made
	if s.Dense == engine.DenseQ8 && s.DenseCache != "" {
		if path := q8.Ready(found, s.DenseCache); path != "" {
			replaced = checkpoint.Replaced{By: path, Does: q8.Replaces}
		}
	}
	_, free := b.Memory()
	err := p.during("reading "+found.Name, func(show func(done, total int64)) error {
		if ckpt.Mapped() || found.Demo || onGPU(b) {
			return found.ReadAhead(ctx, free, replaced, show)
		}
		return ckpt.Load(ctx, free, replaced.Does, show)
	})
	if err != nil || onGPU(b) { // a card gets one tensor after the other
		return err
	}
	merge := func(name string, c *checkpoint.Checkpoint, without func(string) bool) error {
		return p.during("merging "+name, func(show func(done, total int64)) error {
			return c.Merge(ctx, without, show)
		})
	}
	if len(found.Lora) > 0 {
		err = merge(found.Name, ckpt, replaced.Does)
	}
	for i, changed := range ckpt.Changed() {
		if err == nil {
			err = merge(found.Tunes[i].Name, ckpt.Tunes[i], func(name string) bool {
				return !slices.Contains(changed, name) ||
					replaced.Does != nil && replaced.Does(name)
			})
		}
	}
	return err
}

// newEngine reads the weights, and copies them to a device that has a memory of its own.
func (m *Model) newEngine(ctx context.Context, found checkpoint.Found, s engine.Settings,
	p progress) (engine.Engine, error) {
	if err := readWeights(ctx, found, m.ckpt, m.backend, s, p); err != nil {
		return nil, err
	}
	if !onGPU(m.backend) {
		return m.backend.Load(ctx, m.ckpt, s, nil)
	}
	var eng engine.Engine
	err := p.during("copying "+found.Name+" to the GPU", func(show func(done,
		total int64)) (err error) {
		eng, err = m.backend.Load(ctx, m.ckpt, s, show)
		return err
	})
	return eng, err
}

// mostFailures is how often an engine is made anew without a single good step between.
const mostFailures = 3

// restart is the scheduler's Options.Restart. It runs in the scheduler's loop, which alone uses the
// engine then.
func (m *Model) restart(fault error) (sched.StepEngine, error) {
	if errors.Is(fault, mapping.ErrTruncated) { // no engine can be made of what is left
		if m.damaged != nil {
			m.damaged(&ModelError{fault})
		}
		return nil, fault
	}
	if steps := m.Stats().Steps; steps > m.goodSteps {
		m.goodSteps, m.failures = steps, 0
	}
	if m.failures++; m.failures > mostFailures {
		return nil, fmt.Errorf(
			"%d engines in a row failed at their first step, the last one with: %w",
			mostFailures, fault)
	}
	s := m.engine.Settings()
	_ = m.engine.Close() // a device that failed may refuse that too
	if m.reopen != nil {
		b, err := m.reopen(m.backend)
		if err != nil {
			m.backend = nil
			return nil, fmt.Errorf("open the device again: %w", err)
		}
		m.backend = b
	}
	eng, err := m.backend.Load(context.Background(), m.ckpt, s, nil)
	if err != nil {
		return nil, err
	}
	m.engine = eng
	return eng, nil
}

// fingerprint names the weights and all else that KV pages depend on. It reads little of a
// checkpoint, but from tensors that every training changes; where a card has its own copy, these
// give back what they took.
func fingerprint(ckpt *checkpoint.Checkpoint, s engine.Settings, discrete bool) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %s %s %s %t%s", ckpt.Spec, s.KVCacheDtype, s.Compute, s.Dense,
		s.Deterministic, ckpt.AdapterIDs)
	last := ckpt.Spec.Layers - 1
	for _, name := range []string{
		"model.norm.weight", "model.embed_tokens.weight", "model.layers.0.self_attn.k_proj.weight",
		fmt.Sprintf("model.layers.%d.self_attn.k_proj.weight", last),
		fmt.Sprintf("model.layers.%d.mlp.router.weight", last),
	} {
		t, err := ckpt.Tensor(name)
		if err != nil {
			return "", err
		}
		h.Write(t.Data[:min(len(t.Data), 16<<10)])
		if discrete {
			ckpt.Release(name)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Upstreams are the servers that generate a model's tokens in this program's place.
type Upstreams struct {
	Name    string // of the model, as the catalogue knows it
	Servers pool.Options
	// Start starts the servers and does not wait for them. stop ends them; ended is told when they
	// end before that. nil: they run already.
	Start func(ctx context.Context, ended func(error)) (stop func() error, err error)
}

// NewUpstream is New and Choose for a model of other servers. Nothing is opened here.
func NewUpstream(ctx context.Context, o Options, e Upstreams) *Models {
	o.Keep.SwapSpace, o.Keep.SwapDisk = 0, 0 // the pages are elsewhere
	m := newModels(ctx, o)
	m.upstreams, m.settled = &e, Settled{Options: o}
	m.settled.Settings.MaxWaiting = cmp.Or(o.Settings.MaxWaiting, defaultMaxWaiting)
	found := checkpoint.Found{Name: e.Name, Path: "elsewhere"}
	if entry, ok := models.Lookup(e.Name); ok {
		found.Name = entry.ID
	}
	m.Choose(found)
	return m
}

func (m *Models) loadElsewhere(found checkpoint.Found) (_ *Model, err error) {
	e := servers{stop: func() error { return nil }}
	o := m.upstreams.Servers
	o.Notify, o.Context = m.options.Notify, m.options.Settings.MaxModelLen
	ctx, giveUp := context.WithCancelCause(m.ctx)
	defer giveUp(nil)
	var opened atomic.Bool
	if m.upstreams.Start != nil {
		o.Starting = true
		ended := func(err error) {
			giveUp(err)
			if opened.Load() {
				m.tellDamaged(&ModelError{err})
			}
		}
		if e.stop, err = m.upstreams.Start(m.ctx, ended); err != nil {
			return nil, err
		}
	}
	e.Pool, err = pool.Open(ctx, o)
	opened.Store(err == nil)
	if err == nil && ctx.Err() != nil { // they ended as they began to answer
		err = errors.Join(context.Cause(ctx), e.Pool.Close())
	}
	if err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return &Model{servers: e.Pool, Model: session.NewModel(e, session.Options{ID: found.Name,
		Device: fmt.Sprintf("servers (%d)", len(o.URLs)), Store: m.kept.store,
		Scheduler: sched.Options{Settings: engine.Settings{MaxModelLen: e.Context()}}})}, nil
}

// servers are a session.Generator that ends what was started for it.
type servers struct {
	*pool.Pool
	stop func() error
}

func (s servers) Close() error { return errors.Join(s.Pool.Close(), s.stop()) }

// tellDamaged tells that what a loaded model stands on is gone.
func (m *Models) tellDamaged(err error) {
	select {
	case m.damaged <- err:
	default: // told already
	}
}

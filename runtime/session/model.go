// A loaded model: checkpoint, engine, scheduler, tokenizer and the memory of what was sampled, as one thing that starts
// turns and is closed once.

package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sched"
)

const (
	maxSeqs     = 256
	chunkRows   = 512  // most rows of a step
	demoContext = 8192 // the demo was trained on short conversations; more would only cost memory
)

// LoadOptions say how a model is loaded. The zero value takes what fits.
type LoadOptions struct {
	MaxModelLen int    // longest context in tokens; 0: as long as fits
	Threads     int    // 0: all of the device's
	Compute     string // exact, int8, or auto: int8 but for the demo, whose measured answers are exact's; "" is exact
	Dense       string // bf16 or q8 (--dense); "" is bf16
	DenseCache  string // folder that keeps the 8-bit copy which q8 makes; "": it is made anew each time
	ISA         string

	MaxSeqs          int     // sequences in a step (--max-num-seqs); 0: 256
	MaxBatchedTokens int     // rows of a step (--max-num-batched-tokens); 0: 512
	MaxQueued        int     // requests that may wait; 0: 2048
	KVCacheDtype     string  // auto, bf16, fp8 or f32 (--kv-cache-dtype), as the device has it; "" is auto
	Withheld         int64   // bytes of the free memory that are somebody else's
	Utilization      float64 // share of the free memory that may be taken (--gpu-memory-utilization); 0: all but a reserve
	NoPrefixCaching  bool    // --no-enable-prefix-caching
	Deterministic    bool    // the same tokens for the same seed whatever the batch; always so on the CPU

	// Beside is what a device with a memory of its own takes for an engine's steps beside weights, cache and scratch, the logits among it; nil: the logits
	// alone.
	Beside func(models.Spec, engine.Settings) (int64, error)
	// Reserve is left of such a device's free memory where Utilization does not say how much may be taken; 0: as of the host's.
	Reserve int64

	// Store has the turns that were sampled. It is the caller's to close, and models may share it; nil: the model has one of its own.
	Store Store
	// Spill, if not nil, is asked with the plan for what keeps KV pages that are pushed out, over reloads too; it may give nil.
	// That is the caller's to close, after the model.
	Spill func(Plan) *kv.Spill
	// Fill brings the weights into memory once the plan has room for them, where the device works on them in the host's; nil: as the engine asks for them.
	Fill func(*checkpoint.Checkpoint) error
	// Uploaded is told how many bytes of the weights have been copied to a device with a memory of its own, and ends the load with an error; nil: nobody asks.
	Uploaded func(done, total int64) error
	// Reopen is asked for a device to go on with after the one in use has failed; nil: the same one.
	Reopen func(failed engine.Device) (engine.Device, error)
}

// Model is a loaded model. It is safe for concurrent use.
type Model struct {
	id      string
	device  string
	plan    Plan
	ckpt    *checkpoint.Checkpoint
	engine  *engine.InProcess
	sched   *sched.Scheduler
	dev     engine.Device
	store   Store
	created time.Time
	reopen  func(engine.Device) (engine.Device, error)

	lame      int    // engines in a row that failed at their first step
	goodSteps uint64 // when the last one failed

	submit func(context.Context, sched.Request) (tokenStream, error) // the scheduler's Submit; tests script it

	turns, faults atomic.Int64
}

// Load opens the checkpoint, plans the memory, and starts the engine and its scheduler on dev, which Close closes.
func Load(found checkpoint.Found, dev engine.Device, o LoadOptions) (_ *Model, err error) {
	ckpt, err := found.Open()
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{}) // the tables of package grammar, made beside the rest
	go func() {
		grammar.Prepare()
		close(ready)
	}()
	m := &Model{id: found.Name, device: dev.Name(), ckpt: ckpt, dev: dev, created: time.Now(), reopen: o.Reopen}
	defer func() {
		<-ready
		if err != nil {
			err = errors.Join(err, ckpt.Close())
		}
	}()
	if m.store = o.Store; m.store == nil {
		m.store = NewStore()
	}
	spec := ckpt.Spec
	if spec.Vocab != token.VocabSize {
		return nil, fmt.Errorf("%s has a vocabulary of %d tokens, which is not o200k_harmony's %d: it cannot chat", found.Name, spec.Vocab, token.VocabSize)
	}
	o = o.settled(found)
	eo, plan, err := o.planOn(dev, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found.Name, err)
	}
	m.plan = plan
	eo.Pages = m.plan.Pages
	if o.Fill != nil && !dev.Caps().Discrete {
		if err := o.Fill(ckpt); err != nil {
			return nil, fmt.Errorf("%s: %w", found.Name, err)
		}
	}
	var progress func(done, total int64) error
	if dev.Caps().Discrete {
		progress = o.Uploaded
	}
	if m.engine, err = engine.Load(dev, ckpt, eo, progress); err != nil {
		return nil, fmt.Errorf("%s: %w", found.Name, err)
	}
	<-ready
	so := sched.Options{Pages: m.plan.Pages, MaxBatchedTokens: o.MaxBatchedTokens, MaxSeqs: o.MaxSeqs, MaxQueued: o.MaxQueued,
		ContextLength: m.plan.Context, NoPrefixCaching: o.NoPrefixCaching, Restart: m.restart}
	if o.Spill != nil {
		so.Spill = o.Spill(m.plan)
		so.Model = fingerprint(ckpt, m.engine.Settings(), dev.Caps().Discrete)
	}
	m.sched = sched.New(m.engine, so)
	m.submit = func(ctx context.Context, r sched.Request) (tokenStream, error) {
		r.Cuts = cuts(r.Prompt)
		st, err := m.sched.Submit(ctx, r)
		if errors.Is(err, sched.ErrQueueFull) {
			err = &BusyError{m.sched.RetryAfter()}
		}
		return st, err
	}
	return m, nil
}

// PlanFor is the plan that Load would load a model of shape spec with, and its error where there is no room. Nothing is taken.
func PlanFor(found checkpoint.Found, spec models.Spec, dev engine.Device, o LoadOptions) (Plan, error) {
	_, plan, err := o.settled(found).planOn(dev, spec)
	return plan, err
}

// Needs is what a model of shape spec takes on dev with one sequence of o.MaxModelLen tokens, bytes.
func Needs(found checkpoint.Found, spec models.Spec, dev engine.Device, o LoadOptions) (int64, error) {
	_, in, err := o.settled(found).planInput(dev, spec)
	return in.Weights + in.Scratch + int64(in.pagesFor(min(o.MaxModelLen, spec.MaxPosition)))*in.PageBytes, err
}

// settled fills in what was left open.
func (o LoadOptions) settled(found checkpoint.Found) LoadOptions {
	if found.Demo && o.MaxModelLen == 0 {
		o.MaxModelLen = demoContext
	}
	if o.MaxBatchedTokens == 0 {
		o.MaxBatchedTokens = chunkRows
	}
	if o.MaxSeqs == 0 {
		o.MaxSeqs = maxSeqs
	}
	o.MaxSeqs = min(o.MaxSeqs, o.MaxBatchedTokens)
	if o.Compute == "auto" {
		o.Compute = engine.Int8
		if found.Demo {
			o.Compute = engine.Exact
		}
	}
	return o
}

// planOn plans the memory of settled options, and gives those of the engine but for its pages.
func (o LoadOptions) planOn(dev engine.Device, spec models.Spec) (engine.Settings, Plan, error) {
	eo, in, err := o.planInput(dev, spec)
	if err != nil {
		return eo, Plan{}, err
	}
	plan, err := MakePlan(in)
	return eo, plan, err
}

func (o LoadOptions) planInput(dev engine.Device, spec models.Spec) (engine.Settings, PlanInput, error) {
	eo := engine.Settings{Compute: o.Compute, Dense: o.Dense, DenseCache: o.DenseCache, Threads: o.Threads, ISA: o.ISA, MaxNumBatchedTokens: o.MaxBatchedTokens,
		MaxLogits: o.MaxSeqs, MaxNumSeqs: o.MaxSeqs, Deterministic: o.Deterministic}.On(dev)
	var err error
	if eo.KVCacheDtype, err = kvType(o.KVCacheDtype); err != nil {
		return eo, PlanInput{}, err
	}
	need, err := engine.PlanFor(spec, eo)
	if err != nil {
		return eo, PlanInput{}, err
	}
	total, free := dev.Memory()
	beside := int64(o.MaxSeqs) * int64(spec.Vocab) * 4 // the scheduler's logits, when every sequence decodes
	reserve := int64(0)
	if dev.Caps().Discrete {
		if o.Beside != nil {
			if beside, err = o.Beside(spec, eo); err != nil {
				return eo, PlanInput{}, err
			}
		}
		reserve = o.Reserve
	} else {
		total = 0
	}
	mostPages := 0
	if d, ok := dev.(engine.Placer); ok {
		if mostPages, err = d.MostPages(spec, eo, o.Utilization); err == nil && mostPages == 0 {
			err = fmt.Errorf("%s has no room for a KV page beside the weights: lower --max-num-batched-tokens", dev.Name())
		}
		if err != nil {
			return eo, PlanInput{}, err
		}
	}
	return eo, PlanInput{
		Free: free - o.Withheld, Total: total, Utilization: o.Utilization, Reserve: reserve, Weights: need.Weights, Scratch: need.Scratch + beside, PageBytes: need.PageBytes,
		PageTokens: engine.PageTokens, WindowPages: engine.WindowPages(eo.KVCacheDtype), MaxPosition: spec.MaxPosition, MaxModelLen: o.MaxModelLen, Window: spec.Window,
		ChunkTokens: o.MaxBatchedTokens, MaxSeqs: o.MaxSeqs, MostPages: mostPages,
	}, nil
}

// Close ends the running turns and frees everything, the device included.
func (m *Model) Close() error {
	return errors.Join(m.sched.Close(), m.engine.Close(), m.ckpt.Close(), m.dev.Close())
}

// Drain lets no new turn in, waits for the running and waiting ones until ctx ends, ends what is left then, and closes
// the model as Close does.
func (m *Model) Drain(ctx context.Context) error {
	return errors.Join(m.sched.Drain(ctx), m.Close())
}

// ID is the catalogue's name, or the folder's.
func (m *Model) ID() string { return m.id }

// Device says what the model runs on, for people.
func (m *Model) Device() string { return m.device }

// ContextLength is the most tokens a sequence may have, prompt and answer together.
func (m *Model) ContextLength() int { return m.plan.Context }

// Plan is the memory plan the model was loaded with.
func (m *Model) Plan() Plan { return m.plan }

// Created is when the model was loaded.
func (m *Model) Created() time.Time { return m.created }

// Stats are the scheduler's counters.
func (m *Model) Stats() sched.Stats { return m.sched.Stats() }

// Faults counts the turns so far, and the places in them where the tokens were not legal Harmony.
func (m *Model) Faults() (turns, faults int64) { return m.turns.Load(), m.faults.Load() }

func (m *Model) finished(t *turn) {
	m.turns.Add(1)
	m.faults.Add(int64(t.result.Done.Faults.Total()))
}

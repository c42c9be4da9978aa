// Package simtest has an engine without a model, for tests of what drives an engine.
//
// It has a memory: what a row computes depends on every position that a gpt-oss layer would see,
// read through the block tables it was given, in four layers of which the first and third see a
// window. A wrong table, a page given to two sequences, a window page given back too early, a
// shared page written to, a row fed twice or a receptive field cut short give other tokens, as they
// would on a device.
package simtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

const layers = 4

// slot is what a page holds of one position: a value for each of the two layers of its kind.
type slot [layers / 2]uint64

const (
	slotBytes = layers / 2 * 8
	pageBytes = engine.PageTokens * slotBytes
)

// Engine is the simulated engine. It is a sched.Engine whose pages can be read and written.
type Engine struct {
	// Before is called before each step, in the goroutine that asked for it, with the steps so far.
	// Its error is the step's.
	Before func(step int, b *engine.Batch) error

	// Spoiled counts the logits that were not wanted.
	Spoiled int

	// Pairs makes each entry of a window table two pages of the pool, the second of which has the
	// upper window layer.
	Pairs bool

	spec    models.Spec
	pages   [][engine.PageTokens]slot
	maxRows int
	steps   int
	running atomic.Int32
	mu      sync.Mutex // of pages
}

// New makes an engine with that many pages, whose steps have at most maxRows rows.
func New(pages, maxRows, vocab, window int) *Engine {
	return &Engine{
		spec: models.Spec{Layers: layers, Vocab: vocab, Window: window, MaxPosition: 4096,
			EOS: []int32{3, 4}},
		pages:   make([][engine.PageTokens]slot, pages),
		maxRows: maxRows,
	}
}

// Spec is the shape it pretends to have.
func (e *Engine) Spec() models.Spec { return e.spec }

// Settings say by their KV type how many pages an entry of a window table takes.
func (e *Engine) Settings() engine.Settings {
	if e.Pairs {
		return engine.Settings{KVCacheDtype: engine.KVFP8}
	}
	return engine.Settings{KVCacheDtype: "bf16"}
}

// Plan has the size of a page.
func (e *Engine) Plan() engine.Plan { return engine.Plan{PageBytes: pageBytes} }

// Caps are none: tokens are sampled on the host. Device samples.
func (e *Engine) Caps() engine.Caps { return engine.Caps{} }

func (e *Engine) Queue(context.Context, *engine.Batch,
	[]int32) error {
	return engine.ErrNoSampling
}
func (e *Engine) Sample([]engine.SamplingParams) error { return engine.ErrNoSampling }
func (e *Engine) Wait([]engine.SampledToken) error     { return engine.ErrNoSampling }

// Steps is how many have been asked for.
func (e *Engine) Steps() int { return e.steps }

func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// attend folds what a layer sees at pos into x.
func attend(x uint64, pos, layer, window int, cache func(pos int) uint64) uint64 {
	first := 0
	if layer%2 == 0 {
		first = engine.FirstVisible(pos, window)
	}
	for i := first; i <= pos; i++ {
		x = x*0x9E3779B97F4A7C15 + cache(i)
	}
	return mix(x, uint64(layer))
}

func fill(logits []float32, x uint64) {
	for i := range logits {
		logits[i] = float32(mix(x, uint64(i))>>48)/65536*8 - 4
	}
}

// Step runs a batch as a device would: layer by layer, each layer's writes before its reads.
func (e *Engine) Step(_ context.Context, b *engine.Batch, logits []float32) error {
	if e.running.Add(1) != 1 {
		return errors.New("two steps at once")
	}
	defer e.running.Add(-1)
	e.steps++
	if e.Before != nil {
		if err := e.Before(e.steps, b); err != nil {
			return err
		}
	}
	if err := b.Check(e.spec, e.maxRows, len(e.pages)); err != nil {
		panic(err) // a wrong batch is the scheduler's fault and must not pass for an engine's error
	}
	if len(logits) != len(b.LogitRows)*e.spec.Vocab {
		panic(fmt.Sprintf("%d logits for %d rows", len(logits), len(b.LogitRows)))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	type row struct{ seq, pos int }
	var rows []row
	var x []uint64
	for i, q := range b.Seqs {
		for r := range int(q.Rows) {
			x = append(x, mix(uint64(b.Tokens[len(rows)]), uint64(q.Start)+uint64(r)))
			rows = append(rows, row{i, int(q.Start) + r})
		}
	}
	for layer := range layers {
		windowed := layer%2 == 0
		cell := func(r row, pos int) *uint64 {
			table := b.Seqs[r.seq].Full
			if windowed {
				table = b.Seqs[r.seq].Window
			}
			page, place := table[pos/engine.PageTokens], layer/2
			if e.Pairs && windowed && place > 0 {
				page, place = b.Twins[page], 0
			}
			return &e.pages[page][pos%engine.PageTokens][place]
		}
		if windowed || !b.Rebuild {
			for i, r := range rows {
				*cell(r, r.pos) = mix(x[i], uint64(layer))
			}
		}
		for i, r := range rows {
			x[i] = attend(x[i], r.pos, layer, e.spec.Window, func(pos int) uint64 {
				return *cell(r,
					pos)
			})
		}
	}
	for i, r := range b.LogitRows {
		fill(logits[i*e.spec.Vocab:(i+1)*e.spec.Vocab], x[r])
	}
	if b.LogitMask != nil {
		e.spoil(logits, b.LogitMask())
	}
	return nil
}

// spoil makes the logits that must not be read the highest of all.
func (e *Engine) spoil(logits []float32, wanted []uint64) {
	for i := range logits {
		if id := i % e.spec.Vocab; wanted != nil && wanted[id/64]>>(id%64)&1 == 0 {
			logits[i] = 1e9
			e.Spoiled++
		}
	}
}

// Alone computes one sequence without pages, batches or a scheduler.
type Alone struct {
	spec  models.Spec
	cache [layers][]uint64
	x     uint64
}

// Alone starts a sequence.
func (e *Engine) Alone() *Alone { return &Alone{spec: e.spec} }

// Push computes the next token.
func (a *Alone) Push(token int32) {
	pos := len(a.cache[0])
	a.x = mix(uint64(token), uint64(pos))
	for layer := range layers {
		a.cache[layer] = append(a.cache[layer], mix(a.x, uint64(layer)))
		a.x = attend(a.x, pos, layer, a.spec.Window,
			func(i int) uint64 { return a.cache[layer][i] })
	}
}

// Logits fills the logits of the last token.
func (a *Alone) Logits(logits []float32) { fill(logits, a.x) }

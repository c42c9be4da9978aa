// The simulated engine. It has no model, but it has a memory: what a row computes depends on every position that a
// gpt-oss layer would see, read through the block tables it was given. A wrong table, a page given to two sequences, a
// window page given back too early or a row fed twice give other tokens, as they would on a device.

package sched

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
)

type simEngine struct {
	spec    models.Spec
	pages   [][kv.PageTokens]uint64
	maxRows int
	steps   int
	before  func(step int, b *engine.Batch) error // runs in the loop's goroutine, before the step
	running atomic.Int32
}

func newSim(o Options, vocab, window int) *simEngine {
	return &simEngine{
		spec:    models.Spec{Vocab: vocab, Window: window, MaxPosition: 4096, EOS: []int32{3, 4}},
		pages:   make([][kv.PageTokens]uint64, o.Pages),
		maxRows: o.MaxBatchedTokens,
	}
}

func (e *simEngine) Spec() models.Spec { return e.spec }

func mix(a, b uint64) uint64 {
	x := a*0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

const (
	fullSalt   = 0x1111
	windowSalt = 0x2222
)

// rowValue is what a row leaves behind, logitSeed what its logits come from: see is what the layers of a kind hold for a
// position.
func rowValue(token int32, pos, window int, full, windowed func(pos int) uint64) uint64 {
	h := mix(uint64(token), uint64(pos))
	if pos > 0 {
		first := engine.FirstVisible(pos, window)
		h = mix(h, full(pos/2))
		h = mix(h, full(pos-1))
		if first < pos {
			h = mix(h, windowed(first))
			h = mix(h, windowed(pos-1))
		}
	}
	return h
}

func logitSeed(pos, window int, full, windowed func(pos int) uint64) (seed uint64) {
	for i := range pos + 1 {
		seed = mix(seed, full(i))
	}
	for i := engine.FirstVisible(pos, window); i <= pos; i++ {
		seed = mix(seed, windowed(i))
	}
	return seed
}

func fillLogits(logits []float32, seed uint64) {
	for i := range logits {
		logits[i] = float32(mix(seed, uint64(i))>>48)/65536*8 - 4
	}
}

func (e *simEngine) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	if e.running.Add(1) != 1 {
		return fmt.Errorf("two steps at once")
	}
	defer e.running.Add(-1)
	e.steps++
	if e.before != nil {
		if err := e.before(e.steps, b); err != nil {
			return err
		}
	}
	if err := b.Check(e.spec, e.maxRows, len(e.pages)); err != nil {
		panic(err) // a wrong batch is the scheduler's fault and must not pass for an engine's error
	}
	if len(logits) != len(b.LogitRows)*e.spec.Vocab {
		panic(fmt.Sprintf("%d logits for %d rows", len(logits), len(b.LogitRows)))
	}
	type place struct{ seq, pos int }
	var at []place
	read := func(q engine.SeqRows) (full, windowed func(int) uint64) {
		return func(p int) uint64 { return e.pages[q.Full[p/kv.PageTokens]][p%kv.PageTokens] },
			func(p int) uint64 { return e.pages[q.Window[p/kv.PageTokens]][p%kv.PageTokens] }
	}
	for i, q := range b.Seqs {
		full, windowed := read(q)
		for r := range int(q.Rows) {
			pos := int(q.Start) + r
			h := rowValue(b.Tokens[len(at)], pos, e.spec.Window, full, windowed)
			e.pages[q.Full[pos/kv.PageTokens]][pos%kv.PageTokens] = h ^ fullSalt
			e.pages[q.Window[pos/kv.PageTokens]][pos%kv.PageTokens] = h ^ windowSalt
			at = append(at, place{i, pos})
		}
	}
	for i, r := range b.LogitRows {
		full, windowed := read(b.Seqs[at[r].seq])
		fillLogits(logits[i*e.spec.Vocab:(i+1)*e.spec.Vocab], logitSeed(at[r].pos, e.spec.Window, full, windowed))
	}
	return nil
}

// alone is what a request must give: computed from its own tokens, without pages, batches or a scheduler.
func alone(spec models.Spec, context int, r Request) (tokens []Token, finish Finish) {
	history := append([]int32(nil), r.Prompt...)
	s := sample.New(r.Params, spec.Vocab, r.Prompt)
	s.HoldStops(r.Stop)
	var values []uint64
	full := func(p int) uint64 { return values[p] ^ fullSalt }
	windowed := func(p int) uint64 { return values[p] ^ windowSalt }
	logits := make([]float32, spec.Vocab)
	for {
		var t Token
		if n := len(tokens); n < len(r.Forced) {
			t = Token{ID: r.Forced[n], Forced: true}
		} else {
			for pos := len(values); pos < len(history); pos++ {
				values = append(values, rowValue(history[pos], pos, spec.Window, full, windowed))
			}
			fillLogits(logits, logitSeed(len(history)-1, spec.Window, full, windowed))
			var mask []uint64
			if r.Mask != nil {
				mask = r.Mask(history[len(r.Prompt):])
			}
			c, err := s.Next(logits, len(history), mask)
			if err != nil {
				return tokens, FinishError
			}
			t = Token{ID: c.ID, Logprob: c.Logprob, Top: c.Top}
		}
		s.Accept(t.ID)
		tokens = append(tokens, t)
		history = append(history, t.ID)
		for _, stop := range r.Stop {
			eos := false
			for _, id := range spec.EOS {
				eos = eos || id == t.ID
			}
			if stop == t.ID && !(eos && r.Params.IgnoreEOS) {
				return tokens, FinishStop
			}
		}
		if len(tokens) == r.MaxTokens || len(history) == context {
			return tokens, FinishLength
		}
	}
}

// Package golden compares a device with the numbers that a reference implementation computed on a
// tiny random checkpoint.
//
// A golden folder has checkpoint/ (a model in the published layout) and golden/ (cases.json and
// logits.safetensors: for several prompts, the logits at some positions and 48 greedily chosen
// tokens). Options.Run feeds each prompt to each compute mode and judges the results by that mode's
// bounds. The golden file itself is judged too, by exact arithmetic on this device whatever
// the mode, so a damaged golden cannot pass because a mode is allowed to be inexact.
package golden

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// Options of a golden run; the zero value is doctor's.
type Options struct {
	Engine engine.Settings // Compute is set for each mode
	Chunk  int             // rows of prefill in one step; default 256
	Only   []string        // names of cases; default all
	Greedy int             // tokens that are read after a prompt; default all
	// each mode but Exact also with dense weights in 8 bits, if the device has them
	Both bool
	Lora []lora.Ref // adapters that the checkpoint is run with
}

// Run compares modes of a device (default: all it has) with the golden in dir. Each case, and after
// a mode's cases all of it ("all"), goes to report as soon as it is known. ok: everything passed;
// err is of a run that failed.
func (o Options) Run(ctx context.Context, dir string, b engine.Backend, modes []string,
	report func(CaseResult)) (ok bool, err error) {
	if len(modes) == 0 {
		modes = b.Caps().Computes
	}
	for _, mode := range modes {
		if _, ok := bounds[mode]; !ok {
			return false, fmt.Errorf("no bounds are set for the compute mode %q", mode)
		}
	}
	ckpt, err := checkpoint.Open(filepath.Join(dir, "checkpoint"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	if err := ckpt.Adapt(o.Lora); err != nil {
		return false, err
	}
	cases, err := Read(dir, ckpt.Spec.Vocab)
	if err != nil {
		return false, err
	}
	if len(o.Only) > 0 {
		cases = slices.DeleteFunc(cases,
			func(c Case) bool { return !slices.Contains(o.Only, c.Name) })
		if len(cases) != len(o.Only) {
			return false, fmt.Errorf("%s has not all of the cases %v", dir, o.Only)
		}
	}
	for i := range cases {
		if c := &cases[i]; o.Greedy > 0 && o.Greedy < len(c.Greedy) {
			c.Greedy, c.Gap = c.Greedy[:o.Greedy], c.Gap[:o.Greedy]
		}
	}
	exact, err := o.judge(b).run(ctx, ckpt, b, cases)
	if err != nil {
		return false, err
	}
	ok = true
	for _, v := range o.variants(b, modes) {
		results, name := exact, v.name()
		if name != engine.Exact {
			if results, err = v.run(ctx, ckpt, b, cases); err != nil {
				return false, err
			}
		}
		for i := range results {
			results[i].Mode = name
			judgeCase(&results[i], exact[i])
			report(results[i])
		}
		all := merge(name, results)
		report(all)
		ok = ok && all.OK()
	}
	return ok, nil
}

// with are the options for a compute mode and a type of dense weights.
func (o Options) with(mode, dense string, b engine.Backend) Options {
	o.Engine.Compute, o.Engine.Dense = mode, dense
	o.Engine = o.Engine.On(b)
	return o
}

// judge is the exact run that the golden and the other modes are compared with.
func (o Options) judge(b engine.Backend) Options {
	o = o.with(engine.Exact, engine.DenseBF16, b)
	if o.Engine.KVCacheDtype == engine.KVFP8 {
		o.Engine.KVCacheDtype = "f32"
	}
	return o
}

func (o Options) variants(b engine.Backend, modes []string) (list []Options) {
	for _, mode := range modes {
		if mode == engine.Exact {
			list = append(list, o.with(mode, engine.DenseBF16, b))
			continue
		}
		if mode != engine.Int8Fast || o.Engine.Dense == engine.DenseQ8 { // else it is Int8
			list = append(list, o.with(mode, o.Engine.Dense, b))
		}
		if o.Both && b.Caps().DenseQ8 {
			list = append(list, o.with(mode, engine.DenseQ8, b))
		}
	}
	return list
}

func (o Options) name() string {
	name := o.Engine.Compute
	if o.Engine.Dense == engine.DenseQ8 {
		name += denseQ8
		if o.Engine.Dense12 {
			name += inputs12
		}
	}
	if o.Engine.KVCacheDtype == engine.KVFP8 {
		name += kvFP8
	}
	return name
}

func (o Options) run(ctx context.Context, ckpt *checkpoint.Checkpoint, b engine.Backend,
	cases []Case) (results []CaseResult, err error) {
	r, err := o.load(ctx, ckpt, b, pagesFor(cases))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.eng.Close()) }()
	for i := range cases {
		out, err := r.feed(ctx, &cases[i])
		if err != nil {
			return nil, err
		}
		results = append(results, compare(&cases[i], out))
	}
	return results, nil
}

// reader is an engine that reads cases.
type reader struct {
	eng   engine.Engine
	pool  *kv.Pool
	chunk int
}

func (o Options) load(ctx context.Context, ckpt *checkpoint.Checkpoint, b engine.Backend,
	pages int) (*reader, error) {
	r, options := &reader{chunk: cmp.Or(o.Chunk, 256)}, o.Engine
	options.MaxNumBatchedTokens = r.chunk
	window := engine.WindowPages(options.KVCacheDtype)
	options.Pages = cmp.Or(options.Pages, pages*(1+window)/2)
	r.pool = kv.NewPool(options.Pages, ckpt.Spec.Window, window)
	var err error
	if r.eng, err = b.Load(ctx, ckpt, options, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", options.Compute, err)
	}
	return r, nil
}

// pagesFor is a pool that holds the longest case, with two pages for each of its own.
func pagesFor(cases []Case) int {
	longest := 0
	for _, c := range cases {
		longest = max(longest, len(c.Tokens)+len(c.Greedy))
	}
	return 2 * (longest/engine.PageTokens + 1)
}

// output is an engine's results for one case.
type output struct {
	logits  [][]float32 // at the case's positions
	greedy  []int32     // its choice at every greedy step
	elapsed time.Duration
}

// feed reads the prompt in chunks, then the golden's tokens, whatever the engine chose.
func (r *reader) feed(ctx context.Context, c *Case) (*output, error) {
	out, err := r.read(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: case %s: %w", r.eng.Settings().Compute, c.Name, err)
	}
	return out, nil
}

func (r *reader) read(ctx context.Context, c *Case) (*output, error) {
	start, eng, pool, chunk := time.Now(), r.eng, r.pool, r.chunk
	var t kv.Table
	defer pool.Release(&t, nil)
	out := &output{}
	vocab := eng.Spec().Vocab
	var last []float32
	for pos := 0; pos < len(c.Tokens); pos += chunk {
		end := min(len(c.Tokens), pos+chunk)
		b := engine.Batch{Tokens: c.Tokens[pos:end]}
		for _, p := range c.Positions {
			if int(p) >= pos && int(p) < end {
				b.LogitRows = append(b.LogitRows, p-int32(pos))
			}
		}
		compared := len(b.LogitRows)
		if final := int32(end - pos - 1); compared == 0 || b.LogitRows[compared-1] != final {
			b.LogitRows = append(b.LogitRows, final) // the first greedy choice needs it
		}
		logits, err := step(ctx, eng, pool, &t, pos, end-pos, &b)
		if err != nil {
			return nil, err
		}
		for i := range compared {
			out.logits = append(out.logits, logits[i*vocab:(i+1)*vocab])
		}
		last = logits[(len(b.LogitRows)-1)*vocab:]
	}
	for i, token := range c.Greedy {
		out.greedy = append(out.greedy, argmax(last))
		if i == len(c.Greedy)-1 {
			break
		}
		var err error
		if last, err = step(ctx, eng, pool, &t, len(c.Tokens)+i, 0, &engine.Batch{
			Tokens: []int32{token}, LogitRows: []int32{0}}); err != nil {
			return nil, err
		}
	}
	out.elapsed = time.Since(start)
	return out, nil
}

func step(ctx context.Context, eng engine.Engine, pool *kv.Pool, t *kv.Table, start, prompt int,
	b *engine.Batch) ([]float32, error) {
	pool.Slide(t, start)
	if !pool.Reserve(t, start+len(b.Tokens)) {
		return nil, fmt.Errorf("no KV page is left for position %d", t.Room())
	}
	b.Seqs = []engine.SeqRows{{Start: int32(start), Rows: int32(len(b.Tokens)),
		Prompt: int32(prompt), Full: t.Full(), Window: t.Window()}}
	b.Twins = pool.Twins()
	logits := make([]float32, len(b.LogitRows)*eng.Spec().Vocab)
	return logits, eng.Step(ctx, b, logits)
}

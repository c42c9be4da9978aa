package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// Whole models, held against themselves: what a sequence gets must not depend on anything but the
// sequence.

// Check is one thing a device must do.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// Config says what to check.
type Config struct {
	Backend engine.Backend
	Options engine.Settings
	Dir     string // a golden folder: checkpoint/ and golden/
	// Tolerance is how far a logit may move with batch, chunk or page; 0: not a bit. Exact mode
	// only, other modes round to steps.
	Tolerance float64
}

// Programs lists the checks of whole models.
func Programs(c Config) []Check {
	return []Check{
		{"one sequence is cut in any way", c.cuts},
		{"sequences share steps", c.shares},
		{"a batch of 64 sequences", c.wide},
		{"several rows verify a draft", c.drafts},
		{"bad steps are refused and harm nothing", c.refusals},
		{"a cancelled step does not run", c.cancelled},
		{"steps of several goroutines", c.concurrent},
		{"a closed engine says so", c.closed},
		{"memory is as planned", c.planned},
	}
}

// bench is an engine with a pool whose free pages are all NaN.
type bench struct {
	engine.Engine
	ckpt   *checkpoint.Checkpoint
	pages  *golden.Pages
	tokens []int32 // a long golden prompt to cut pieces from
	rand   *rand.Rand
	used   map[int32]bool
}

func (c Config) open(maxRows, pages int) (*bench, error) {
	ckpt, err := checkpoint.Open(filepath.Join(c.Dir, "checkpoint"))
	if err != nil {
		return nil, err
	}
	o := c.Options
	pages += pages / 2 * (engine.WindowPages(o.KVCacheDtype) - 1)
	o.MaxNumBatchedTokens, o.Pages = maxRows, pages
	eng, err := c.Backend.Load(context.Background(), ckpt, o, nil)
	if err != nil {
		return nil, errors.Join(err, ckpt.Close())
	}
	random := rand.New(rand.NewPCG(7, 7))
	b := &bench{Engine: eng, ckpt: ckpt, rand: random,
		pages: newShuffled(pages, random).WithTwins(o.KVCacheDtype), used: map[int32]bool{}}
	cases, err := golden.Read(c.Dir, eng.Spec().Vocab)
	for _, one := range cases {
		if len(one.Tokens) >= 500 && len(one.Tokens) < 1000 {
			b.tokens = one.Tokens
		}
	}
	if err == nil && b.tokens == nil {
		err = fmt.Errorf("%s has no prompt of 500 to 1000 tokens", c.Dir)
	}
	if err == nil {
		err = Poison(eng.Cache(), 0, eng.Cache().Bytes())
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error { return errors.Join(b.Engine.Close(), b.ckpt.Close()) }

// with runs a check on an opened engine and closes it.
func (c Config) with(maxRows, pages int, check func(b *bench) error) (err error) {
	b, err := c.open(maxRows, pages)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	return check(b)
}

// part is a sequence on its way: its tokens, how many have been fed, and the logits after each.
type part struct {
	*golden.Sequence
	tokens []int32
	logits [][]float32
}

func (b *bench) part(tokens []int32) *part {
	return &part{Sequence: b.pages.NewSequence(b.Spec()), tokens: tokens}
}

// twins are half the pool away from their pages, for tables that were written by hand; nil where
// there are none.
func (b *bench) twins() []int32 {
	if b.pages.Twins == nil {
		return nil
	}
	n := int32(len(b.pages.Twins))
	twins := make([]int32, n)
	for i := range n {
		twins[i] = (i + n/2) % n
	}
	return twins
}

// feed runs one step: rows[i] more tokens of parts[i], all logits kept. Pages that came free are
// NaN before the step.
func (b *bench) feed(ctx context.Context, parts []*part, rows []int) error {
	var batch engine.Batch
	for i, p := range parts {
		if rows[i] == 0 {
			continue
		}
		at := p.Length
		q, err := p.Extend(rows[i])
		if err != nil {
			return err
		}
		batch.Seqs = append(batch.Seqs, q)
		batch.Tokens = append(batch.Tokens, p.tokens[at:at+rows[i]]...)
	}
	batch.Twins = b.pages.Twins
	for i := range batch.Tokens {
		batch.LogitRows = append(batch.LogitRows, int32(i))
	}
	if err := b.poisonFreed(batch.Seqs); err != nil {
		return err
	}
	vocab := b.Spec().Vocab
	logits := make([]float32, len(batch.Tokens)*vocab)
	if err := b.Step(ctx, &batch, logits); err != nil {
		return err
	}
	for i, p := range parts {
		for range rows[i] {
			p.logits = append(p.logits, logits[:vocab])
			logits = logits[vocab:]
		}
	}
	return nil
}

// poisonFreed fills pages that were in use before and are not in any of these tables.
func (b *bench) poisonFreed(sequences []engine.SeqRows) error {
	for _, q := range sequences {
		for _, page := range slices.Concat(q.Full, q.Window) {
			b.used[page] = true
			if page >= 0 && b.pages.Twins != nil {
				b.used[b.pages.Twins[page]] = true
			}
		}
	}
	for _, page := range b.pages.Free {
		if !b.used[page] {
			continue
		}
		if err := Poison(b.Cache(), int64(page)*b.Plan().PageBytes,
			b.Plan().PageBytes); err != nil {
			return err
		}
		delete(b.used, page)
	}
	return nil
}

// alone feeds a whole sequence in one step: what everything else is compared with.
func (b *bench) alone(ctx context.Context, tokens []int32) ([][]float32, error) {
	p := b.part(tokens)
	defer p.Close()
	err := b.feed(ctx, []*part{p}, []int{len(tokens)})
	return p.logits, err
}

// same compares logits, position by position.
func (c Config) same(what string, want, got [][]float32) error {
	if len(want) != len(got) {
		return fmt.Errorf("%s: logits of %d positions, not %d", what, len(got), len(want))
	}
	for p := range want {
		for i, w := range want[p] {
			g := got[p][i]
			if math.Float32bits(w) == math.Float32bits(g) && w == w {
				continue
			}
			if c.Tolerance == 0 || !(math.Abs(float64(w)-float64(g)) <= c.Tolerance) {
				return fmt.Errorf("%s: position %d, token %d: %v, not %v", what, p, i, g, w)
			}
		}
	}
	return nil
}

// cuts: a prompt in one step, token by token, and in random chunks: past the window, over page
// edges, with pages given back.
func (c Config) cuts(ctx context.Context) error {
	const n = 330
	return c.with(n, 64, func(b *bench) error {
		want, err := b.alone(ctx, b.tokens[:n])
		if err != nil {
			return err
		}
		for _, largest := range []int{1, 7, 40, 200} {
			p := b.part(b.tokens[:n])
			for p.Length < n {
				if err := b.feed(ctx, []*part{p},
					[]int{min(n-p.Length, 1+b.rand.IntN(largest))}); err != nil {
					return err
				}
			}
			held := 0
			for _, page := range p.Window {
				if page >= 0 {
					held++
				}
			}
			if most := (b.Spec().Window+largest)/engine.PageTokens + 2; held > most {
				return fmt.Errorf("chunks up to %d: %d window pages are held at the end, %d are "+
					"enough", largest, held, most)
			}
			p.Close()
			if err := c.same(fmt.Sprintf("chunks up to %d", largest), want, p.logits); err != nil {
				return err
			}
		}
		return nil
	})
}

// shares: sequences of different length go through the same steps, each at its own pace.
func (c Config) shares(ctx context.Context) error {
	return c.with(180, 96, func(b *bench) error {
		lengths := []int{1, 33, 64, 97, 170}
		var parts []*part
		var want [][][]float32
		for i, n := range lengths {
			tokens := b.tokens[11*i : 11*i+n]
			alone, err := b.alone(ctx, tokens)
			if err != nil {
				return err
			}
			parts, want = append(parts, b.part(tokens)), append(want, alone)
		}
		for {
			rows, sum := make([]int, len(parts)), 0
			for i, p := range parts {
				rows[i] = min(len(p.tokens)-p.Length, b.rand.IntN(36))
				sum += rows[i]
			}
			if sum == 0 {
				done := true
				for _, p := range parts {
					done = done && p.Length == len(p.tokens)
				}
				if done {
					break
				}
				continue
			}
			if err := b.feed(ctx, parts, rows); err != nil {
				return err
			}
		}
		for i, p := range parts {
			if err := c.same(fmt.Sprintf("sequence of %d", lengths[i]), want[i],
				p.logits); err != nil {
				return err
			}
		}
		return nil
	})
}

// wide: 64 sequences decode together, each where another one is.
func (c Config) wide(ctx context.Context) error {
	const n = 64
	return c.with(n, 2*n*2, func(b *bench) error {
		var parts []*part
		var want [][][]float32
		for i := range n {
			tokens := b.tokens[i : i+3+i%4]
			alone, err := b.alone(ctx, tokens)
			if err != nil {
				return err
			}
			parts, want = append(parts, b.part(tokens)), append(want, alone)
		}
		for range 6 {
			rows := make([]int, n)
			for i, p := range parts {
				rows[i] = min(1, len(p.tokens)-p.Length)
			}
			if err := b.feed(ctx, parts, rows); err != nil {
				return err
			}
		}
		for i, p := range parts {
			if err := c.same(fmt.Sprintf("sequence %d", i), want[i], p.logits); err != nil {
				return err
			}
		}
		return nil
	})
}

// drafts: a sequence takes five rows, three of them are rejected, and others are written over them:
// as in speculative decoding.
func (c Config) drafts(ctx context.Context) error {
	return c.with(64, 16, func(b *bench) error {
		tokens := b.tokens[:40]
		want, err := b.alone(ctx, tokens)
		if err != nil {
			return err
		}
		// two pages' worth, the draft crosses the edge
		p := b.part(slices.Concat(tokens[:32], b.tokens[400:403]))
		for _, rows := range []int{30, 5} {
			if err := b.feed(ctx, []*part{p}, []int{rows}); err != nil {
				return err
			}
		}
		p.Length, p.tokens, p.logits = 32, tokens, p.logits[:32]
		if err := b.feed(ctx, []*part{p}, []int{8}); err != nil {
			return err
		}
		return c.same("after a rejected draft", want, p.logits)
	})
}

// refusals: each of these batches is wrong in one way.
func (c Config) refusals(ctx context.Context) error {
	return c.with(8, 16, func(b *bench) error {
		s := b.Spec()
		good := func() *engine.Batch {
			return &engine.Batch{Tokens: []int32{1, 2, 3}, LogitRows: []int32{2}, Twins: b.twins(),
				Seqs: []engine.SeqRows{{Start: 0, Rows: 2, Full: []int32{3}, Window: []int32{4}},
					{Start: 0, Rows: 1, Full: []int32{5}, Window: []int32{6}}}}
		}
		want := make([]float32, s.Vocab)
		if err := b.Step(ctx, good(), want); err != nil {
			return err
		}
		bad := map[string]func(*engine.Batch){
			"no rows":                     func(x *engine.Batch) { *x = engine.Batch{} },
			"token beyond the vocabulary": func(x *engine.Batch) { x.Tokens[1] = int32(s.Vocab) },
			"negative token":              func(x *engine.Batch) { x.Tokens[1] = -1 },
			"rows and tokens differ":      func(x *engine.Batch) { x.Tokens = x.Tokens[:2] },
			"too many rows": func(x *engine.Batch) {
				x.Tokens, x.Seqs[0].Rows = make([]int32, 9), 8
			},
			"a sequence without rows":     func(x *engine.Batch) { x.Seqs[1].Rows = 0; x.Seqs[0].Rows = 3 },
			"negative position":           func(x *engine.Batch) { x.Seqs[1].Start = -1 },
			"position beyond the model":   func(x *engine.Batch) { x.Seqs[1].Start = int32(s.MaxPosition) },
			"short full table":            func(x *engine.Batch) { x.Seqs[1].Start = 32 },
			"no full table":               func(x *engine.Batch) { x.Seqs[0].Full = nil },
			"no window table":             func(x *engine.Batch) { x.Seqs[0].Window = nil },
			"full page given back":        func(x *engine.Batch) { x.Seqs[0].Full = []int32{-1} },
			"visible window page missing": func(x *engine.Batch) { x.Seqs[0].Window = []int32{-1} },
			"page beyond the pool": func(x *engine.Batch) {
				x.Seqs[0].Full = []int32{int32(b.Settings().Pages)}
			},
			"window page beyond the pool": func(x *engine.Batch) { x.Seqs[0].Window = []int32{99} },
			"logits of a row that is not": func(x *engine.Batch) { x.LogitRows = []int32{3} },
			"logits of a negative row":    func(x *engine.Batch) { x.LogitRows = []int32{-1} },
			"logits of more rows than room": func(x *engine.Batch) {
				x.LogitRows = make([]int32,
					9)
			},
		}
		if b.twins() != nil {
			bad["no twins"] = func(x *engine.Batch) { x.Twins = nil }
			bad["a twin beyond the pool"] = func(x *engine.Batch) { x.Twins[4] = int32(len(x.Twins)) }
			bad["a page as its own twin"] = func(x *engine.Batch) { x.Twins[6] = 6 }
			bad["no twin"] = func(x *engine.Batch) { x.Twins[6] = -1 }
		}
		for name, spoil := range bad {
			x := good()
			spoil(x)
			if err := b.Step(ctx, x, make([]float32, 9*s.Vocab)); err == nil {
				return fmt.Errorf("%s: accepted", name)
			}
		}
		if err := b.Step(ctx, good(), want[:1]); err == nil {
			return errors.New("a result too small: accepted")
		}
		if err := b.Step(ctx, &engine.Batch{Tokens: []int32{1}, Seqs: good().Seqs[1:],
			Twins: b.twins()}, nil); err != nil {
			return fmt.Errorf("a step without logits: %w", err)
		}
		got := make([]float32, s.Vocab)
		if err := b.Step(ctx, good(), got); err != nil {
			return err
		}
		return c.same("after the refusals", [][]float32{want}, [][]float32{got})
	})
}

func (c Config) cancelled(ctx context.Context) error {
	return c.with(8, 16, func(b *bench) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		x := &engine.Batch{Tokens: []int32{1},
			Seqs:  []engine.SeqRows{{Rows: 1, Full: []int32{0}, Window: []int32{1}}},
			Twins: b.twins()}
		if err := b.Step(ctx, x, nil); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// concurrent: goroutines call Step at once, on one engine; each sequence has its own pages.
func (c Config) concurrent(ctx context.Context) error {
	return c.with(64, 64, func(b *bench) error {
		const n = 4
		tokens := b.tokens[:20]
		want, err := b.alone(ctx, tokens)
		if err != nil {
			return err
		}
		vocab := b.Spec().Vocab
		failed := make(chan error, n)
		for i := range n {
			go func() {
				table := []int32{int32(2 * i), int32(2*i + 1)}
				x := &engine.Batch{Tokens: tokens,
					Seqs:      []engine.SeqRows{{Rows: 20, Full: table[:1], Window: table[1:]}},
					LogitRows: []int32{0, 19}, Twins: b.twins()}
				logits := make([]float32, 2*vocab)
				for range 5 {
					if err := b.Step(ctx, x, logits); err != nil {
						failed <- err
						return
					}
				}
				failed <- c.same("a goroutine's step", [][]float32{want[0], want[19]},
					[][]float32{logits[:vocab], logits[vocab:]})
			}()
		}
		var errs []error
		for range n {
			errs = append(errs, <-failed)
		}
		return errors.Join(errs...)
	})
}

func (c Config) closed(ctx context.Context) error {
	b, err := c.open(4, 8)
	if err != nil {
		return err
	}
	if err := errors.Join(b.close(), b.Engine.Close()); err != nil {
		return fmt.Errorf("closing, twice: %w", err)
	}
	x := &engine.Batch{Tokens: []int32{1},
		Seqs: []engine.SeqRows{{Rows: 1, Full: []int32{0}, Window: []int32{1}}}, Twins: b.twins()}
	if err := b.Step(ctx, x, nil); !errors.Is(err, engine.ErrClosed) {
		return fmt.Errorf("a step after Close gets %v", err)
	}
	return nil
}

func (c Config) planned(context.Context) error {
	return c.with(32, 24, func(b *bench) error {
		plan, err := engine.PlanFor(b.Spec(), b.Settings())
		if err != nil {
			return err
		}
		switch {
		case plan != b.Plan():
			return fmt.Errorf("planned %+v, used %+v", plan, b.Plan())
		case b.Settings().Dense == engine.DenseQ8 && plan.Weights >= b.ckpt.Bytes():
			return fmt.Errorf("weights of %d bytes are planned with dense ones in 8 bits, the "+
				"checkpoint has %d", plan.Weights, b.ckpt.Bytes())
		case b.Settings().Dense != engine.DenseQ8 && plan.Weights != b.ckpt.Bytes():
			return fmt.Errorf("weights of %d bytes are planned, the checkpoint has %d",
				plan.Weights, b.ckpt.Bytes())
		case plan.KV() != b.Cache().Bytes():
			return fmt.Errorf("a pool of %d bytes is planned, it has %d", plan.KV(),
				b.Cache().Bytes())
		}
		return nil
	})
}

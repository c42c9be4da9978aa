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

// Whole models, compared with themselves: a sequence's results must depend on nothing but the
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
	// Tolerance is how much a logit may change with batch, chunk or page; 0: not by a bit. It
	// applies to exact mode only, since other modes round to steps.
	Tolerance float64
}

// Programs lists the checks of whole models.
func Programs(c Config) []Check {
	return []Check{
		{"one sequence is cut in any way", c.cuts},
		{"sequences share steps", c.shares},
		{"a batch of 64 sequences", c.wide},
		{"several rows verify a draft", c.drafts},
		{"few logits are wanted", c.wanted},
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
	pages  *Pages
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

// part is a sequence that is being fed: its tokens, how many have been fed, and the logits after
// each.
type part struct {
	*Sequence
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

// wide: 64 sequences decode together, at different positions.
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

// wanted: the logits that are asked for are those of a step that gives all, the others are numbers.
func (c Config) wanted(ctx context.Context) error {
	return c.with(64, 16, func(b *bench) error {
		p := b.part(b.tokens[:40])
		defer p.Close()
		q, err := p.Extend(40)
		if err != nil {
			return err
		}
		batch := engine.Batch{Tokens: p.tokens[:40], Seqs: []engine.SeqRows{q},
			LogitRows: []int32{39, 7}, Twins: b.pages.Twins}
		vocab := b.Spec().Vocab
		all := make([]float32, 2*vocab)
		if err := b.Step(ctx, &batch, all); err != nil {
			return err
		}
		for _, share := range []int{0, 1, 50, 100} { // percent
			mask := make([]uint64, (vocab+63)/64)
			for id := range vocab {
				if b.rand.IntN(100) < share {
					mask[id/64] |= 1 << (id % 64)
				}
			}
			asked := 0
			batch.LogitMask = func() []uint64 { asked++; return mask }
			few := slices.Repeat([]float32{float32(math.NaN())}, 2*vocab)
			if err := b.Step(ctx, &batch, few); err != nil {
				return err
			}
			for i, v := range few {
				id := i % vocab
				switch want := mask[id/64]>>(id%64)&1 == 1; {
				case math.IsNaN(float64(v)) || math.IsInf(float64(v), 0):
					return fmt.Errorf("%d%%: logit %d is %v", share, i, v)
				case want && v != all[i] || v != 0 && v != all[i]:
					return fmt.Errorf("%d%%: logit %d is %v, of all it is %v", share, i, v, all[i])
				}
			}
			if asked > 1 {
				return fmt.Errorf("the mask was asked for %d times", asked)
			}
		}
		batch.LogitMask = func() []uint64 { return nil }
		few := make([]float32, 2*vocab)
		if err := b.Step(ctx, &batch, few); err != nil {
			return err
		}
		if !slices.Equal(few, all) {
			return errors.New("no mask changes the logits")
		}
		return nil
	})
}

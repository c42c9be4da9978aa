package enginetest

// What a device must do besides computing: refuse what is not a step, end when it is told to, keep
// to the memory that was planned.

import (
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

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
		case b.Settings().Dense == engine.DenseQ8 && plan.Weights >= b.ckpt.Spec.WeightBytes():
			return fmt.Errorf("weights of %d bytes are planned with dense ones in 8 bits, the "+
				"checkpoint has %d", plan.Weights, b.ckpt.Spec.WeightBytes())
		case b.Settings().Dense != engine.DenseQ8 && plan.Weights != b.ckpt.Spec.WeightBytes():
			return fmt.Errorf("weights of %d bytes are planned, the checkpoint has %d",
				plan.Weights, b.ckpt.Spec.WeightBytes())
		case plan.KV() != b.Cache().Bytes():
			return fmt.Errorf("a pool of %d bytes is planned, it has %d", plan.KV(),
				b.Cache().Bytes())
		}
		return nil
	})
}

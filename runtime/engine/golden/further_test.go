package golden

// Further prompts: a golden has few positions, and the median KL of a mode over them varies by a
// sixth. The same device's exact arithmetic is a reference at any number of positions.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Further compares compute modes with exact arithmetic at every position of so many prompts of
// random tokens for each model, and judges each mode over all of them by its bounds.
func (o Options) Further(ctx context.Context, models []*checkpoint.Checkpoint, b engine.Backend,
	prompts, length int, modes []string) (results []CaseResult, err error) {
	list := o.variants(b, modes)
	all := make([][]CaseResult, len(list))
	for _, ckpt := range models {
		cases, err := o.further(ctx, ckpt, b, prompts, length, list)
		if err != nil {
			return nil, err
		}
		for i := range cases {
			all[i] = append(all[i], cases[i]...)
		}
	}
	for i, v := range list {
		results = append(results, merge(v.name(), all[i]))
	}
	return results, nil
}

func (o Options) further(ctx context.Context, ckpt *checkpoint.Checkpoint, b engine.Backend,
	prompts, length int, variants []Options) (all [][]CaseResult, err error) {
	list := append([]Options{o.judge(b)}, variants...)
	var readers []*reader
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.eng.Close())
		}
	}()
	c := Case{Tokens: make([]int32, length), Positions: make([]int32, length)}
	for i := range c.Positions {
		c.Positions[i] = int32(i)
	}
	for _, v := range list {
		r, err := v.load(ctx, ckpt, b, pagesFor([]Case{c}))
		if err != nil {
			return nil, err
		}
		readers = append(readers, r)
	}
	random := rand.New(rand.NewPCG(7, uint64(prompts)))
	all = make([][]CaseResult, len(variants))
	for n := range prompts {
		c.Name = fmt.Sprint("prompt ", n)
		for i := range c.Tokens {
			c.Tokens[i] = int32(random.IntN(ckpt.Spec.Vocab))
		}
		exact, err := readers[0].feed(ctx, &c)
		if err != nil {
			return nil, err
		}
		c.Logits = exact.logits
		for i, r := range readers[1:] {
			out, err := r.feed(ctx, &c)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], compare(&c, out))
		}
	}
	return all, nil
}

package device

import (
	"context"
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The self-test's proof at a published model's width, as serve runs it: rounded, on a bf16 cache.
// With few blocks or one run a race stays hidden; here every phase has all of its blocks and runs
// many times, and must leave the same bits each time.

// WidthRows are the steps that it tries: each kernel of few rows, the first that has those of many,
// and such as leave last tiles unfilled.
func WidthRows() []int { return []int{1, 4, 16, 17, 129, 700} }

// widthModel is a small model of this width: one layer of each kind and a part of the vocabulary;
// the full vocabulary is timed with the operations.
func widthModel(s models.Spec) models.Spec {
	s.Layers, s.Vocab, s.MaxPosition = 2, min(s.Vocab, 8192), min(s.MaxPosition, 4096)
	return s
}

// ProveWidth holds the variants to the reference kernels in a step of up to so many rows, each run
// times times. Wrong variants are disabled.
func (d *Device) ProveWidth(ctx context.Context, s models.Spec, rows, times int) (Trial, error) {
	if err := ctx.Err(); err != nil {
		return Trial{}, err
	}
	v := &prover{resources: resources{d: d}, spec: widthModel(s), times: times}
	err := v.run(trial{"", engine.Settings{KVCacheDtype: "bf16", Compute: engine.Rounded}, rows,
		v.spec.Layers, nil, nil})
	t := v.trial(fmt.Sprintf("%s's width, up to %d rows, %d times", s.Name, rows, times))
	for _, p := range t.Proofs {
		if !p.OK {
			d.Disable(p.Variant)
		}
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", t.Name, err)
	}
	return t, nil
}

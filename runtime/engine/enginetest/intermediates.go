package enginetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// The reference's own steps inside the model: when a logit is wrong, this tells its origin.

// intermediate is a golden array and the tap, or part of a tap, that it is compared with.
type intermediate struct {
	golden string
	tap    string
	// columns [from, to) of the tap; to 0: all
	from, to int
}

// intermediateBound is the largest error that a float32 engine may have.
const intermediateBound = 2e-4

// Intermediates compares every intermediate of a golden folder that has them (T1): experts equal,
// values within 2e-4. report gets each error.
func Intermediates(ctx context.Context, c Config,
	report func(name string, worst float64)) (err error) {
	ckpt, err := checkpoint.Open(filepath.Join(c.Dir, "checkpoint"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	arrays, err := golden.OpenArrays(filepath.Join(c.Dir, "golden", "intermediates.safetensors"))
	if err != nil {
		return err
	}
	defer arrays.Close()
	tokens, err := arrays.Int32("tokens")
	if err != nil {
		return err
	}
	compared := intermediates(ckpt.Spec)
	o := c.Options
	o.MaxNumBatchedTokens, o.Pages = len(tokens), 2*(len(tokens)/engine.PageTokens+1)
	for _, i := range compared {
		o.Taps = append(o.Taps, i.tap)
	}
	eng, err := c.Backend.Load(ctx, ckpt, o, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	rows, err := NewPages(o.Pages).NewSequence(ckpt.Spec).Extend(len(tokens))
	if err != nil {
		return err
	}
	b := &engine.Batch{Tokens: tokens, Seqs: []engine.SeqRows{rows}}
	for i := range tokens {
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	logits := make([]float32, len(tokens)*ckpt.Spec.Vocab)
	if err := eng.Step(ctx, b, logits); err != nil {
		return err
	}
	var errs []error
	for _, i := range compared {
		worst, err := i.compare(eng, arrays, len(tokens))
		if err == nil && !(worst <= intermediateBound) {
			err = fmt.Errorf("off by %.3g", worst)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", i.golden, err))
		}
		report(i.golden, worst)
	}
	return errors.Join(errs...)
}

func intermediates(s models.Spec) []intermediate {
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	list := []intermediate{
		{"embedding", "embedding", 0, 0},
		{"layer0.input_layernorm", "layer0.input_layernorm", 0, 0},
		{"layer0.q_rope", "layer0.qkv_rope", 0, q},
		{"layer0.k_rope", "layer0.qkv_rope", q, q + kv},
		{"layer0.v", "layer0.qkv_rope", q + kv, q + 2*kv},
		{"layer0.attn_heads", "layer0.attn_heads", 0, 0},
		{"layer0.after_attn", "layer0.after_attn", 0, 0},
		{"layer0.post_attention_layernorm", "layer0.post_attention_layernorm", 0, 0},
		{"layer0.router_logits", "layer0.router_logits", 0, 0},
		{"layer0.expert_weights", "layer0.expert_weights", 0, 0},
		{"final_norm", "final_norm", 0, 0},
	}
	for l := range s.Layers {
		for _, what := range []string{"experts", "out"} {
			name := fmt.Sprintf("layer%d.%s", l, what)
			list = append(list, intermediate{name, name, 0, 0})
		}
	}
	return list
}

func (i intermediate) compare(eng engine.Engine, arrays *golden.Arrays, rows int) (float64, error) {
	data, err := eng.Tap(i.tap, rows)
	if err != nil {
		return math.Inf(1), err
	}
	if want, err := arrays.Int32(i.golden); err == nil {
		got := make([]int32, len(data)/4)
		for j := range got {
			got[j] = int32(binary.LittleEndian.Uint32(data[4*j:]))
		}
		if !slices.Equal(want, got) {
			return math.Inf(1), errors.New("other experts were chosen")
		}
		return 0, nil
	}
	want, err := arrays.Float32(i.golden)
	if err != nil {
		return math.Inf(1), err
	}
	got := engine.Numbers[float32](data)
	width := len(got) / rows
	to := i.to
	if to == 0 {
		to = width
	}
	if len(want) != rows*(to-i.from) {
		return math.Inf(1), fmt.Errorf("%d values, not %d", rows*(to-i.from), len(want))
	}
	var e worst
	for j, v := range want {
		row, column := j/(to-i.from), j%(to-i.from)
		e.add(got[row*width+i.from+column], float64(v), 1)
	}
	return float64(e), nil
}

package device

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The card decides which kernels compute the experts: after the proofs each way is timed for every
// batch bucket, on two layers of a published model's width, whose weights no cache holds.
//
// What must stay true: a way that is not timed, or was found wrong, is not chosen.

// tunedModel and tunedRows are the model and the buckets that are timed; tests have smaller ones.
var tunedModel, tunedRows = models.Spec20B, []int{1, 2, 4, 8, 16, 32, 64, 128, 256}

// Timing is the time of one way in steps of so many rows.
type Timing struct {
	Rows    int     `json:"rows"`
	Kernels Variant `json:"kernels"` // that multiply by the first matrices
	Micros  float64 `json:"us"`      // of a layer, from its router to the sum of its experts
	Rate    float64 `json:"gbs"`     // of the weights of chosen experts, 10^9 byte/s
	Chosen  bool    `json:"chosen"`
}

// Tune times every way that the card has.
func (d *Device) Tune(ctx context.Context) (list []Timing, err error) {
	v := &prover{resources: resources{d: d}, spec: widthModel(tunedModel())}
	defer func() { err = errors.Join(err, v.close()) }()
	v.ckpt = acquire(&v.resources, func() (*checkpoint.Checkpoint, error) {
		return checkpoint.SyntheticUploaded(v.spec, 1)
	}, (*checkpoint.Checkpoint).Close)
	o := engine.Settings{KVCacheDtype: "bf16", Compute: engine.Rounded}
	for _, rows := range tunedRows {
		if err := errors.Join(ctx.Err(), v.prepare(v.spec, o, rows, rows)); err != nil {
			return nil, err
		}
		for _, up := range []Variant{"", StreamGateUp, StreamGateUp + "_bf16", StripGateUp,
			StripGateUp + "_bf16"} {
			t, err := v.timeExperts([]Variant{up, downOf(up)})
			if err != nil {
				return nil, fmt.Errorf("time experts in steps of %d rows: %w", rows, err)
			}
			if up == "" || t.Kernels == up {
				list = append(list, t)
			}
		}
	}
	choose(list)
	return list, nil
}

// timeExperts times the experts of the program, compiled with these variants.
func (v *prover) timeExperts(forced []Variant) (t Timing, err error) {
	s, err := v.d.compile(&step{p: v.program, forced: forced})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Forward(v.batch, nil, nil); err != nil { // which routes the rows
		return t, err
	}
	s.phases = slices.DeleteFunc(s.phases, func(ph phase) bool {
		last := s.p.Ops[ph.to-1].Kind
		if last == engine.GateUp {
			t.Kernels = ph.variant
		}
		return !slices.Contains([]engine.Kind{engine.Route, engine.GateUp, engine.Down,
			engine.Combine}, last)
	})
	v.d.mu.Lock()
	graph, err := v.d.stream.Capture(s.launchAll)
	v.d.mu.Unlock()
	if err != nil {
		return t, err
	}
	h := resources{d: v.d}
	took, err := h.fastest(5, graph.Launch)
	m := v.spec
	t.Rows, t.Micros = v.program.Rows, math.Round(took.Seconds()*1e8/float64(m.Layers))/100
	idle := math.Pow(1-float64(m.ExpertsPerToken)/float64(m.Experts), float64(t.Rows))
	weights := float64(3*m.Experts*m.Hidden*m.Intermediate) * 17 / 32
	t.Rate = weights * (1 - idle) / max(t.Micros, 0.01) / 1e3
	return t, errors.Join(err, graph.Close(), h.close())
}

// choose marks the fastest way of each bucket; of few rows that which is faster in all together.
func choose(list []Timing) {
	few := map[Variant]float64{}
	for _, t := range list {
		if t.Rows <= kernels.DecodeRows {
			few[t.Kernels] += t.Micros
		}
	}
	for i, t := range list {
		list[i].Chosen = !slices.ContainsFunc(list, func(o Timing) bool {
			if t.Rows <= kernels.DecodeRows {
				return o.Rows <= kernels.DecodeRows && few[o.Kernels] < few[t.Kernels]
			}
			return o.Rows == t.Rows && o.Micros < t.Micros
		})
	}
}

// Choose uses times for programs compiled from now on.
func (d *Device) Choose(list []Timing) {
	d.mu.Lock()
	d.timings = list
	d.mu.Unlock()
}

// chosen tells whether these kernels were the fastest for a step. Steps of many rows are compared
// by the tokens that an expert has.
func (d *Device) chosen(up Variant, rows int, s models.Spec) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	tuned, few := tunedModel(), rows <= kernels.DecodeRows
	i := slices.IndexFunc(d.timings, func(t Timing) bool {
		if few != (t.Rows <= kernels.DecodeRows) || !t.Chosen {
			return false
		}
		return few && t.Rows >= rows || !few && t.Rows*tuned.ExpertsPerToken*s.Experts >=
			rows*s.ExpertsPerToken*tuned.Experts
	})
	return i >= 0 && d.timings[i].Kernels == up
}

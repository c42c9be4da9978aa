package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The card decides which kernels compute a part of a step: after the proofs each way is timed for
// batch buckets, on two layers of a published model's width, more than an H200's cache holds.
//
// What must stay true: a way that is not timed, or was found wrong, is not chosen.

// tunedModel and tunedRows are the model and the buckets that are timed; tests have smaller ones.
// The last choice serves all larger steps.
var tunedModel, tunedRows = models.Spec20B, []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 2048}

// part is what the ways are compared in.
type part struct {
	name  string
	kinds []engine.Kind // that its phases end with
	ways  [][]Variant   // besides the default; the first variant names a way
}

var parts = []part{
	{"experts", []engine.Kind{engine.Route, engine.GateUp, engine.Down, engine.Combine},
		[][]Variant{{StreamExperts}, {StreamExperts + "_bf16"}, {StreamExperts + "_wgmma"}}},
	{"router", []engine.Kind{engine.Norm, engine.Linear, engine.Route},
		[][]Variant{{PrefillLinear}}},
	{"dense", []engine.Kind{engine.Linear, engine.Rope, engine.WriteKV},
		[][]Variant{{QKVUnit, LinearUnit}, {"half_pieces"}, {"twice_pieces"}}},
}

// cuts are ways of steps of many rows that are a number: Target.Cut.
var cuts = map[Variant]int{"half_pieces": -1, "twice_pieces": 2}

func (s *step) target() kernels.Target {
	t := s.dev.target
	for way, n := range cuts {
		if !s.steady && s.preferred(way) {
			t.Cut = n
		}
	}
	return t
}

// Timing is the time of one way in steps of so many rows.
type Timing struct {
	Part    string  `json:"part"` // "experts", from their router to their sum
	Rows    int     `json:"rows"`
	Kernels Variant `json:"kernels"` // the first of the way
	Micros  float64 `json:"us"`      // of a layer
	Rate    float64 `json:"gbs"`     // of its weights, and of chosen experts alone, 10^9 byte/s
	Chosen  bool    `json:"chosen"`
}

// Tune times every way that the card has. The error is of the first that could not run.
func (d *Device) Tune(ctx context.Context) (list []Timing, err error) {
	v := &prover{resources: resources{d: d}, spec: widthModel(tunedModel())}
	defer func() { err = errors.Join(err, v.close()) }()
	v.ckpt = acquire(&v.resources, func() (*checkpoint.Checkpoint, error) {
		return checkpoint.SyntheticUploaded(v.spec, 1)
	}, (*checkpoint.Checkpoint).Close)
	o := engine.Settings{KVCacheDtype: "bf16", Compute: engine.Rounded}
	for _, rows := range tunedRows {
		if failed := errors.Join(ctx.Err(), v.prepare(v.spec, o, rows, rows)); failed != nil {
			err = cmp.Or(err, failed)
			break
		}
		for _, p := range parts {
			usual := Variant("")
			for _, way := range append([][]Variant{{""}}, p.ways...) {
				t, failed := v.timeWay(p, way, usual)
				switch {
				case errors.Is(failed, driver.ErrLost):
					return nil, failed
				case failed != nil:
					err = cmp.Or(err, fmt.Errorf("%s by %s in steps of %d rows: %w", p.name,
						cmp.Or(way[0], "default"), rows, failed))
				case t.Rows > 0:
					list, usual = append(list, t), cmp.Or(usual, t.Kernels)
				}
			}
		}
	}
	choose(list)
	return list, err
}

// timeWay times a part of the program, compiled with these variants, unless they are the usual ones
// or not for so many rows. The router's phases are next to its Route.
func (v *prover) timeWay(p part, way []Variant, usual Variant) (t Timing, err error) {
	s, err := v.d.compile(&step{p: v.program, forced: way})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if cuts[way[0]] != 0 && s.p.Rows > kernels.DecodeRows {
		t.Kernels = way[0]
	}
	s.phases = slices.DeleteFunc(s.phases, func(ph phase) bool {
		last := s.p.Ops[ph.to-1]
		first := slices.Index(p.kinds, last.Kind)
		skipped := first < 0 || last.Out[0].Home == engine.Logits ||
			p.kinds[0] == engine.Norm && s.run(ph.to-1, p.kinds[first:]...) == nil
		if t.Kernels == "" && !skipped && (last.Kind != engine.Route || p.kinds[0] == engine.Norm) {
			t.Kernels = ph.variant
		}
		return skipped
	})
	if way[0] != "" && (t.Kernels != way[0] || t.Kernels == usual) {
		return t, nil
	}
	if err := s.Forward(v.batch, nil, nil); err != nil { // which routes the rows
		return t, err
	}
	v.d.mu.Lock()
	graph, err := v.d.stream.Capture(s.launchAll)
	v.d.mu.Unlock()
	if err != nil {
		return t, err
	}
	h := resources{d: v.d}
	took, err := h.fastest(5, graph.Launch)
	m := v.spec
	t.Part, t.Rows = p.name, v.program.Rows
	t.Micros = math.Round(took.Seconds()*1e8/float64(m.Layers)) / 100
	idle := math.Pow(1-float64(m.ExpertsPerToken)/float64(m.Experts), float64(t.Rows))
	weights := float64(3*m.Experts*m.Hidden*m.Intermediate) * 17 / 32 * (1 - idle)
	switch p.kinds[0] {
	case engine.Norm:
		weights = float64(2 * m.Hidden * m.Experts)
	case engine.Linear:
		weights = float64(4 * m.Hidden * m.HeadDim * (m.Heads + m.KVHeads))
	}
	t.Rate = weights / max(t.Micros, 0.01) / 1e3
	return t, errors.Join(err, graph.Close(), h.close())
}

// choose marks the fastest way of each bucket. One that failed in a bucket of few rows serves none
// of them, since with drafts the way of one row serves all.
func choose(list []Timing) {
	cost := func(t Timing) float64 { // a bucket more outweighs any time
		for _, o := range list {
			if o.Part == t.Part && o.Kernels == t.Kernels &&
				max(o.Rows, t.Rows) <= kernels.DecodeRows {
				t.Micros -= 1e9
			}
		}
		return t.Micros
	}
	for i, t := range list {
		list[i].Chosen = !slices.ContainsFunc(list, func(o Timing) bool {
			return o.Part == t.Part && o.Rows == t.Rows && cost(o) < cost(t)
		})
	}
}

// Choose uses times for programs compiled from now on.
func (d *Device) Choose(list []Timing) {
	d.mu.Lock()
	d.timings = list
	d.mu.Unlock()
}

// chosen tells whether a variant's way was the fastest for a step. Steps of many rows are compared
// by the tokens that an expert has.
func (d *Device) chosen(v Variant, rows int, s models.Spec) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	tuned, few := tunedModel(), rows <= kernels.DecodeRows
	for _, p := range parts {
		w := slices.IndexFunc(p.ways, func(way []Variant) bool { return slices.Contains(way, v) })
		if w < 0 {
			continue
		}
		need, have := rows, 1
		if p.kinds[0] == engine.Route && !few {
			need, have = rows*s.ExpertsPerToken*tuned.Experts, tuned.ExpertsPerToken*s.Experts
		}
		i := slices.IndexFunc(d.timings, func(t Timing) bool {
			return t.Part == p.name && t.Chosen && few == (t.Rows <= kernels.DecodeRows) &&
				(t.Rows*have >= need || t.Rows == tunedRows[len(tunedRows)-1])
		})
		return i >= 0 && d.timings[i].Kernels == p.ways[w][0]
	}
	return false
}

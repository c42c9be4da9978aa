package doctor

import (
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

// Modes of computing a model: how fast each is, and how close to the exact model. What must stay
// true: the figures are those of docs/performance.md.

// Mode is one way to compute a model.
type Mode struct {
	Compute string `json:"compute"`
	Dense   string `json:"dense"`
	// upper bound on tokens a second of one answer, from the CPU's read rate
	ReadBound float64 `json:"tok_s_at_most"`
	// median, in nats, to exact logits at 7,200 positions of three test models; --golden measures
	// it on any model
	KL float64 `json:"kl_median"`
}

// measuredModes have the figures of docs/performance.md; modes_test.go compares them.
var measuredModes = []Mode{
	{Compute: engine.Int8, Dense: engine.DenseQ8, KL: 2.0e-3},
	{Compute: engine.Int8Fast, Dense: engine.DenseQ8, KL: 2.6e-3},
	{Compute: engine.Int8, Dense: engine.DenseBF16, KL: 8.9e-4},
	{Compute: engine.Exact, Dense: engine.DenseBF16, KL: 5.0e-12},
}

// Closeness returns the KL of a mode on the CPU; 0: not measured.
func Closeness(compute, dense string) float64 {
	for _, m := range measuredModes {
		if m.Compute == compute && m.Dense == dense {
			return m.KL
		}
	}
	return 0
}

// modesOf returns the modes for a model of shape spec if the CPU reads rate bytes a second, the one
// in s first.
func modesOf(s engine.Settings, spec models.Spec, rate float64) (list []Mode, err error) {
	for _, m := range measuredModes {
		first := m.Compute == s.Compute && m.Dense == s.Dense
		variant := s
		variant.Compute, variant.Dense = m.Compute, m.Dense
		if m.ReadBound, err = serve.ReadBound(spec, variant, rate); err != nil {
			return nil, err
		}
		if first {
			list = slices.Insert(list, 0, m)
		} else {
			list = append(list, m)
		}
	}
	return list, nil
}

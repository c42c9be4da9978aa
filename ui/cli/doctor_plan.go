// The memory plan of a model as ossrun doctor shows it: what Load would do with the memory that is free now, and what would
// change it.

package cli

import (
	"cmp"
	"slices"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/session"
)

// planReport is one plan. Sizes are bytes, contexts are tokens.
type planReport struct {
	Context     int    `json:"context"`
	MaxContext  int    `json:"max_context"` // what the model was made for
	Weights     int64  `json:"weights"`
	KV          int64  `json:"kv"`
	Scratch     int64  `json:"scratch"`
	Free        int64  `json:"free"`
	Left        int64  `json:"left"`
	FullContext int64  `json:"free_for_max_context"` // what would have to be free for max_context
	Error       string `json:"error,omitempty"`      // why there is no plan; the other fields are 0 then

	lines []string // for people
}

// unasked are the settings of serve and chat on a device when nobody says anything, and the model of the catalogue as it is loaded with them.
func unasked(e models.Entry, dev engine.Device) (models.Found, session.LoadOptions) {
	k := standard(kindOf(dev), deviceMemory(dev))
	k.compute, k.dense = "auto", engine.DenseBF16
	if kindOf(dev) == onGPU {
		k.compute = engine.Rounded
	}
	return models.Found{Name: e.ID, Demo: e.ID == models.Demo}, k.load()
}

// needs is the memory of a model with a context of doctorContext tokens, and whether a load would find it.
func needs(e models.Entry, dev engine.Device) (bytes int64, fits bool, err error) {
	found, o := unasked(e, dev)
	o.MaxModelLen = doctorContext
	if bytes, err = session.Needs(found, e.Spec, dev, o); err != nil {
		return 0, false, err
	}
	_, none := session.PlanFor(found, e.Spec, dev, o)
	return bytes, none == nil, nil
}

// planOf plans a model of the catalogue.
func planOf(e models.Entry, dev engine.Device) planReport {
	found, o := unasked(e, dev)
	p, err := session.PlanFor(found, e.Spec, dev, o)
	if err != nil {
		return planReport{Error: err.Error(), lines: []string{err.Error()}}
	}
	return planReport{Context: p.Context, MaxContext: p.MaxPosition, Weights: p.Weights, KV: p.KV, Scratch: p.Scratch, Free: p.Free, Left: p.Left,
		FullContext: p.FullContext, lines: p.Lines()}
}

// gpuPlan says in a line where a model would lie on the machine's usable GPUs and the CPU, and how many tokens a second their memories allow; "" where
// there is none. Free memory is what the driver or the kernel said, and where nobody said it, all of the card.
func gpuPlan(spec models.Spec, r detect.Report, hostFree int64, hostBandwidth func() float64) string {
	var cards []placement.Card
	var numbers []int
	for i, g := range r.Usable() {
		c := placement.Card{Name: g.Name, Free: device.Left(int64(g.MemoryMiB)<<20, int64(cmp.Or(g.FreeMiB, g.MemoryMiB))<<20), Total: int64(g.MemoryMiB) << 20, Shared: g.Integrated}
		if g.Chip != nil {
			c.Bandwidth = g.Chip.Bandwidth * 1e9
		}
		cards, numbers = append(cards, c), append(numbers, i)
	}
	if len(cards) == 0 {
		return ""
	}
	order := slices.Clone(numbers)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cards[b].Free, cards[a].Free) }) // as it is loaded: the one with most room first
	sorted := make([]placement.Card, len(cards))
	for i, n := range order {
		sorted[i] = cards[n]
	}
	k := standard(onGPU, sorted[0].Total)
	k.compute, k.dense = engine.Rounded, engine.DenseBF16
	host, o := placement.Host{Free: hostFree}, k.placement(spec, 0)
	plan, err := placement.For(spec, sorted, host, o)
	if err == nil && plan.CPUExpertLayers() > 0 {
		host.Bandwidth = hostBandwidth()
		plan, err = placement.For(spec, sorted, host, o)
	}
	if err != nil {
		return err.Error()
	}
	return plan.Line(order)
}

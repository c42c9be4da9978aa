// The memory plan of a model as ossrun doctor shows it: what Load would do with the memory that is free now, and what would
// change it.

package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
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
func unasked(e models.Entry, dev engine.Device) (checkpoint.Found, session.LoadOptions) {
	k := standard(kindOf(dev), deviceMemory(dev))
	k.compute, k.dense = "auto", engine.DenseBF16
	if kindOf(dev) == onGPU {
		k.compute = engine.Rounded
	}
	return checkpoint.Found{Name: e.ID, Demo: e.ID == models.Demo}, k.load()
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

// gpuPlacing is where the GPUs would have a model, in lines for people, or in one why there is no room for it. Its zero value is of
// a machine without GPUs.
type gpuPlacing struct {
	lines []string
	fits  bool
}

// String is all of it in one line.
func (p gpuPlacing) String() string { return strings.Join(p.lines, "; ") }

// gpuPlan says where a model would lie on the machine's usable GPUs, or those of a list (--gpu), and the CPU, and how many tokens a second their
// memories allow. It is the plan of a load: the first GPU alone where it has room for a context worth having, else all of them,
// the one with most room first. hostFree is bytes, hostBandwidth byte/s.
func gpuPlan(spec models.Spec, r detect.Report, only []int, hostFree int64, hostBandwidth func() float64) gpuPlacing {
	cards, numbers, unknown := planCards(r, only, hostFree)
	if unknown != "" {
		return gpuPlacing{lines: []string{"no plan: how much memory " + unknown + " has is not known"}}
	}
	if len(cards) == 0 {
		return gpuPlacing{}
	}
	k := standard(onGPU, cards[0].Total)
	k.compute, k.dense = engine.Rounded, engine.DenseBF16
	host, o := placement.Host{Free: hostFree}, k.placement(spec, 0)
	plan, err := placement.For(spec, cards[:1], placement.Host{}, o)
	if err == nil && plan.Context >= min(doctorContext, spec.MaxPosition) {
		return gpuPlacing{plan.Lines(numbers), true}
	}
	order := make([]int, len(cards))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cards[b].Free>>20, cards[a].Free>>20) })
	sorted, named := make([]placement.Card, len(cards)), make([]int, len(cards))
	for i, n := range order {
		sorted[i], named[i] = cards[n], numbers[n]
	}
	if plan, err = placement.For(spec, sorted, host, o); err == nil && plan.CPUExpertLayers() > 0 {
		host.Bandwidth = hostBandwidth()
		plan, err = placement.For(spec, sorted, host, o)
	}
	if err != nil {
		return gpuPlacing{lines: []string{err.Error()}}
	}
	return gpuPlacing{plan.Lines(named), true}
}

// planCards are the usable GPUs in the order of their numbers, which are the drivers' where these were asked. Free memory is what the driver or the kernel
// said, and where nobody said it, all of the card. unknown names a GPU of which not even that is known.
func planCards(r detect.Report, only []int, hostFree int64) (cards []placement.Card, numbers []int, unknown string) {
	gpus := r.Usable()
	for i := range gpus {
		if gpus[i].Number == nil {
			gpus[i].Number = &i
		}
	}
	slices.SortStableFunc(gpus, func(a, b detect.GPU) int { return cmp.Compare(*a.Number, *b.Number) })
	for _, g := range gpus {
		if len(only) > 0 && !slices.Contains(only, *g.Number) {
			continue
		}
		if g.MemoryMiB == 0 {
			return nil, nil, g.Title()
		}
		total, free := int64(g.MemoryMiB)<<20, int64(cmp.Or(g.FreeMiB, g.MemoryMiB))<<20
		if g.SharesHost() {
			free = min(free, hostFree)
		}
		c := placement.Card{Name: g.Title(), Free: device.Left(total, free), Total: total, Shared: g.SharesHost()}
		if g.Figures != nil {
			c.Bandwidth = g.Figures.Bandwidth * 1e9
		}
		cards, numbers = append(cards, c), append(numbers, *g.Number)
	}
	return cards, numbers, ""
}

// Plans the placement of a model on the GPUs of a report, without opening one.

package gpu

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Placement is a model's place on the GPUs, or why it does not fit; zero: no GPUs.
type Placement struct {
	Lines []string
	Fits  bool
}

func (p Placement) String() string { return strings.Join(p.Lines, "; ") }

// Place plans a model on the usable GPUs, or those of s.GPUs, and the CPU, with the tokens a second
// that their bandwidth allows. It plans like a load: the first GPU alone if UsableContext fits,
// else all, the one with most room first. settings are for a card with so much memory. hostFree is
// bytes, hostBandwidth byte/s.
func Place(spec models.Spec, r detect.Result, settings func(memory int64) engine.Settings,
	hostFree int64, hostBandwidth func() float64) Placement {
	cards, unknown := planCards(r, settings(0).GPUs, hostFree)
	if unknown != "" {
		return Placement{Lines: []string{"no plan: how much memory " + unknown +
			" has is not known"}}
	}
	if len(cards) == 0 {
		return Placement{}
	}
	host, o := multi.Host{Free: hostFree}, placementSettings(spec, settings(cards[0].Total))
	plan, err := multi.PlanFor(spec, cards[:1], multi.Host{}, o)
	if err == nil && plan.Context >= min(UsableContext, spec.MaxPosition) {
		return Placement{plan.Lines(), true}
	}
	slices.SortStableFunc(cards, func(a, b multi.CardMemory) int {
		return cmp.Compare(b.Free>>20, a.Free>>20)
	})
	if plan, err = multi.PlanFor(spec, cards, host, o); err == nil && plan.CPUExpertLayers() > 0 {
		host.Bandwidth = hostBandwidth()
		plan, err = multi.PlanFor(spec, cards, host, o)
	}
	if err != nil {
		return Placement{Lines: []string{err.Error()}}
	}
	return Placement{plan.Lines(), true}
}

// planCards lists the usable GPUs by number. Free memory is the driver's or the kernel's figure, or
// the whole card. unknown names a GPU whose memory is not known.
func planCards(r detect.Result, only []int, hostFree int64) (cards []multi.CardMemory,
	unknown string) {
	gpus := r.Usable()
	for i := range gpus {
		if gpus[i].Number == nil {
			gpus[i].Number = &i
		}
	}
	slices.SortStableFunc(gpus, func(a, b detect.GPU) int {
		return cmp.Compare(*a.Number, *b.Number)
	})
	for _, g := range gpus {
		if len(only) > 0 && !slices.Contains(only, *g.Number) {
			continue
		}
		if g.MemoryMiB == 0 {
			return nil, g.Title()
		}
		total, free := int64(g.MemoryMiB)<<20, int64(cmp.Or(g.FreeMiB, g.MemoryMiB))<<20
		if g.SharesHost() {
			free = min(free, hostFree)
		}
		c := multi.CardMemory{Name: g.Title(), Number: *g.Number, Total: total,
			Free: device.Available(total, free), Shared: g.SharesHost()}
		if g.Figures != nil {
			c.Bandwidth = g.Figures.Bandwidth * 1e9
		}
		if a, err := kernels.ArchFor(g.Arch); err == nil {
			c.Unit = a.Unit
		}
		cards = append(cards, c)
	}
	return cards, ""
}

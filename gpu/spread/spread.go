// Package spread opens what a model needs that one GPU has no room for: all GPUs that may be used and the CPU, planned by gpu/placement and made one
// device by gpu/split. It runs in the program itself and, for an engine in a process of its own, in the worker, which then holds all of them.
//
// What must stay true: what was opened is closed when something after it fails; a plan is made of what the drivers say is free now.
package spread

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/gpu/split"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Request is a model that is to be placed.
type Request struct {
	Spec    models.Spec
	Options placement.Options
	Threads int // of the CPU, for the experts that it computes; 0: all
}

// Open opens the GPUs of a list, all that work with an empty one, and places the model over them and the CPU. records is the folder of what is known of
// the machine's cards; with "" no kernel is proved. said is for people: the plan, and the kernels that are wrong on a card.
func Open(ctx context.Context, gpus []int, r Request, records string) (dev engine.Device, said []string, err error) {
	return open(ctx, gpus, r, records, parts{cpu.New, ratesOf})
}

// parts is what is beside the cards; tests have others.
type parts struct {
	host  func(threads int) (engine.Device, error)
	rates func(first *card.Card, host engine.Device) placement.Rates
}

func open(ctx context.Context, gpus []int, r Request, records string, x parts) (dev engine.Device, said []string, err error) {
	cards, err := card.OpenSeveral(gpus)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			for _, c := range cards {
				err = errors.Join(err, c.Close())
			}
		}
	}()
	for _, c := range cards {
		if records != "" {
			c.Trust(ctx, records)
		}
		said = append(said, wrongOn(c)...)
	}
	host, err := x.host(r.Threads)
	if err != nil {
		return nil, nil, err
	}
	dev, line, err := over(cards, host, r, x.rates)
	if err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	return dev, append(said, r.Spec.Name+": "+line), nil
}

// wrongOn says of which kernels a card has slower ones.
func wrongOn(c interface {
	Name() string
	Trusted() (string, []string)
}) (said []string) {
	_, wrong := c.Trusted()
	for _, w := range wrong {
		said = append(said, c.Name()+": "+w)
	}
	return said
}

// over plans a model over opened cards, the one with most room first, and makes one device of them. line says the plan.
func over(cards []*card.Card, host engine.Device, r Request, measure func(*card.Card, engine.Device) placement.Rates) (_ engine.Device, line string, err error) {
	slices.SortStableFunc(cards, func(a, b *card.Card) int {
		_, x := a.Memory()
		_, y := b.Memory()
		return cmp.Compare(y>>20, x>>20)
	})
	var planned []placement.Card
	var devices []engine.Device
	var numbers []int
	for _, c := range cards {
		total, free := c.Memory()
		caps := c.Caps()
		planned = append(planned, placement.Card{Name: c.Name(), Free: free, Total: total, Shared: caps.Integrated,
			Bandwidth: caps.Bandwidth})
		devices, numbers = append(devices, c), append(numbers, c.Number)
	}
	_, free := host.Memory()
	machine := placement.Host{Free: free}
	plan, err := placement.For(r.Spec, planned, machine, r.Options)
	if err != nil {
		return nil, "", err
	}
	how := split.Options{}
	if plan.CPUExpertLayers() > 0 {
		rates := measure(cards[0], host)
		machine.Bandwidth = rates.Bandwidth
		from := placement.StreamFrom(r.Spec, rates, cmp.Or(r.Options.Rows, placement.Rows))
		staged := r.Options
		staged.Staging = from > 0
		if plan, err = placement.For(r.Spec, planned, machine, staged); err == nil && staged.Staging {
			how.Streams = func(rows int) bool { return rows >= from }
		} else if plan, err = placement.For(r.Spec, planned, machine, r.Options); err != nil {
			return nil, "", err
		}
	}
	dev, err := split.New(plan, devices, host, how)
	if err != nil {
		return nil, "", err
	}
	return dev, plan.Line(numbers), nil
}

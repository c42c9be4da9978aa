package multi

// What one GPU has no room for: all GPUs that may be used and the CPU are opened, planned (plan.go) and made one device
// (device.go).
//
// What must stay true: what was opened is closed when something after it fails; a plan is made of what the drivers say is free
// now.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Request is a model that is to be placed.
type Request struct {
	Spec    models.Spec
	Options Options
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
	rates func(first *device.Card, host engine.Device) Rates
}

func open(ctx context.Context, gpus []int, r Request, records string, x parts) (dev engine.Device, said []string, err error) {
	cards, err := device.OpenCards(gpus)
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
func over(cards []*device.Card, host engine.Device, r Request, measure func(*device.Card, engine.Device) Rates) (_ engine.Device, line string, err error) {
	slices.SortStableFunc(cards, func(a, b *device.Card) int {
		_, x := a.Memory()
		_, y := b.Memory()
		return cmp.Compare(y>>20, x>>20)
	})
	var planned []Card
	var devices []engine.Device
	var numbers []int
	for _, c := range cards {
		total, free := c.Memory()
		caps := c.Caps()
		planned = append(planned, Card{Name: c.Name(), Free: free, Total: total, Shared: caps.Integrated,
			Bandwidth: caps.Bandwidth})
		devices, numbers = append(devices, c), append(numbers, c.Number)
	}
	_, free := host.Memory()
	machine := Host{Free: free}
	plan, err := For(r.Spec, planned, machine, r.Options)
	if err != nil {
		return nil, "", err
	}
	var streams func(rows int) bool
	if plan.CPUExpertLayers() > 0 {
		rates := measure(cards[0], host)
		machine.Bandwidth = rates.Bandwidth
		from := StreamFrom(r.Spec, rates, cmp.Or(r.Options.Rows, Rows))
		staged := r.Options
		staged.Staging = from > 0
		if plan, err = For(r.Spec, planned, machine, staged); err == nil && staged.Staging {
			streams = func(rows int) bool { return rows >= from }
		} else if plan, err = For(r.Spec, planned, machine, r.Options); err != nil {
			return nil, "", err
		}
	}
	dev, err := New(plan, devices, host, streams)
	if err != nil {
		return nil, "", err
	}
	return dev, plan.Line(numbers), nil
}

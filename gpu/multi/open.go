package multi

// For a model that does not fit on one GPU: opens all that may be used and the CPU, plans (plan.go)
// and makes one device of them (device.go).
//
// What must stay true: a failure closes everything; a plan uses what drivers report as free.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Open opens the GPUs of s.GPUs, or all that work if it names none, and places a model over them
// and the CPU. records is the folder of the proofs on the machine's cards; with "" no kernel is
// verified. notify gets lines for people: the plan, the kernels that are wrong on a card.
func Open(ctx context.Context, spec models.Spec, s engine.Settings, records string,
	notify func(line string)) (engine.Device, error) {
	return open(ctx, spec, s, records, notify, parts{cpu.New, ratesOf})
}

// parts are Open's dependencies besides the cards; tests replace them.
type parts struct {
	host  func(threads int) (engine.Device, error)
	rates func(first *device.Card, host engine.Device) Rates
}

func open(ctx context.Context, spec models.Spec, s engine.Settings, records string,
	notify func(line string), x parts) (dev engine.Device, err error) {
	cards, err := device.OpenCards(s.GPUs)
	if err != nil {
		return nil, err
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
			c.Verify(ctx, records)
		}
		for _, line := range WrongOn(c) {
			notify(line)
		}
	}
	host, err := x.host(s.Threads)
	if err != nil {
		return nil, err
	}
	dev, line, err := openOn(cards, host, spec, s, x.rates)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	notify(spec.Name + ": " + line)
	return dev, nil
}

// WrongOn says for which kernels a card uses slower ones.
func WrongOn(c interface {
	Name() string
	Verified() (string, []string)
}) (notes []string) {
	_, wrong := c.Verified()
	for _, w := range wrong {
		notes = append(notes, c.Name()+": "+w)
	}
	return notes
}

// openOn plans a model on opened cards, the one with most room first, and makes one device.
func openOn(cards []*device.Card, host engine.Device, spec models.Spec, s engine.Settings,
	measure func(*device.Card, engine.Device) Rates) (_ engine.Device, line string, err error) {
	slices.SortStableFunc(cards, func(a, b *device.Card) int {
		_, x := a.Memory()
		_, y := b.Memory()
		return cmp.Compare(y>>20, x>>20)
	})
	var planned []CardMemory
	var devices []engine.Device
	for _, c := range cards {
		total, free := c.Memory()
		caps := c.Caps()
		planned = append(planned, CardMemory{Name: c.Name(), Number: c.Number, Free: free,
			Total: total, Shared: caps.Integrated, Bandwidth: caps.Bandwidth, Unit: c.Unit()})
		devices = append(devices, c)
	}
	_, free := host.Memory()
	machine := Host{Free: free}
	plan, err := PlanFor(spec, planned, machine, s)
	if err != nil {
		return nil, "", err
	}
	var streams func(rows int) bool
	if plan.CPUExpertLayers() > 0 {
		rates := measure(cards[0], host)
		machine.Bandwidth = rates.Bandwidth
		from := StreamFrom(spec, rates, cmp.Or(s.MaxNumBatchedTokens, Rows))
		plan, err = makePlan(spec, planned, machine, s, from > 0)
		if err == nil && from > 0 {
			streams = func(rows int) bool { return rows >= from }
		} else if plan, err = PlanFor(spec, planned, machine, s); err != nil {
			return nil, "", err
		}
	}
	dev, err := New(plan, devices, host, streams)
	if err != nil {
		return nil, "", err
	}
	return dev, strings.Join(plan.Lines(), "; "), nil
}

// A model that one GPU has no room for: over several, and where they have none either, with experts computed by the CPU (gpu/split).

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/gpu/split"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// cpuExpertsFlag is how many layers' experts go to the CPU.
func cpuExpertsFlag() cli.Flag {
	return &cli.StringFlag{Name: "cpu-experts", Category: groupModel, Value: "auto", Usage: "leave the experts of the last `N` layers to the CPU; auto: of as few as make the model fit on the GPUs"}
}

// cpuExperts reads the flag; 0 is auto.
func cpuExperts(c *cli.Context) (int, error) {
	text := c.String("cpu-experts")
	if text == "" || text == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fail(exitUsage, "--cpu-experts must be auto or a number of layers, not %q", text)
	}
	return n, nil
}

// spread places a model over the GPUs that may be used and the CPU. first, which was opened to look, is closed.
func spread(c *cli.Context, first engine.Device, spec models.Spec, experts int) (_ engine.Device, err error) {
	list, err := gpuList(c)
	if err = errors.Join(err, first.Close()); err != nil {
		return nil, err
	}
	opened, err := card.OpenSeveral(list)
	if err != nil {
		return nil, err
	}
	for _, x := range opened {
		if records := card.Records(); records != "" {
			x.Trust(c.Context, records)
		}
	}
	host, err := cpu.New(c.Int("threads"))
	if err != nil {
		return nil, errors.Join(err, closeAll(opened))
	}
	dev, line, err := splitOver(opened, host, spec, placementOptions(c, experts))
	if err != nil {
		return nil, errors.Join(err, closeAll(opened), host.Close())
	}
	fmt.Fprintf(c.App.ErrWriter, "ossrun: %s: %s\n", spec.Name, line)
	return dev, nil
}

func closeAll(cards []*card.Card) error {
	var errs []error
	for _, c := range cards {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// placementOptions are the flags that a plan depends on.
func placementOptions(c *cli.Context, experts int) placement.Options {
	rows := standard(onGPU, 0).maxRows
	if c.IsSet("max-num-batched-tokens") {
		rows = c.Int("max-num-batched-tokens")
	}
	kv := "bf16"
	if c.String("kv-cache-dtype") == "f32" {
		kv = "f32"
	}
	return placement.Options{Context: c.Int("max-model-len"), Rows: rows, KV: kv, Utilization: c.Float64("gpu-memory-utilization"), CPUExperts: experts}
}

// splitOver plans a model over opened cards, the one with most room first, and makes one device of them. line says the plan.
func splitOver(opened []*card.Card, host engine.Device, spec models.Spec, o placement.Options) (_ engine.Device, line string, err error) {
	slices.SortStableFunc(opened, func(a, b *card.Card) int {
		_, x := a.Memory()
		_, y := b.Memory()
		return int((y - x) >> 20)
	})
	var cards []placement.Card
	var devices []engine.Device
	var numbers []int
	for _, c := range opened {
		total, free := c.Memory()
		x := placement.Card{Name: c.Name(), Free: free, Total: total}
		if chip := detect.ChipNamed(c.Title(), int(total>>20)); chip != nil {
			x.Bandwidth = chip.Bandwidth * 1e9
		}
		cards, devices, numbers = append(cards, x), append(devices, c), append(numbers, c.Number)
	}
	_, free := host.Memory()
	machine := placement.Host{Free: free}
	plan, err := placement.For(spec, cards, machine, o)
	if err != nil {
		return nil, "", err
	}
	how := split.Options{}
	if plan.CPUExpertLayers() > 0 {
		rates := ratesOf(opened[0], host)
		machine.Bandwidth = rates.Bandwidth
		from := placement.StreamFrom(spec, rates, o.Rows)
		without := o
		o.Staging = from > 0
		if plan, err = placement.For(spec, cards, machine, o); err == nil && o.Staging {
			how.Streams = func(rows int) bool { return rows >= from }
		} else if plan, err = placement.For(spec, cards, machine, without); err != nil {
			return nil, "", err
		}
	}
	dev, err := split.New(plan, devices, host, how)
	if err != nil {
		return nil, "", err
	}
	return dev, plan.Line(numbers), nil
}

// ratesOf measures what decides between computing experts on the CPU and copying them to a card: about a second.
func ratesOf(first *card.Card, host engine.Device) (r placement.Rates) {
	data := make([]byte, 256<<20)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1 // the pages are there
	}
	r.Bandwidth = readRate(host)
	if dev, ok := host.(*cpu.Device); ok {
		r.Multiply = dev.MultiplyPeak(100*time.Millisecond) * expertShare
	}
	start := time.Now()
	region, err := first.Upload(data)
	if err != nil {
		return r // not known: nothing is streamed
	}
	r.Link = float64(len(data)) / time.Since(start).Seconds()
	if region.Free() != nil {
		r.Link = 0
	}
	return r
}

// expertShare is what the CPU's expert kernels are taken to reach of the peak of its 8-bit multiplications.
const expertShare = 0.5

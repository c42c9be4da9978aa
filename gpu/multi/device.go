// Package multi runs a model that does not fit on one card over several devices. plan.go places its
// parts. The engine.Device here is made of cards, each with a run of layers and their KV cache, and
// of the host, which computes the experts that no card has room for. The tape is cut at each change
// of the device (cut.go), and each segment is a program of its own. Buffers alive across a cut are
// moved: from card to card by a common driver, else through the host's memory.
//
//	card 0  embedding, layers 0-11     ->  card 1  layers 12-23, unembedding, sampling
//	card 0  attention, router of layer l
//	  -> host  choice of experts, experts, residual
//	  -> card 0  layer l+1
//
// The segments of a step run one after the other; only copies of experts (stage.go) overlap.
//
// What must stay true: a row's result is that of one device, up to the arithmetic of the device
// that computed it; a failed step leaves no work queued; Free and Close give everything back.
package multi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

type Device struct {
	layout
	// the cards in the order of their layers, then the host, which may be nil
	devices []engine.Device
	streams func(rows int) bool
	users   engine.Users

	mu      sync.Mutex // held while a step runs
	pending runner     // the last segment of a pass, not waited for yet
	tokens  fifo

	passing sync.Mutex
	pass    func() error // waits for the forward pass queued last; nil: there was none
}

var _ engine.Placer = (*Device)(nil)

// New makes one device of cards, indexed as in plan.Shares, and of host, which is needed only if
// the plan leaves experts to the CPU. streams tells from how many rows of a step on the experts of
// hosted layers are copied to the card instead of being computed by the host; nil: never.
// Device.Close closes them all. Cards without layers in the plan are closed at once.
func New(plan Plan, cards []engine.Device, host engine.Device,
	streams func(rows int) bool) (_ *Device, err error) {
	d := &Device{layout: layout{hosted: map[int]bool{}}, streams: streams}
	used, next := map[int]bool{}, 0
	for _, share := range plan.Shares {
		if share.Card < 0 || share.Card >= len(cards) || used[share.Card] ||
			share.To <= share.From {
			return nil, fmt.Errorf("a plan with layers %d to %d on GPU %d of %d", share.From,
				share.To-1, share.Card, len(cards))
		}
		if share.From != next {
			return nil, fmt.Errorf("a plan whose layers do not follow each other: %d to %d",
				share.From, share.To-1)
		}
		used[share.Card], next = true, share.To
		d.devices = append(d.devices, cards[share.Card])
		d.spans = append(d.spans, span{share.From, share.To})
		for _, layer := range share.CPUExperts {
			d.hosted[layer] = true
		}
	}
	if next == 0 {
		return nil, errors.New("a plan without layers")
	}
	if len(d.hosted) > 0 && host == nil {
		return nil, fmt.Errorf("the experts of %d layers are for a host that is not given",
			len(d.hosted))
	}
	d.devices = append(d.devices, host)
	for i, c := range cards {
		if !used[i] {
			err = errors.Join(err, c.Close())
		}
	}
	return d, err
}

func (d *Device) Name() string {
	var parts []string
	for i, s := range d.spans {
		parts = append(parts, fmt.Sprintf("%s: layers %d-%d", d.devices[i].Name(), s.from, s.to-1))
	}
	if n := len(d.hosted); n > 0 {
		parts = append(parts, fmt.Sprintf("%s: experts of %d layers", d.devices[d.host()].Name(),
			n))
	}
	return strings.Join(parts, "; ")
}

// Memory is the sum of all parts; MostPages knows the usable part.
func (d *Device) Memory() (total, free int64) {
	for i, dev := range d.devices {
		if dev == nil || i == d.host() && len(d.hosted) == 0 {
			continue
		}
		t, f := dev.Memory()
		total, free = total+t, free+f
	}
	return total, free
}

// Caps are the abilities that all cards share. A host that computes experts must know the mode too.
// Modes that round for the matrix unit are an exception: the host has no such unit and rounds
// nothing (program). The host has no dense weights and no KV pages.
func (d *Device) Caps() engine.Caps {
	caps := d.devices[0].Caps()
	caps.Samples, caps.Bandwidth = d.devices[d.host()-1].Caps().Samples, 0
	caps.Computes = slices.DeleteFunc(slices.Clone(caps.Computes), func(mode string) bool {
		return len(d.hosted) > 0 && !rounds(mode) && !d.hostHas(mode)
	})
	for _, dev := range d.devices[:d.host()] {
		c := dev.Caps()
		caps.Computes = slices.DeleteFunc(caps.Computes,
			func(mode string) bool { return !c.Has(mode) })
		// inputs of as many bits on all
		caps.DenseQ8 = caps.DenseQ8 && c.DenseQ8 && c.Dense12 == caps.Dense12
		caps.FP8KV = caps.FP8KV && c.FP8KV
	}
	return caps
}

func rounds(mode string) bool { return mode == engine.Rounded || mode == engine.MX }

func (d *Device) hostHas(mode string) bool {
	return d.devices[d.host()].Caps().Has(mode)
}

// Alloc makes memory without a stated purpose: on the first card.
func (d *Device) Alloc(bytes int64) (engine.Region, error) { return d.devices[0].Alloc(bytes) }

func (d *Device) Upload(data []byte) (engine.Region, error) { return d.devices[0].Upload(data) }

// AllocFor makes the cache, each card's part on that card; or the scratch, on every device.
func (d *Device) AllocFor(p *engine.Program, home engine.Home) (engine.Region, error) {
	if err := d.suits(p.Spec); err != nil {
		return nil, err
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	if home == engine.Cache {
		return d.newCache(p)
	}
	return d.newArena(p)
}

// suits refuses a model that the plan was not made for.
func (d *Device) suits(s models.Spec) error {
	if end := d.spans[d.host()-1].to; s.Layers != end {
		return fmt.Errorf("%s has %d layers, the devices were planned for %d", s.Name, s.Layers,
			end)
	}
	return nil
}

// streamsUpTo tells whether any step of up to rows rows streams experts.
func (d *Device) streamsUpTo(rows int) bool {
	return d.streams != nil && len(d.hosted) > 0 &&
		slices.ContainsFunc(engine.Buckets(rows), d.streams)
}

// unitOf is a device's matrix unit; a device that is no card needs no memory for it.
func unitOf(d engine.Device) kernels.Unit {
	if c, ok := d.(interface{ Unit() kernels.Unit }); ok {
		return c.Unit()
	}
	return kernels.MMA
}

// MostPages asks every card: its memory less its weights, scratch, Extra and staging areas, divided
// by its layers' part of a page. Logits and sampling are the last card's.
func (d *Device) MostPages(s models.Spec, o engine.Settings, utilization float64) (int, error) {
	if err := d.suits(s); err != nil {
		return 0, err
	}
	o.Pages = 1
	p, err := engine.Record(s, o, o.Rows())
	if err != nil {
		return 0, err
	}
	used := d.arenas(p)
	if d.streamsUpTo(p.Rows) {
		for i, bytes := range d.stagingBytes(p) {
			used[i] += stagingAreas * bytes
		}
	}
	for i := range d.spans {
		cardSettings := o
		if i < d.host()-1 {
			cardSettings.MaxLogits = 1 // it has no logits: one row is little
		}
		extra, err := device.Extra(s, cardSettings, unitOf(d.devices[i]))
		if err != nil {
			return 0, err
		}
		used[i] += extra
	}
	type copyKey struct {
		device int
		weight *engine.Buffer
	}
	seen := map[copyKey]bool{}
	for i, target := range d.places(p, false) {
		for _, b := range p.Ops[i].W {
			if x := (copyKey{target.device, b}); b != nil && !seen[x] {
				seen[x] = true
				used[target.device] += p.BytesOf(b)
			}
		}
	}
	pages := int64(1)<<31 - 1
	for i := range d.spans {
		total, free := d.devices[i].Memory()
		page := d.layersOf(i, s, p.Settings.KVCacheDtype).PageBytes()
		pages = min(pages, max(0, Room(total, free, utilization)-used[i])/page)
	}
	return int(pages), nil
}

func (d *Device) Close() error {
	return d.users.Close("several devices", func() (err error) {
		for _, dev := range d.devices {
			if dev != nil {
				err = errors.Join(err, dev.Close())
			}
		}
		return err
	})
}

// Package gpu is the one door to GPUs: Open gives a backend on which models can be loaded. Whether that is one card or
// several with the CPU, in this process or in a worker, is decided here and nowhere else.
//
// What must stay true: whoever names GPUs gets those or an error; what was opened is closed when something after it fails.
package gpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// UsableContext is the shortest context, in tokens, that is worth having: what "a model fits on a card" means.
const UsableContext = 8192

// ErrNone is what Open gives on a machine without any GPU driver.
var ErrNone = card.ErrNone

// Records is the folder of what is known of this machine's cards. Tests that prove no kernels set it to "".
var Records = card.Records()

// Backend is one GPU, or what a model needs that one has no room for: several GPUs, and the CPU for experts. It is not safe
// for concurrent use but for what it has loaded.
type Backend struct {
	settings engine.Settings
	tell     func(line string)
	dev      engine.Device
	placed   *placed // nil: dev is one card
}

// placed is a model that several devices were planned for.
type placed struct {
	spec models.Spec
	plan placement.Options
}

// Open opens the first GPU of s.GPUs, or the first that works. tell gets lines for people: kernels that are wrong on a card,
// where a model was placed, what a worker says.
func Open(ctx context.Context, s engine.Settings, tell func(line string)) (*Backend, error) {
	b := &Backend{settings: s, tell: tell}
	return b, b.openOne(ctx)
}

func (b *Backend) openOne(ctx context.Context) error {
	dev, err := b.one(ctx)
	if err != nil {
		return err
	}
	b.dev, b.placed = dev, nil
	_, wrong := b.Kernels()
	for _, w := range wrong {
		b.tell(dev.Name() + ": " + w)
	}
	return nil
}

func (b *Backend) one(ctx context.Context) (engine.Device, error) {
	if b.Isolated() {
		return openIsolated(b.settings.GPUs, b.tell)
	}
	return openHere(ctx, b.settings.GPUs)
}

// openHere opens a card in this process.
func openHere(ctx context.Context, list []int) (engine.Device, error) {
	c, err := card.Open(list)
	if err != nil {
		return nil, err
	}
	if Records != "" {
		c.Trust(ctx, Records)
	}
	return c, nil
}

// openSeveral opens what the settings allow, for one model.
func (b *Backend) openSeveral(spec models.Spec, o placement.Options) error {
	r := spread.Request{Spec: spec, Options: o, Threads: b.settings.Threads}
	open := func() (engine.Device, []string, error) {
		return spread.Open(context.Background(), b.settings.GPUs, r, Records)
	}
	if b.Isolated() {
		open = func() (engine.Device, []string, error) { return placeIsolated(b.settings.GPUs, r, b.tell) }
	}
	dev, said, err := open()
	if err != nil {
		return err
	}
	b.dev, b.placed = dev, &placed{spec, o}
	for _, line := range said {
		b.tell(line)
	}
	return nil
}

// Isolated tells whether the GPU engine is in a process of its own.
func (b *Backend) Isolated() bool { return Static || b.settings.Isolate }

// Name names the card, or all parts.
func (b *Backend) Name() string { return b.dev.Name() }

// Caps are those of the device.
func (b *Backend) Caps() engine.Caps { return b.dev.Caps() }

// Memory is that of all parts.
func (b *Backend) Memory() (total, free int64) { return b.dev.Memory() }

// Device is what is open, for checks of single operations.
func (b *Backend) Device() engine.Device { return b.dev }

// Kernels says what the kernels are and whether they are right on the card, and a sentence for each that is not.
func (b *Backend) Kernels() (summary string, wrong []string) {
	if k, ok := b.dev.(interface{ Trusted() (string, []string) }); ok {
		return k.Trusted()
	}
	return "", nil
}

// Room makes sure that the backend is what the model needs: the card where it has room for a context worth having; else, or
// where s.CPUExperts asks for it, several GPUs and the CPU together; where these have no room either, the card with a short
// context. Name, Caps and Memory may be others afterwards.
func (b *Backend) Room(spec models.Spec, s engine.Settings) (engine.Room, error) {
	o := placementOptions(spec, s)
	if b.placed != nil {
		if b.placed.spec.SameShape(spec) && b.placed.plan == o {
			return b.RoomHere(spec, s)
		}
		if err := b.reopen(); err != nil {
			return engine.Room{}, err
		}
	}
	if o.CPUExperts == 0 && b.holds(spec, o, UsableContext) {
		return b.RoomHere(spec, s)
	}
	name, short := b.dev.Name(), o.CPUExperts == 0 && b.holds(spec, o, shortContext)
	if err := b.dev.Close(); err != nil {
		return engine.Room{}, err
	}
	err := b.openSeveral(spec, o)
	if err == nil {
		return b.RoomHere(spec, s)
	}
	if again := b.openOne(context.Background()); again != nil {
		return engine.Room{}, errors.Join(err, again)
	}
	if short {
		return b.RoomHere(spec, s)
	}
	return engine.Room{}, fmt.Errorf("%s has no room for %s: %w", name, spec.Name, err)
}

// shortContext is better than no context.
const shortContext = 256

// holds tells whether the card has room for a model with the context that is asked for, or with so many tokens.
func (b *Backend) holds(spec models.Spec, o placement.Options, context int) bool {
	total, free := b.dev.Memory()
	if o.Context == 0 {
		o.Context = min(context, spec.MaxPosition)
	}
	o.CPUExperts = 0
	_, err := placement.For(spec, []placement.Card{{Total: total, Free: free}}, placement.Host{}, o)
	return err == nil
}

// reopen gives back what was placed, and opens one card.
func (b *Backend) reopen() error {
	if err := b.dev.Close(); err != nil {
		return err
	}
	return b.openOne(context.Background())
}

// RoomHere is the room on what is open, with nothing else opened.
func (b *Backend) RoomHere(spec models.Spec, s engine.Settings) (r engine.Room, err error) {
	s = s.On(b.dev)
	s.Pages = 1
	if r.Need, err = engine.PlanFor(spec, s); err != nil {
		return r, err
	}
	r.Total, r.Free = b.dev.Memory()
	r.Reserve = placement.Reserve
	if r.Beside, err = placement.Beside(spec, s); err != nil {
		return r, err
	}
	if d, ok := b.dev.(engine.Placer); ok {
		r.MostPages, err = d.MostPages(spec, s, s.GPUMemoryUtilization)
		if err == nil && r.MostPages == 0 {
			err = fmt.Errorf("%s has no room for a KV page beside the weights: lower --max-num-batched-tokens", b.dev.Name())
		}
	}
	return r, err
}

// Load loads a model onto what is open: Room was asked before.
func (b *Backend) Load(ctx context.Context, ckpt *checkpoint.Checkpoint, s engine.Settings, progress func(done, total int64)) (
	engine.Engine, error) {
	return engine.LoadOn(ctx, b.dev, ckpt, s, progress)
}

// Close gives everything back.
func (b *Backend) Close() error { return b.dev.Close() }

// placementOptions are what a plan over several devices depends on.
func placementOptions(spec models.Spec, s engine.Settings) placement.Options {
	if s.KVCacheDtype == "" {
		s.KVCacheDtype = "bf16"
		if s.Compute == engine.Exact {
			s.KVCacheDtype = "f32"
		}
	}
	return placement.Options{Context: min(s.MaxModelLen, spec.MaxPosition), Rows: s.MaxNumBatchedTokens, Logits: s.MaxNumSeqs,
		Compute: s.Compute, KV: s.KVCacheDtype, Dense: s.Dense, Plain: s.Deterministic, Utilization: s.GPUMemoryUtilization,
		CPUExperts: s.CPUExperts}
}

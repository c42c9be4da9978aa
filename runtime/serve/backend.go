// Where a model computes: on GPUs when they work and have room for it, else on the CPU, with one
// sentence that says why.
//
// What must stay true: who asks for a GPU by name gets it or an error; a backend that is not used
// is closed.

package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Open opens what the settings ask for. why is the reason for it; of the CPU where no GPU was asked
// for, it is what keeps a GPU from being used, "" on a machine without a GPU driver.
func Open(ctx context.Context, s engine.Settings, notify func(string)) (b engine.Backend,
	why string, err error) {
	if s.Device == "cpu" {
		b, err = openCPU(s, notify)
		return b, "asked for", err
	}
	asked := s.Device == "gpu" || len(s.GPUs) > 0
	g, err := gpu.Open(ctx, s, notify)
	switch {
	case err == nil && asked:
		return g, "asked for, and it works", nil
	case err == nil:
		return g, "a GPU that works", nil
	case asked:
		return nil, "", fmt.Errorf("%w. Use --device cpu", err)
	}
	if !errors.Is(err, gpu.ErrNone) {
		why = err.Error()
	}
	b, err = openCPU(s, notify)
	return b, why, err
}

// Hardware is the first usable GPU's name, how many have it, and the version of AMD's MEC firmware.
func Hardware(ctx context.Context) (name string, gpus, firmware int) {
	for _, g := range gpu.Detect(ctx).GPUs {
		switch {
		case !g.Usable:
		case gpus == 0:
			name, gpus, firmware = g.Name, 1, g.MECFirmware
		case g.Name == name:
			gpus++
		}
	}
	return name, gpus, firmware
}

func openCPU(s engine.Settings, notify func(string)) (engine.Backend, error) {
	if s.Isolate {
		notify(
			"--isolate has no effect: it is for GPUs, and the CPU computes here, in this process")
	}
	dev, err := cpu.New(s.Threads)
	if err != nil {
		return nil, err
	}
	return &host{engine.On(dev), dev}, nil
}

type host struct {
	engine.Backend
	device engine.Device
}

// HostDevice is the CPU of a backend, for checks and measurements; nil where GPUs compute.
func HostDevice(b engine.Backend) engine.Device {
	if h, ok := b.(*host); ok {
		return h.device
	}
	return nil
}

// Gauge measures what the hardware can do.
type Gauge interface {
	Bandwidth(data []byte) float64 // bytes a second of plain reads, all threads
	// 8-bit operations a second, all threads; 0 where that is not measured
	MultiplyPeak(spend time.Duration) float64
	MultiplyUnit() string // the instruction it counts
}

// GaugeOf is the gauge of a backend on which nothing is loaded yet: of a GPU it is read now.
func GaugeOf(ctx context.Context, b engine.Backend) (Gauge, error) {
	switch b := b.(type) {
	case *host:
		if g, ok := b.device.(Gauge); ok {
			return g, nil
		}
	case *gpu.Backend:
		rate, err := b.Bandwidth(ctx)
		return cardGauge(rate), err
	}
	return nil, fmt.Errorf("%s cannot measure its own limits", b.Name())
}

// cardGauge is what a copy inside a card's memory reached, in bytes a second: nothing else uses the
// card, so once is enough. Its products are not measured.
type cardGauge float64

func (g cardGauge) Bandwidth([]byte) float64         { return float64(g) }
func (cardGauge) MultiplyPeak(time.Duration) float64 { return 0 }
func (cardGauge) MultiplyUnit() string               { return "" }

func onGPU(b engine.Backend) bool { return b.Caps().Discrete }

// SettingsFor is what options come to on a backend.
func SettingsFor(b engine.Backend, o Options) engine.Settings { return settledFor(b, o).Settings }

// SettingsOnGPU is what options come to on a GPU with so much memory.
func SettingsOnGPU(memory int64, o Options) engine.Settings {
	return o.settle(true, memory).Settings
}

func settledFor(b engine.Backend, o Options) Settled {
	total, _ := b.Memory()
	return o.settle(onGPU(b), total)
}

func (m *Models) open() (engine.Backend, error) {
	s := m.options.Settings
	if m.together {
		s.Device, s.GPUs = "cpu", nil
	}
	b, why, err := Open(m.ctx, s, m.options.Notify)
	if err == nil && !onGPU(b) && why != "" && s.Device != "cpu" {
		m.sayCPU(why)
	}
	return b, err
}

func (m *Models) sayCPU(why string) { m.options.Notify("the CPU computes: " + why) }

// take gives the backend that was opened to look at the machine, or a new one.
func (m *Models) take() (engine.Backend, error) {
	m.mu.Lock()
	b := m.spare
	m.spare = nil
	m.mu.Unlock()
	if b != nil {
		return b, nil
	}
	return m.open()
}

// fit gives the backend that a model is loaded on, what it has room for, and the settings for it:
// b, or the CPU where auto may choose and the GPUs have no room. It closes b where it does not
// return it.
func (m *Models) fit(b engine.Backend, found checkpoint.Found, ckpt *checkpoint.Checkpoint) (
	engine.Backend, engine.Settings, engine.Room, error) {
	spec := ckpt.Spec
	s := settingsOf(b, found, spec, SettingsFor(b, m.options))
	s.Tunes = ckpt.Changed()
	r, err := b.Room(spec, s)
	if err == nil || !onGPU(b) {
		return b, s, r, err
	}
	given := m.options.Settings
	if failed := b.Close(); failed != nil {
		return nil, s, r, errors.Join(err, failed)
	}
	if given.Device == "gpu" || len(given.GPUs) > 0 || given.CPUExperts > 0 {
		return nil, s, r, fmt.Errorf("%w. Use --device cpu", err)
	}
	m.sayCPU(err.Error())
	if b, err = openCPU(given, m.options.Notify); err != nil {
		return nil, s, r, err
	}
	s = settingsOf(b, found, spec, SettingsFor(b, m.options))
	r, err = b.Room(spec, s)
	return b, s, r, err
}

// settingsOf are the settings with what depends on the model.
func settingsOf(b engine.Backend, found checkpoint.Found, spec models.Spec,
	s engine.Settings) engine.Settings {
	if found.Demo && s.MaxModelLen == 0 {
		s.MaxModelLen = demoContext
	}
	if s.Compute == "" {
		s.Compute = engine.Int8
		if found.Demo { // its measured answers are exact's
			s.Compute = engine.Exact
		}
	}
	s.Dense = DenseFor(spec, s, b.Caps())
	s.MaxLogits = max(s.MaxNumSeqs, min(s.Drafts+1, s.MaxNumBatchedTokens))
	return s
}

// roomHere is the room on what is open already.
func roomHere(b engine.Backend, spec models.Spec, s engine.Settings) (engine.Room, error) {
	if g, ok := b.(*gpu.Backend); ok {
		return g.RoomHere(spec, s)
	}
	return b.Room(spec, s)
}

// PlanOn is the plan of a load on what is open, or why there is none. Nothing is taken.
func PlanOn(b engine.Backend, found checkpoint.Found, spec models.Spec, s engine.Settings) (Plan,
	error) {
	s = settingsOf(b, found, spec, s)
	r, err := roomHere(b, spec, s)
	if err != nil {
		return Plan{}, err
	}
	return makePlan(spec, s, r)
}

// Needs is what a model of shape spec takes with one sequence of s.MaxModelLen tokens, bytes.
func Needs(b engine.Backend, found checkpoint.Found, spec models.Spec, s engine.Settings) (int64,
	error) {
	s = settingsOf(b, found, spec, s)
	r, err := roomHere(b, spec, s)
	pages := pagesFor(min(s.MaxModelLen, spec.MaxPosition), spec, s)
	return r.Need.Weights + r.Need.Scratch + r.Extra + int64(pages)*r.Need.PageBytes, err
}

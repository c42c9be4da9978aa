// Choice of the backend: GPUs if they work and have room for the model, else the CPU, with one
// sentence that says why.
//
// What must stay true: a GPU asked for by name is used, or the load fails; an unused backend is
// closed.

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

// Open opens the backend that the settings ask for. why is the reason for the choice; for an
// unrequested CPU it says what rules out the GPUs, "" without a GPU driver.
func Open(ctx context.Context, s engine.Settings, notify func(string)) (b engine.Backend,
	why string, err error) {
	if s.Device == "cpu" {
		b, err = openCPU(s, notify)
		return b, "asked for", err
	}
	explicit := s.Device == "gpu" || len(s.GPUs) > 0
	g, err := gpu.Open(ctx, s, notify)
	switch {
	case err == nil && explicit:
		return g, "asked for, and it works", nil
	case err == nil:
		return g, "a GPU that works", nil
	case explicit:
		return nil, "", fmt.Errorf("%w. Use --device cpu", err)
	}
	if !errors.Is(err, gpu.ErrNone) {
		why = err.Error()
	}
	b, err = openCPU(s, notify)
	return b, why, err
}

// Hardware returns the first usable GPU's name, how many have it, and its AMD MEC firmware version.
func Hardware(ctx context.Context) (name string, gpus, firmware int) {
	all := gpu.Detect(ctx).GPUs
	for _, usable := range [...]bool{true, false} {
		for _, g := range all {
			switch {
			case g.Usable != usable:
			case gpus == 0:
				name, gpus, firmware = g.Name, 1, g.MECFirmware
			case g.Name == name:
				gpus++
			}
		}
		if gpus > 0 {
			break
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

// HostDevice returns a backend's CPU device, for checks and measurements; nil on GPUs.
func HostDevice(b engine.Backend) engine.Device {
	if h, ok := b.(*host); ok {
		return h.device
	}
	return nil
}

// Gauge measures what the hardware can do.
type Gauge interface {
	Bandwidth(data []byte) float64 // bytes a second of plain reads, all threads
	// 8-bit operations a second, all threads; 0 if not measured
	MultiplyPeak(spend time.Duration) float64
	MultiplyUnit() string // the instruction it counts
}

// GaugeOf returns the gauge of a backend without a loaded model; a GPU is measured now.
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

// cardGauge is the copy bandwidth of a card's memory in bytes a second. One measurement is enough,
// since nothing else uses the card. Products are not measured.
type cardGauge float64

func (g cardGauge) Bandwidth([]byte) float64         { return float64(g) }
func (cardGauge) MultiplyPeak(time.Duration) float64 { return 0 }
func (cardGauge) MultiplyUnit() string               { return "" }

func onGPU(b engine.Backend) bool { return b.Caps().Discrete }

func SettingsFor(b engine.Backend, o Options) engine.Settings { return effectiveFor(b, o).Settings }

// SettingsOnGPU returns the settings of o with the defaults for a GPU with so much memory.
func SettingsOnGPU(memory int64, o Options) engine.Settings {
	return o.withDefaults(true, memory).Settings
}

func effectiveFor(b engine.Backend, o Options) EffectiveOptions {
	total, _ := b.Memory()
	return o.withDefaults(onGPU(b), total)
}

func (m *Models) openBackend() (engine.Backend, error) {
	s := m.options.Settings
	if m.oneEngine {
		s.Device, s.GPUs = "cpu", nil
	}
	b, why, err := Open(m.ctx, s, m.options.Notify)
	if err == nil && !onGPU(b) && why != "" && s.Device != "cpu" {
		m.reportCPU(why)
	}
	return b, err
}

func (m *Models) reportCPU(why string) { m.options.Notify("the CPU computes: " + why) }

// takeBackend returns the backend opened by New if it is still unused, or opens a new one.
func (m *Models) takeBackend() (engine.Backend, error) {
	m.mu.Lock()
	b := m.spare
	m.spare = nil
	m.mu.Unlock()
	if b != nil {
		return b, nil
	}
	return m.openBackend()
}

// fitBackend returns the backend to load the model on, its room and the settings: b, or the CPU if
// the choice is automatic and the GPUs have no room. It closes b unless it returns it.
func (m *Models) fitBackend(b engine.Backend, source checkpoint.Model,
	ckpt *checkpoint.Checkpoint) (engine.Backend, engine.Settings, engine.Room, error) {
	spec := ckpt.Spec
	s := modelSettings(b, source, spec, SettingsFor(b, m.options))
	s.Adapters = ckpt.Adapters
	r, err := b.Room(spec, s)
	if err == nil || !onGPU(b) {
		return b, s, r, err
	}
	requested := m.options.Settings
	if closeErr := b.Close(); closeErr != nil {
		return nil, s, r, errors.Join(err, closeErr)
	}
	if requested.Device == "gpu" || len(requested.GPUs) > 0 || requested.CPUExperts > 0 {
		return nil, s, r, fmt.Errorf("%w. Use --device cpu", err)
	}
	m.reportCPU(err.Error())
	if b, err = openCPU(requested, m.options.Notify); err != nil {
		return nil, s, r, err
	}
	s = modelSettings(b, source, spec, SettingsFor(b, m.options))
	r, err = b.Room(spec, s)
	return b, s, r, err
}

func modelSettings(b engine.Backend, source checkpoint.Model, spec models.Spec,
	s engine.Settings) engine.Settings {
	if source.Demo && s.MaxModelLen == 0 {
		s.MaxModelLen = demoContext
	}
	if s.Compute == "" {
		s.Compute = engine.Int8
		if source.Demo { // its measured answers are exact's
			s.Compute = engine.Exact
		}
	}
	s.Dense = DenseFor(spec, s, b.Caps())
	s.MaxLogits = max(s.MaxNumSeqs, min(s.Drafts+1, s.MaxNumBatchedTokens))
	return s
}

// currentRoom returns the room on the open devices, without opening others.
func currentRoom(b engine.Backend, spec models.Spec, s engine.Settings) (engine.Room, error) {
	if g, ok := b.(*gpu.Backend); ok {
		return g.RoomHere(spec, s)
	}
	return b.Room(spec, s)
}

// PlanOn plans loading a model on an open backend. No memory is allocated.
func PlanOn(b engine.Backend, source checkpoint.Model, spec models.Spec, s engine.Settings) (Plan,
	error) {
	s = modelSettings(b, source, spec, s)
	r, err := currentRoom(b, spec, s)
	if err != nil {
		return Plan{}, err
	}
	return makePlan(spec, s, r)
}

// Needs returns the bytes for a model of shape spec and one sequence of s.MaxModelLen tokens.
func Needs(b engine.Backend, source checkpoint.Model, spec models.Spec, s engine.Settings) (int64,
	error) {
	s = modelSettings(b, source, spec, s)
	r, err := currentRoom(b, spec, s)
	pages := pagesFor(min(s.MaxModelLen, spec.MaxPosition), spec, s)
	return r.Need.Weights + r.Need.Scratch + r.Extra + int64(pages)*r.Need.PageBytes, err
}

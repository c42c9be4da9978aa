package engine

import (
	"context"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

// The seam above the devices: Backend loads models, Engine is a loaded one. Serving, benchmarks,
// goldens and checks know these two interfaces only.

// Engine is a loaded model. Several goroutines may call it; steps run one after the other.
type Engine interface {
	Spec() models.Spec  // the model's shape
	Settings() Settings // the settings in force, defaults filled in
	Plan() Plan         // the memory in use
	Caps() Caps         // the abilities of its device

	// Step runs a batch and fills logits [len(LogitRows), vocab]. A cancelled context is noticed
	// before the step, not during it: a step that has begun runs to its end. If the batch itself is
	// invalid, nothing has run and the engine stays usable.
	Step(ctx context.Context, b *Batch, logits []float32) error
	// Queue, Sample and Wait together run a step whose tokens are sampled on the device; see
	// SamplingStep.
	Queue(ctx context.Context, b *Batch, from []int32) error
	Sample(choices []SamplingParams) error
	Wait(chosen []SampledToken) error

	// Cache is the KV pool: page i is at i*Plan().PageBytes.
	Cache() Region
	// Measure runs a batch like Step, and times every operation of it.
	Measure(ctx context.Context, b *Batch, logits []float32) ([]Timing, error)
	// Tap reads the first rows rows of a tap of the last step, as the device stored them.
	Tap(name string, rows int) ([]byte, error)

	// Close frees everything that the engine took. It may be called more than once.
	Close() error
}

// Backend loads models: onto the CPU (On) or GPUs (package gpu).
type Backend interface {
	Name() string // for people: "cpu, 2 threads, avx2"
	Caps() Caps
	// Memory returns the size of the memory and the free part of it, in bytes.
	Memory() (total, free int64)
	// Room is the input of a memory plan for a model; an error says why the model cannot run here.
	Room(spec models.Spec, s Settings) (Room, error)
	// Load loads a checkpoint, which must stay open until the engine is closed. progress, or nil,
	// gets the bytes copied so far and the total. Cancelling ctx ends the load between tensors.
	Load(ctx context.Context, ckpt *checkpoint.Checkpoint, s Settings,
		progress func(done, total int64)) (Engine, error)
	// Close gives the devices back. Engines must have been closed before.
	Close() error
}

// Room is the input of a memory plan of one model, in bytes.
type Room struct {
	Need  Plan  // the model's memory, with one KV page
	Total int64 // of a device with a memory of its own, used or not; 0: the memory is the host's
	Free  int64
	// Extra is the memory of steps in addition to Need: logits, block tables, buffers for sampling.
	Extra int64
	// Reserve is how much of Free stays unused if no utilization is set; 0: as much as the planner
	// leaves to a host.
	Reserve int64
	// MostPages is how many KV pages fit on each of several devices after everything else; 0: the
	// sizes above decide.
	MostPages int
	// OnDisk is how much of Need.Weights need not be in memory: it is in mapped files, and each
	// step uses a part of it.
	OnDisk int64
}

// On is the backend of a device of this process: models are loaded onto it here.
func On(dev Device) Backend { return host{dev} }

type host struct{ Device }

// Room includes the scheduler's logits for a step in which every sequence decodes.
func (h host) Room(spec models.Spec, s Settings) (Room, error) {
	s = s.On(h.Device)
	s.Pages = 1
	need, err := PlanFor(spec, s)
	_, free := h.Memory()
	return Room{Need: need, Free: free, Extra: int64(s.Seqs(s.Rows())) * int64(spec.Vocab) * 4,
		OnDisk: need.Experts}, err
}

func (h host) Load(ctx context.Context, ckpt *checkpoint.Checkpoint, s Settings,
	progress func(done, total int64)) (Engine, error) {
	eng, err := load(ctx, h.Device, ckpt, s, progress)
	if err != nil {
		return nil, err // never a nil *InProcess in an interface that is not nil
	}
	return eng, nil
}

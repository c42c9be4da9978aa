package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// The GPUs of this process (which may be the worker): one card, or several for one model.

// UsableContext is the shortest context, in tokens, with which a model fits on a card.
const UsableContext = 8192

type local struct {
	settings engine.Settings
	notify   func(line string)
	dev      engine.Device
	card     *device.Card // nil with several devices
	placed   placedModel  // with several devices
}

// placedModel is a model that several devices were planned for.
type placedModel struct {
	spec     models.Spec
	settings engine.Settings
}

func openLocal(ctx context.Context, s engine.Settings, notify func(line string)) (worker.Local,
	error) {
	l := &local{settings: s, notify: notify}
	if err := l.openOne(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// openOne opens the settings' first GPU, or the first that works.
func (l *local) openOne(ctx context.Context) error {
	c, err := device.OpenCard(l.settings.GPUs)
	if err != nil {
		return err
	}
	if ProofFolder != "" {
		c.Verify(ctx, ProofFolder)
	}
	l.dev, l.card = c, c
	for _, line := range multi.WrongOn(c) {
		l.notify(line)
	}
	return nil
}

func (l *local) openSeveral(spec models.Spec, s engine.Settings) error {
	open := s
	open.GPUs, open.Threads = l.settings.GPUs, l.settings.Threads
	dev, err := multi.Open(context.Background(), spec, open, ProofFolder, l.notify)
	if err != nil {
		return err
	}
	l.dev, l.card, l.placed = dev, nil, placedModel{spec, s}
	return nil
}

func (l *local) Name() string                { return l.dev.Name() }
func (l *local) Caps() engine.Caps           { return l.dev.Caps() }
func (l *local) Memory() (total, free int64) { return l.dev.Memory() }
func (l *local) Several() bool               { return l.card == nil }
func (l *local) Close() error                { return l.dev.Close() }

// Kernels describes the card's kernels, with a sentence for each that is wrong.
func (l *local) Kernels() (summary string, wrong []string) {
	if l.card == nil {
		return "", nil
	}
	return l.card.Verified()
}

// Room opens the devices that the model needs; see Backend.
func (l *local) Room(spec models.Spec, s engine.Settings) (engine.Room, error) {
	o := placementSettings(spec, s)
	if l.card == nil {
		if l.placed.spec.SameShape(spec) && reflect.DeepEqual(l.placed.settings, o) {
			return l.RoomHere(spec, s)
		}
		if err := l.reopen(); err != nil {
			return engine.Room{}, err
		}
	}
	if o.CPUExperts == 0 && l.hasRoom(spec, s, UsableContext) {
		return l.RoomHere(spec, s)
	}
	name, short := l.dev.Name(), o.CPUExperts == 0 && l.hasRoom(spec, s, shortContext)
	if err := l.dev.Close(); err != nil {
		return engine.Room{}, err
	}
	err := l.openSeveral(spec, o)
	if err == nil {
		return l.RoomHere(spec, s)
	}
	if reopenErr := l.openOne(context.Background()); reopenErr != nil {
		return engine.Room{}, errors.Join(err, reopenErr)
	}
	if short {
		return l.RoomHere(spec, s)
	}
	return engine.Room{}, fmt.Errorf("%s has too little memory for %s: %w", name, spec.Name, err)
}

// shortContext is better than no context.
const shortContext = 256

// hasRoom reports whether the open card has room for a model with the requested context, or with
// context tokens if none is requested.
func (l *local) hasRoom(spec models.Spec, s engine.Settings, context int) bool {
	r, err := l.RoomHere(spec, s)
	if err != nil {
		return false
	}
	if s.MaxModelLen > 0 {
		context = s.MaxModelLen
	}
	pages := kv.PagesOf(min(context, spec.MaxPosition), s.Rows(), spec.Window,
		engine.WindowPages(s.KVCacheDtype))
	need := r.Need.Weights + r.Need.Scratch + r.Extra + int64(pages)*r.Need.PageBytes
	return need <= multi.Room(r.Total, r.Free, s.GPUMemoryUtilization)
}

func (l *local) reopen() error {
	if err := l.dev.Close(); err != nil {
		return err
	}
	return l.openOne(context.Background())
}

func (l *local) RoomHere(spec models.Spec, s engine.Settings) (r engine.Room, err error) {
	if r, err = engine.On(l.dev).Room(spec, s); err != nil {
		return r, err
	}
	r.Total, _ = l.dev.Memory()
	r.Reserve, r.OnDisk = multi.Reserve, 0
	var unit kernels.Unit // several devices count theirs themselves, below
	if l.card != nil {
		unit = l.card.Unit()
	}
	if r.Extra, err = device.Extra(spec, s.On(l.dev), unit); err != nil {
		return r, err
	}
	if d, ok := l.dev.(engine.Placer); ok {
		r.MostPages, err = d.MostPages(spec, s, s.GPUMemoryUtilization)
		if err == nil && r.MostPages == 0 {
			err = fmt.Errorf("%s has no memory for a KV page beside the weights: lower "+
				"--max-num-batched-tokens", l.dev.Name())
		}
	}
	return r, err
}

func (l *local) Load(ctx context.Context, ckpt *checkpoint.Checkpoint, s engine.Settings,
	progress func(done, total int64)) (engine.Engine, error) {
	return engine.On(l.dev).Load(ctx, ckpt, s, progress)
}

// placementSettings are the settings that a plan over several devices depends on.
func placementSettings(spec models.Spec, s engine.Settings) engine.Settings {
	if s.Compute == "" { // on a GPU the default mode rounds
		s.KVCacheDtype = cmp.Or(s.KVCacheDtype, "bf16")
	}
	return engine.Settings{MaxModelLen: min(s.MaxModelLen, spec.MaxPosition),
		MaxNumBatchedTokens: s.MaxNumBatchedTokens,
		MaxNumSeqs:          s.MaxNumSeqs, Compute: s.Compute, KVCacheDtype: s.CacheType(),
		Dense:         s.Dense,
		Deterministic: s.Deterministic, GPUMemoryUtilization: s.GPUMemoryUtilization,
		CPUExperts: s.CPUExperts}
}

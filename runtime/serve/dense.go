// Default type of a model's dense weights (attention and unembedding): 8 bits on a CPU if that
// saves enough, from a copy made in the background. Until the copy is complete the released weights
// are used.
//
// What must stay true: a turn uses one type of weights from start to end; the copy is made only
// while no turn runs; without a copy the model is only slower, and one notice says so.

package serve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched"
)

// minCopySaving is the least a copy must save of every token's reads, in bytes. Tests change it.
var minCopySaving int64 = 256 << 20

// checkInterval is how often a copy in use is compared with its checksums. Tests change it.
var checkInterval = 24 * time.Hour

const (
	// maxReloadTokens is how many tokens a model may have computed to be reloaded at once for its
	// copy: its prefix cache is lost.
	maxReloadTokens = 2048
	// minIdle is how long any other model must have had no turn.
	minIdle = 10 * time.Minute
)

// DenseFolder is the default folder of 8-bit copies.
func DenseFolder() string { return filepath.Join(xdg.CacheHome, "ossrun", "dense") }

// DenseFor returns the dense type for a shape. Exact products keep the released weights.
func DenseFor(spec models.Spec, s engine.Settings, caps engine.Caps) string {
	_, saves := q8.Size(spec)
	switch {
	case s.Dense != "":
		return s.Dense
	case caps.Discrete || !caps.DenseQ8 || s.Compute == engine.Exact || saves < minCopySaving:
		return engine.DenseBF16
	}
	return engine.DenseQ8
}

// DefaultsFor returns the default settings for a model of shape spec.
func DefaultsFor(b engine.Backend, source checkpoint.Model, spec models.Spec) engine.Settings {
	return modelSettings(b, source, spec, SettingsFor(b, DefaultOptions()))
}

// initialDense returns the settings and room to load a model with now: those of the released
// weights if they fit and the copy is missing and unrequested; copyable: it can be made later.
func initialDense(b engine.Backend, list []copySource, requested, s engine.Settings,
	r engine.Room) (_ engine.Settings, _ engine.Room, copyable bool) {
	if requested.Dense != "" || s.Dense != engine.DenseQ8 || hasCopies(list, s.DenseCache) {
		return s, r, false
	}
	spec, released := list[0].ckpt.Spec, s
	released.Dense = engine.DenseBF16
	room, err := b.Room(spec, released)
	if err != nil {
		return s, r, false
	}
	room.Free = r.Free
	if p, err := makePlan(spec, released, room); err != nil || p.OnDisk > 0 {
		return s, r, false // only the copy has room: it is made now
	}
	// without file change times, no later start would recognise the copy
	return released, room, !slices.ContainsFunc(list,
		func(c copySource) bool { return len(c.FileStates().Files) == 0 })
}

// background is the work for later starts that is done for a loaded model while no turn runs.
type background struct {
	copies string // folder of the 8-bit copy in the making; "" if none is made
	stop   context.CancelFunc
	done   chan struct{}
}

// backgroundTask is one such work. waitIdle waits until no turn runs; its error ends the task.
type backgroundTask func(ctx context.Context, waitIdle func() error)

// end cancels the work and waits for it; b may be nil.
func (b *background) end() {
	if b != nil {
		b.stop()
		<-b.done
	}
}

// copyDense makes the copy of a loaded model, then reloads the model with it.
func (m *Models) copyDense(model *Model, list []copySource, folder string) backgroundTask {
	notify, source := m.options.NotifyBackground, list[0].Model
	return func(ctx context.Context, waitIdle func() error) {
		var err error
		for _, c := range list {
			if err == nil {
				err = q8.Make(c.ckpt, folder, waitIdle)
			}
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			notify(fmt.Sprintf("%s keeps its released dense weights, since their 8-bit copy "+
				"cannot be made: %s; --dense bf16 asks for no copy", source.Name, err))
		case !hasCopies(list, folder) || !model.ckpt.Mapped():
			// files just written have no record yet, and reading those of a GGUF file takes half a
			// minute: the next load uses the copy
			notify(fmt.Sprintf("the 8-bit copy of %s is made; the next start uses it", source.Name))
		default:
			m.loaded.reload(ctx, keyOf(source), model,
				func() bool { return model.Stats().Rows <= maxReloadTokens }, minIdle,
				func(err error) {
					switch {
					case m.ctx.Err() != nil:
					case err != nil:
						notify(fmt.Sprintf("loading %s again, with 8-bit dense weights: %s",
							source.Name, err))
					default:
						notify(source.Name + " has 8-bit dense weights now, which it reads " +
							"faster; --dense bf16 keeps the released ones")
					}
				})
		}
	}
}

// orderWeights writes a GGUF model's weights in the released order.
func (m *Models) orderWeights(model *Model, source checkpoint.Model) backgroundTask {
	notify := m.options.NotifyBackground
	return func(ctx context.Context, waitIdle func() error) {
		if source.Ordered() != "" {
			return // the load of another adapter has written them
		}
		switch err := model.ckpt.WriteOrdered(waitIdle); {
		case ctx.Err() != nil:
		case err != nil:
			notify(fmt.Sprintf("each start puts the weights of %s in order, since they cannot be "+
				"kept so: %s; ossrun import %s --out FOLDER writes a checkpoint where there is "+
				"room", source.Name, err, source.Path))
		default:
			notify(fmt.Sprintf("the weights of %s are kept in order now, for the next start; "+
				"ossrun rm %s deletes that copy only", source.Name, source.Path))
		}
	}
}

// checkDerived verifies the copies of a loaded model once a day. A damaged one is reported, and the
// model is reloaded without it, which makes a new copy. Without a part of an import that fails: its
// source may be gone, and wrong answers are worse than none.
func (m *Models) checkDerived(model *Model, list []copySource, folder string) backgroundTask {
	notify, source := m.options.NotifyBackground, list[0].Model
	checked := false
	return func(ctx context.Context, waitIdle func() error) {
		for {
			report, err := "the ordered copy of %s is made again: %s", error(nil)
			if source.IsImport() {
				report = "a part of the import %s is put aside: %s; repeat its ossrun import, " +
					"which writes that part again"
			}
			if !checked || model.plan.OnDisk == 0 { // later only where the file is in memory
				err = source.CheckOrdered(waitIdle)
				checked = true
			}
			for _, c := range list {
				if err == nil {
					report = "the 8-bit copy of %s is made again: %s"
					err = q8.Check(q8.Ready(c.Model, folder), waitIdle)
				}
			}
			if errors.Is(err, derived.ErrStays) { // loading the model again would change nothing
				notify(fmt.Sprintf("answers of %s may be wrong: %s", source.Name, err))
				return
			}
			if errors.Is(err, derived.ErrDamaged) {
				notify(fmt.Sprintf(report, source.Name, err))
				m.loaded.reload(ctx, keyOf(source), model, func() bool { return true }, minIdle,
					func(err error) {
						if err != nil && m.ctx.Err() == nil {
							notify(fmt.Sprintf("loading %s again, without the damaged copy: %s",
								source.Name, err))
						}
					})
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(checkInterval):
			}
		}
	}
}

// startBackground runs tasks for a loaded model, one after the other, until the model is closed.
func (m *Models) startBackground(model *Model, copies string, tasks []backgroundTask) {
	ctx, stop := context.WithCancel(m.ctx)
	model.background = &background{copies, stop, make(chan struct{})}
	go func() {
		defer close(model.background.done)
		defer stop()
		for _, task := range tasks {
			task(ctx, func() error {
				m.loaded.mu.Lock()
				defer m.loaded.mu.Unlock()
				m.loaded.waitAllTurns(ctx)
				return ctx.Err()
			})
		}
	}()
}

// Dense is the type of a loaded model's dense weights, "" if servers compute it.
func (m *Model) Dense() string { return m.dense }

// denseLine describes the dense type for people; "" for the released weights.
func (m *Model) denseLine() string {
	switch {
	case m.dense == engine.DenseQ8:
		return "dense weights: in 8 bits; --dense bf16 keeps the released ones"
	case m.background != nil && m.background.copies != "":
		size, _ := q8.Size(m.ckpt.Spec)
		return fmt.Sprintf("dense weights: as released (bf16) until their 8-bit copy is made "+
			"(%s in %s) while nothing runs; --dense q8 makes it before the first answer, "+
			"--dense bf16 makes none", gb(size), m.background.copies)
	}
	return ""
}

// reload reloads a model once it has no turn and isLight allows it, or it was idle for minIdle. ctx
// ends the waiting. done gets the load's error.
func (s *loadedSet) reload(ctx context.Context, key string, model loadedModel, isLight func() bool,
	minIdle time.Duration, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		e, changed := s.entries[key], s.changed
		if s.closed || e == nil || e.model != model || e.unloading || ctx.Err() != nil {
			return
		}
		idle := time.Since(e.lastUsed)
		if e.turns == 0 && (idle >= minIdle || isLight()) {
			s.unloadAfterTurns(e)
			s.work.Go(func() {
				if err := s.ensure(context.Background(), key); !errors.Is(err, sched.ErrClosed) {
					done(err)
				}
			})
			return
		}
		wait := minIdle // at most: the end of a turn wakes waitFor
		if e.turns == 0 {
			wait -= idle
		}
		bounded, cancel := context.WithTimeout(ctx, wait)
		_ = s.waitFor(bounded, func() bool { return s.changed != changed }) // whatever ended it
		cancel()
	}
}

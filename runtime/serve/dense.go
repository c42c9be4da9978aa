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
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched"
)

// minCopySaving is the least a copy must save of every token's reads, in bytes. Tests change it.
var worthACopy int64 = 256 << 20

// checkInterval is how often a copy in use is compared with its checksums. Tests change it.
var checkEvery = 24 * time.Hour

const (
	// maxReloadTokens is how many tokens a model may have computed to be reloaded at once for its
	// copy: its prefix cache is lost.
	lightWork = 2048
	// minIdle is how long any other model must have had no turn.
	restBefore = 10 * time.Minute
)

// DenseFolder is the default folder of 8-bit copies.
func DenseFolder() string { return filepath.Join(xdg.CacheHome, "ossrun", "dense") }

// DenseFor returns the dense type for a shape. Exact products keep the released weights.
func DenseFor(spec models.Spec, s engine.Settings, caps engine.Caps) string {
	_, saves := q8.Size(spec)
	switch {
	case s.Dense != "":
		return s.Dense
	case caps.Discrete || !caps.DenseQ8 || s.Compute == engine.Exact || saves < worthACopy:
		return engine.DenseBF16
	}
	return engine.DenseQ8
}

// DefaultsFor returns the default settings for a model of shape spec.
func DefaultsFor(b engine.Backend, found checkpoint.Found, spec models.Spec) engine.Settings {
	return settingsOf(b, found, spec, SettingsFor(b, DefaultOptions()))
}

// initialDense returns the settings and room to load a model with now. An unrequested, missing copy
// means the released weights, if they have room; copyable reports whether it can be made later.
func denseNow(b engine.Backend, list []copied, asked, s engine.Settings,
	r engine.Room) (_ engine.Settings, _ engine.Room, copyable bool) {
	if asked.Dense != "" || s.Dense != engine.DenseQ8 || readyCopies(list, s.DenseCache) {
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
		func(c copied) bool { return len(c.FileStates().Files) == 0 })
}

// background is the work for later starts that is done for a loaded model while no turn runs.
type behind struct {
	copies string // folder of the 8-bit copy in the making; "" if none is made
	stop   context.CancelFunc
	done   chan struct{}
}

// backgroundTask is one such work; waitIdle waits until no turn runs, and its error ends the task.
type workBehind func(ctx context.Context, rest func() error)

// end cancels the work and waits for it; b may be nil.
func (b *behind) end() {
	if b != nil {
		b.stop()
		<-b.done
	}
}

// copyDense makes the copy of a loaded model, then reloads the model with it.
func (m *Models) copyDense(model *Model, list []copied, folder string) workBehind {
	later, found := m.options.Later, list[0].Found
	return func(ctx context.Context, rest func() error) {
		var err error
		for _, c := range list {
			if err == nil {
				err = q8.Make(c.ckpt, folder, rest)
			}
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			later(fmt.Sprintf("%s keeps its released dense weights, since their 8-bit copy "+
				"cannot be made: %s; --dense bf16 asks for no copy", found.Name, err))
		case !readyCopies(list, folder) || !model.ckpt.Mapped():
			// files just written have no record yet, and reading those of a GGUF file takes half a
			// minute: the next load uses the copy
			later(fmt.Sprintf("the 8-bit copy of %s is made; the next start uses it", found.Name))
		default:
			m.loaded.renew(ctx, keyOf(found), model,
				func() bool { return model.Stats().Rows <= lightWork }, restBefore,
				func(err error) {
					switch {
					case m.ctx.Err() != nil:
					case err != nil:
						later(fmt.Sprintf("loading %s again, with 8-bit dense weights: %s",
							found.Name, err))
					default:
						later(found.Name + " has 8-bit dense weights now, which it reads faster; " +
							"--dense bf16 keeps the released ones")
					}
				})
		}
	}
}

// orderWeights writes a GGUF model's weights in the released order.
func (m *Models) order(model *Model, found checkpoint.Found) workBehind {
	later := m.options.Later
	return func(ctx context.Context, rest func() error) {
		if found.Ordered() != "" {
			return // the load of another adapter has written them
		}
		switch err := model.ckpt.Order(rest); {
		case ctx.Err() != nil:
		case err != nil:
			later(fmt.Sprintf("each start puts the weights of %s in order, since they cannot be "+
				"kept so: %s; ossrun import %s --out FOLDER writes a checkpoint where there is "+
				"room", found.Name, err, found.Path))
		default:
			later(fmt.Sprintf("the weights of %s are kept in order now, for the next start; "+
				"ossrun rm %s deletes that copy only", found.Name, found.Path))
		}
	}
}

// checkDense verifies the copy of a loaded model once a day. A damaged one is reported, and the
// model is reloaded without it, which makes a new copy.
func (m *Models) checkDense(model *Model, list []copied, folder string) workBehind {
	later, found := m.options.Later, list[0].Found
	return func(ctx context.Context, rest func() error) {
		for {
			var err error
			for _, c := range list {
				if err == nil {
					err = q8.Check(q8.Ready(c.Found, folder), rest)
				}
			}
			if errors.Is(err, q8.ErrDamaged) {
				later(fmt.Sprintf("the 8-bit copy of %s is made again: %s", found.Name, err))
				m.loaded.renew(ctx, keyOf(found), model, func() bool { return true }, restBefore,
					func(err error) {
						if err != nil && m.ctx.Err() == nil {
							later(fmt.Sprintf("loading %s again, without the damaged copy: %s",
								found.Name, err))
						}
					})
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(checkEvery):
			}
		}
	}
}

// startBackground runs tasks for a loaded model, one after the other, until the model is closed.
func (m *Models) doBehind(model *Model, copies string, works []workBehind) {
	ctx, stop := context.WithCancel(m.ctx)
	model.behind = &behind{copies, stop, make(chan struct{})}
	go func() {
		defer close(model.behind.done)
		defer stop()
		for _, work := range works {
			work(ctx, func() error {
				m.loaded.mu.Lock()
				defer m.loaded.mu.Unlock()
				m.loaded.awaitAll(ctx)
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
	case m.behind != nil && m.behind.copies != "":
		size, _ := q8.Size(m.ckpt.Spec)
		return fmt.Sprintf("dense weights: as released (bf16) until their 8-bit copy is made "+
			"(%s in %s) while nothing runs; --dense q8 makes it before the first answer, "+
			"--dense bf16 makes none", gb(size), m.behind.copies)
	}
	return ""
}

// reload reloads a model once it has no turn and isLight allows it, or it was idle for minIdle. ctx
// ends the waiting. done gets the load's error.
func (s *loadedSet) renew(ctx context.Context, key string, model loadedModel, light func() bool,
	rest time.Duration, told func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		e, changed := s.entries[key], s.changed
		if s.closed || e == nil || e.model != model || e.leaving || ctx.Err() != nil {
			return
		}
		rested := time.Since(e.used)
		if e.turns == 0 && (rested >= rest || light()) {
			s.unloadAfterTurns(e)
			s.work.Go(func() {
				if err := s.ensure(context.Background(), key); !errors.Is(err, sched.ErrClosed) {
					told(err)
				}
			})
			return
		}
		wait := rest // the end of a turn wakes waitFor earlier
		if e.turns == 0 {
			wait -= rested
		}
		soon, cancel := context.WithTimeout(ctx, wait)
		_ = s.await(soon, func() bool { return s.changed != changed }) // whatever ended it
		cancel()
	}
}

// The loaded models: each is loaded by the first request for it, unloaded after an idle time, and
// evicted for another one if both do not fit.
//
//	unloaded -> loading -> ready -> leaving -> unloaded
//
// What must stay true: a turn never loses its model, so a leaving model is closed only after its
// last turn; loads and closes are serial, so each load sees the real free memory; requests for a
// loading or leaving model wait, but never longer than another client's turns take to make room; a
// batch evicts no model that was used lately.

package serve

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// loadedModel is a *Model; tests use scripted ones.
type loadedModel interface {
	Start(ctx context.Context, r session.Request) (session.Turn, error)
	Close() error
}

// errNoRoom is returned, wrapped, by loadedSet.load for a model that does not fit next to the
// others.
var errNoRoom = errors.New("not enough memory beside the loaded models")

// errInUse lets a batch wait: its model would evict one that was used within recentUse.
var errInUse error = &session.BusyError{RetryAfter: time.Minute}

const recentUse = 5 * time.Minute

// maxLoadedModels is how many models stay loaded, besides adapters with names of their own.
const maxLoadedModels = 2

// loadedSet is the models of one process. It is safe for concurrent use.
type loadedSet struct {
	// load loads the model of key while others stay loaded. Calls are serial.
	load      func(key string, loaded []loadedModel) (loadedModel, error)
	keepAlive time.Duration // idle time before unloading; below 0: for ever
	maxLoaded int           // models loaded at once

	// loading is a semaphore for one load or close. A mutex would not work with the fake clock of
	// tests.
	loading chan struct{}
	work    sync.WaitGroup // running loads and closes

	mu      sync.Mutex
	entries map[string]*entry
	closed  bool          // new turns are refused
	stopped bool          // all waiters return
	changed chan struct{} // closed and replaced after each change of entries
}

// entry is a model that is not Unloaded. loadedSet.mu guards its fields.
type entry struct {
	key        string
	model      loadedModel // nil: loading, or failed with err
	err        error
	unloading  bool
	background bool // all requests for it were of batches
	turns      int  // running
	waiting    int  // requests waiting for the load; they become turns with it
	lastUsed   time.Time
	idle       *time.Timer // nil: not running
	until      time.Time   // end of idle
}

func newLoadedSet(load func(string, []loadedModel) (loadedModel, error),
	keepAlive time.Duration) *loadedSet {
	return &loadedSet{load: load, keepAlive: keepAlive, maxLoaded: maxLoadedModels,
		loading: make(chan struct{}, 1), entries: map[string]*entry{}, changed: make(chan struct{})}
}

// waitFor waits until cond holds, ctx ends (its error) or the set stops (sched.ErrClosed). s.mu is
// held, but not while it waits.
func (s *loadedSet) waitFor(ctx context.Context, cond func() bool) error {
	for !cond() {
		switch {
		case s.stopped:
			return sched.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	return nil
}

// wakeWaiters wakes all waitFor calls; s.mu is held.
func (s *loadedSet) wakeWaiters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// start starts a turn of the model of key, or of its adapter (from 1), loading it if necessary. The
// error is that of the load, of Model.Start, sched.ErrClosed, or ctx's.
func (s *loadedSet) start(ctx context.Context, key string, adapter int, r session.Request) (
	session.Turn, error) {
	for mayRetry := true; ; mayRetry = false {
		e, err := s.acquire(ctx, key, r.Share != nil && r.Share.Background)
		if err != nil {
			return nil, err
		}
		model := e.model
		if adapter > 0 {
			model = model.(*Model).adapterModel(adapter)
		}
		t, err := model.Start(ctx, r)
		if err == nil {
			return s.holdModel(ctx, e, t), nil
		}
		s.mu.Lock()
		broken := errors.Is(err, sched.ErrClosed) && !s.closed
		if broken {
			s.unloadAfterTurns(e) // its engine could not be restarted
		}
		s.mu.Unlock()
		s.release(e)
		if !broken || !mayRetry {
			return nil, err
		}
	}
}

func (s *loadedSet) ensure(ctx context.Context, key string) error {
	e, err := s.acquire(ctx, key, false)
	if err == nil {
		s.release(e)
	}
	return err
}

// acquire waits until the model is loaded and keeps it until release. Waiters for a load hold the
// model from the start (loadEntry), so that it cannot be evicted before they are served.
func (s *loadedSet) acquire(ctx context.Context, key string, background bool) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		e := s.entries[key]
		if e == nil {
			e = &entry{key: key, background: true}
			s.entries[key] = e
			s.work.Go(func() { s.loadEntry(e) })
		}
		e.background = e.background && background
		switch {
		case e.unloading:
			unloaded := func() bool { return s.entries[key] != e }
			if err := s.waitFor(ctx, unloaded); err != nil {
				return nil, err
			}
		case e.model != nil:
			e.turns++
			s.stopIdleTimer(e)
			return e, nil
		default:
			e.waiting++
			err := s.waitFor(ctx, func() bool { return e.model != nil || e.err != nil })
			if e.model != nil {
				return e, nil
			}
			e.waiting--
			if e.err != errInUse || background {
				return nil, cmp.Or(err, e.err)
			}
		}
	}
	return nil, sched.ErrClosed
}

func (s *loadedSet) release(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.turns--
	e.lastUsed = time.Now()
	s.startIdleTimer(e)
	s.wakeWaiters()
}

// startIdleTimer starts the idle timer of an unused model; s.mu is held.
func (s *loadedSet) startIdleTimer(e *entry) {
	if e.turns > 0 || e.unloading || e.model == nil || e.idle != nil || s.keepAlive < 0 ||
		s.closed {
		return
	}
	e.until = time.Now().Add(s.keepAlive)
	var clock *time.Timer
	clock = time.AfterFunc(s.keepAlive, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.idle == clock && !s.closed { // not stopped meanwhile
			e.idle = nil
			s.unloadAfterTurns(e)
		}
	})
	e.idle = clock
}

func (s *loadedSet) stopIdleTimer(e *entry) {
	if e.idle != nil {
		e.idle.Stop()
		e.idle = nil
	}
}

// unloadAfterTurns closes a model after its last turn, in the background; s.mu is held.
func (s *loadedSet) unloadAfterTurns(e *entry) {
	if e.unloading {
		return
	}
	e.unloading = true
	s.stopIdleTimer(e)
	s.work.Go(func() {
		if s.waitTurns(e) != nil {
			return // drain closes it
		}
		s.loading <- struct{}{}
		defer func() { <-s.loading }()
		s.remove(e)
	})
}

// waitTurns waits until e has no turn; its error means that the set ended first.
func (s *loadedSet) waitTurns(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitFor(context.Background(), func() bool { return e.turns == 0 })
}

// remove closes a model and deletes its entry; s.loading is held.
func (s *loadedSet) remove(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.key] != e {
		return
	}
	s.mu.Unlock()
	_ = e.model.Close() // a retry would free no more
	s.mu.Lock()
	delete(s.entries, e.key)
	s.wakeWaiters()
}

// loadEntry loads a model, evicting others if necessary.
func (s *loadedSet) loadEntry(e *entry) {
	s.loading <- struct{}{}
	defer func() { <-s.loading }()
	model, err := s.loadWithRoom(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.model, e.err, e.lastUsed = model, err, time.Now(); err != nil {
		delete(s.entries, e.key)
	} else {
		e.turns, e.waiting = e.waiting, 0
		s.startIdleTimer(e)
	}
	s.wakeWaiters()
}

// loadWithRoom loads a model. While there is no room, it evicts the least recently used one.
func (s *loadedSet) loadWithRoom(e *entry) (loadedModel, error) {
	for {
		loaded, oldest, closed := s.otherModels(e)
		err := errNoRoom
		if len(loaded) < s.maxLoaded {
			if closed {
				return nil, sched.ErrClosed
			}
			var m loadedModel
			if m, err = s.load(e.key, loaded); err == nil {
				return m, nil
			}
		}
		if !errors.Is(err, errNoRoom) || oldest == nil {
			return nil, err
		}
		s.mu.Lock()
		if e.background && (oldest.turns > 0 || time.Since(oldest.lastUsed) < recentUse) {
			s.mu.Unlock()
			return nil, errInUse
		}
		oldest.unloading = true // no new turn; the running ones end
		s.stopIdleTimer(oldest)
		s.mu.Unlock()
		if err := s.waitTurns(oldest); err != nil {
			return nil, err
		}
		s.remove(oldest)
	}
}

// otherModels lists the other loaded models, and the least recently used one of them.
func (s *loadedSet) otherModels(e *entry) (models []loadedModel, oldest *entry, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := func(e *entry) time.Time {
		if e.turns > 0 {
			return time.Now()
		}
		return e.lastUsed
	}
	for _, candidate := range s.entries {
		if candidate == e || candidate.model == nil {
			continue
		}
		models = append(models, candidate.model)
		if oldest == nil || used(candidate).Before(used(oldest)) {
			oldest = candidate
		}
	}
	return models, oldest, s.closed
}

// drain refuses new turns (start returns sched.ErrClosed) and waits for the running ones until ctx
// ends. Then it ends them and closes every model. It returns how many turns it had to end.
func (s *loadedSet) drain(ctx context.Context) (cut int, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, nil
	}
	s.closed = true
	for _, e := range s.entries {
		s.stopIdleTimer(e)
	}
	cut = s.waitAllTurns(ctx)
	s.stopped = true
	s.wakeWaiters()
	s.mu.Unlock()
	s.work.Wait()
	s.mu.Lock()
	entries := s.entries
	s.entries = nil
	s.mu.Unlock()
	for _, e := range entries {
		err = errors.Join(err, e.model.Close())
	}
	return cut, err
}

// waitAllTurns waits until no turn runs or ctx ends, and returns how many still run; s.mu is held.
func (s *loadedSet) waitAllTurns(ctx context.Context) (turns int) {
	_ = s.waitFor(ctx, func() bool { // turns says enough
		turns = 0
		for _, e := range s.entries {
			turns += e.turns
		}
		return turns == 0
	})
	return turns
}

func (s *loadedSet) close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.drain(now)
	return err
}

func (s *loadedSet) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.turns > 0 || e.waiting > 0 {
			return true
		}
	}
	return false
}

type State string

const (
	Unloaded  State = "unloaded"
	Loading   State = "loading"
	Ready     State = "ready"
	Unloading State = "leaving" // no new turn; it is closed after the last one
	// Unreachable: none of the servers that generate its tokens answers
	Unreachable State = "unreachable"
)

type loadedState struct {
	state State
	model loadedModel // nil if not loaded
	until time.Time   // when it is unloaded if it stays idle; zero: not planned
}

func (s *loadedSet) stateOf(key string) loadedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := s.entries[key]; {
	case e == nil:
		return loadedState{state: Unloaded}
	case e.model == nil:
		return loadedState{state: Loading}
	case e.unloading:
		return loadedState{state: Unloading, model: e.model}
	case e.idle != nil:
		return loadedState{Ready, e.model, e.until}
	default:
		return loadedState{state: Ready, model: e.model}
	}
}

// holdModel holds the model of a turn until the turn has ended or its client is gone.
func (s *loadedSet) holdModel(ctx context.Context, e *entry, t session.Turn) session.Turn {
	release := sync.OnceFunc(func() { s.release(e) })
	stop := context.AfterFunc(ctx, release)
	return session.OnDone(t, func(session.Done) {
		stop()
		release()
	})
}

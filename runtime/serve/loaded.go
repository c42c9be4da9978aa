// The models that are loaded: each is loaded when the first request asks for it, unloaded when
// nobody has asked for a while, and makes room for another one when both do not fit.
//
//	absent -> loading -> ready -> leaving -> absent
//
// What must stay true: a turn never loses its model, so a model that leaves is closed only after
// its last turn; models are loaded and closed one after the other, so each load sees the memory as
// it is; requests for a model that is loading or leaving wait, and no request waits for another
// client's turns longer than it takes to make room.

package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// loadedModel is a *Model; tests have scripts in its place.
type loadedModel interface {
	Start(ctx context.Context, r session.Request) (session.Turn, error)
	Close() error
}

// errNoRoom is returned, wrapped, by loadedSet.load for a model that does not fit beside the
// others.
var errNoRoom = errors.New("not enough memory beside the loaded models")

// mostLoaded is how many models are loaded at once.
const mostLoaded = 2

// loadedSet is the models of one process. It is safe for concurrent use.
type loadedSet struct {
	// load loads the model that key names beside others, which stay loaded. It is called for one
	// model at a time.
	load      func(key string, others []loadedModel) (loadedModel, error)
	keepAlive time.Duration // how long a model without a turn stays loaded; below 0: for ever

	// loading holds one value while a model is loaded or closed. It is no mutex, so that tests can
	// run on a clock of their own.
	loading chan struct{}
	ending  chan struct{}
	work    sync.WaitGroup // loads and closes under way

	mu      sync.Mutex
	entries map[string]*entry
	closed  bool
	changed chan struct{} // closed and made anew when a turn ends
}

// entry is one model that is not absent. Its fields are under loadedSet.mu, but for the channels.
type entry struct {
	key     string
	ready   chan struct{} // closed when model or err is there
	gone    chan struct{} // closed when the entry is out of the set
	model   loadedModel
	err     error
	leaving bool
	turns   int // that run
	waiting int // requests that wait for it to be loaded; each becomes a turn when it is
	used    time.Time
	idle    *time.Timer // nil: not running
	until   time.Time   // when idle ends
}

// newLoadedSet makes a set without a model in it.
func newLoadedSet(load func(string, []loadedModel) (loadedModel, error),
	keepAlive time.Duration) *loadedSet {
	return &loadedSet{load: load, keepAlive: keepAlive, loading: make(chan struct{}, 1),
		ending: make(chan struct{}), entries: map[string]*entry{}, changed: make(chan struct{})}
}

// start starts a turn of the model that key names, which it loads first where it is not loaded. The
// error is that of the load, of Model.Start, sched.ErrClosed, or ctx's.
func (s *loadedSet) start(ctx context.Context, key string, r session.Request) (session.Turn,
	error) {
	for again := true; ; again = false {
		e, err := s.acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		t, err := e.model.Start(ctx, r)
		if err == nil {
			return s.follow(ctx, e, t), nil
		}
		broken := errors.Is(err, sched.ErrClosed) && !s.isClosed()
		if broken {
			s.expel(e) // its engine could not be started again
		}
		s.release(e)
		if !broken || !again {
			return nil, err
		}
	}
}

// ensure loads a model without starting a turn.
func (s *loadedSet) ensure(ctx context.Context, key string) error {
	e, err := s.acquire(ctx, key)
	if err == nil {
		s.release(e)
	}
	return err
}

// acquire waits until the model is there and holds it until release. Whoever waits for a load holds
// the model from the moment it is there (bring), so that it cannot leave for another before they
// have been served.
func (s *loadedSet) acquire(ctx context.Context, key string) (*entry, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, sched.ErrClosed
		}
		e := s.entries[key]
		if e == nil {
			e = &entry{key: key, ready: make(chan struct{}), gone: make(chan struct{})}
			s.entries[key] = e
			s.work.Go(func() { s.bring(e) })
		}
		switch {
		case e.leaving:
			s.mu.Unlock()
			if err := s.await(ctx, e.gone); err != nil {
				return nil, err
			}
			continue
		case e.model != nil:
			e.turns++
			s.wake(e)
			s.mu.Unlock()
			return e, nil
		}
		e.waiting++
		s.mu.Unlock()
		err := s.await(ctx, e.ready)
		s.mu.Lock()
		held := e.model != nil
		if !held {
			e.waiting--
			if err == nil {
				err = e.err
			}
		}
		s.mu.Unlock()
		if err == nil {
			return e, nil
		}
		if held {
			s.release(e)
		}
		return nil, err
	}
}

// await waits for done, ctx's end or the set's, and says which it was: nil, ctx's error or
// sched.ErrClosed.
func (s *loadedSet) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ending:
		return sched.ErrClosed
	}
}

// release ends what acquire began.
func (s *loadedSet) release(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.turns--
	e.used = time.Now()
	s.rest(e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// rest starts the clock of a model that nobody uses; s.mu is held.
func (s *loadedSet) rest(e *entry) {
	if e.turns > 0 || e.leaving || e.model == nil || e.idle != nil || s.keepAlive < 0 || s.closed {
		return
	}
	e.until = time.Now().Add(s.keepAlive)
	var clock *time.Timer
	clock = time.AfterFunc(s.keepAlive, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.idle == clock && !s.closed { // nobody has stopped it meanwhile
			e.idle = nil
			s.leave(e)
		}
	})
	e.idle = clock
}

// wake stops that clock; s.mu is held.
func (s *loadedSet) wake(e *entry) {
	if e.idle != nil {
		e.idle.Stop()
		e.idle = nil
	}
}

// expel makes a model leave after its last turn.
func (s *loadedSet) expel(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(e)
}

// leave is expel under s.mu.
func (s *loadedSet) leave(e *entry) {
	if e.leaving {
		return
	}
	e.leaving = true
	s.wake(e)
	s.work.Go(func() {
		if !s.awaitTurns(e) {
			return // drain closes it
		}
		s.loading <- struct{}{}
		defer func() { <-s.loading }()
		s.remove(e)
	})
}

// awaitTurns waits until e has no turn; false when the set ends before.
func (s *loadedSet) awaitTurns(e *entry) bool {
	for {
		s.mu.Lock()
		turns, changed := e.turns, s.changed
		s.mu.Unlock()
		if turns == 0 {
			return true
		}
		select {
		case <-changed:
		case <-s.ending:
			return false
		}
	}
}

// remove closes a model and takes it out; s.loading is held.
func (s *loadedSet) remove(e *entry) {
	s.mu.Lock()
	if s.entries[e.key] != e {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	_ = e.model.Close() // what could not be freed cannot be freed by trying again
	s.mu.Lock()
	delete(s.entries, e.key)
	close(e.gone)
	s.mu.Unlock()
}

// bring loads a model, and makes room for it where it has to.
func (s *loadedSet) bring(e *entry) {
	s.loading <- struct{}{}
	defer func() { <-s.loading }()
	model, err := s.makeRoomFor(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.model, e.err, e.used = model, err, time.Now()
	if err != nil {
		delete(s.entries, e.key)
		close(e.gone)
	} else {
		e.turns, e.waiting = e.waiting, 0
		s.rest(e)
	}
	close(e.ready)
}

// makeRoomFor loads a model. While it has no room, the model that was used least recently leaves.
func (s *loadedSet) makeRoomFor(e *entry) (loadedModel, error) {
	for {
		others, oldest := s.others(e)
		err := errNoRoom
		if len(others) < mostLoaded {
			if s.isClosed() {
				return nil, sched.ErrClosed
			}
			var m loadedModel
			if m, err = s.load(e.key, others); err == nil {
				return m, nil
			}
		}
		if !errors.Is(err, errNoRoom) || oldest == nil {
			return nil, err
		}
		s.mu.Lock()
		oldest.leaving = true // no new turn; the running ones end
		s.wake(oldest)
		s.mu.Unlock()
		if !s.awaitTurns(oldest) {
			return nil, sched.ErrClosed
		}
		s.remove(oldest)
	}
}

// others lists the other models that are loaded, and the one of them that was used least recently.
func (s *loadedSet) others(e *entry) (models []loadedModel, oldest *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.entries {
		if other == e || other.model == nil {
			continue
		}
		models = append(models, other.model)
		used := func(e *entry) time.Time {
			if e.turns > 0 {
				return time.Now()
			}
			return e.used
		}
		if oldest == nil || used(other).Before(used(oldest)) {
			oldest = other
		}
	}
	return models, oldest
}

func (s *loadedSet) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// drain lets no new turn in (start returns sched.ErrClosed), waits for the running ones until ctx
// ends, ends what is left then, and closes every model. It returns how many turns it had to end.
func (s *loadedSet) drain(ctx context.Context) (cut int, err error) {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	for _, e := range s.entries {
		s.wake(e)
	}
	s.mu.Unlock()
	if again {
		return 0, nil
	}
	cut = s.awaitAll(ctx)
	close(s.ending) // whoever waits for a model goes
	s.work.Wait()
	s.mu.Lock()
	var models []loadedModel
	for key, e := range s.entries {
		models = append(models, e.model)
		delete(s.entries, key)
		close(e.gone)
	}
	s.mu.Unlock()
	for _, m := range models {
		err = errors.Join(err, m.Close())
	}
	return cut, err
}

// awaitAll waits until no turn runs, or ctx ends, and returns how many do then.
func (s *loadedSet) awaitAll(ctx context.Context) int {
	for {
		s.mu.Lock()
		turns := 0
		for _, e := range s.entries {
			turns += e.turns
		}
		changed := s.changed
		s.mu.Unlock()
		if turns == 0 {
			return 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return turns
		}
	}
}

// close ends everything at once.
func (s *loadedSet) close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.drain(now)
	return err
}

// busy tells whether a turn runs or waits for its model.
func (s *loadedSet) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.turns > 0 || e.waiting > 0 {
			return true
		}
	}
	return false
}

// State of a loaded model.
type State string

const (
	Unloaded State = "unloaded"
	Loading  State = "loading"
	Ready    State = "ready"
	Leaving  State = "leaving" // no new turn; it is closed after the last one
)

// loadedState is one model of the set.
type loadedState struct {
	key   string
	state State
	model loadedModel // nil while it is loading
	until time.Time   // when it is unloaded if nobody asks for it; zero: not planned
}

// states lists the models that are not absent, by their keys.
func (s *loadedSet) states() []loadedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]loadedState, 0, len(s.entries))
	for _, e := range s.entries {
		st := loadedState{key: e.key, state: Ready, model: e.model}
		switch {
		case e.model == nil:
			st.state = Loading
		case e.leaving:
			st.state = Leaving
		case e.idle != nil:
			st.until = e.until
		}
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b loadedState) int { return strings.Compare(a.key, b.key) })
	return list
}

// find is the loaded model of a key, nil where it is not loaded.
func (s *loadedSet) find(key string) loadedModel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		return e.model
	}
	return nil
}

// heldTurn is a turn that holds its model until it has ended, or until its client is gone and reads
// no further.
type heldTurn struct {
	session.Turn
	done func()
}

// Sampled is what session.Sampled asks for.
func (t *heldTurn) Sampled() []int32 { return session.Sampled(t.Turn) }

// follow releases the model of a turn once.
func (s *loadedSet) follow(ctx context.Context, e *entry, t session.Turn) session.Turn {
	once := sync.OnceFunc(func() { s.release(e) })
	stop := context.AfterFunc(ctx, once)
	return &heldTurn{t, func() {
		stop()
		once()
	}}
}

// Next gives the model back with the last event.
func (t *heldTurn) Next() (session.Event, bool) {
	e, ok := t.Turn.Next()
	if _, last := e.(session.Done); last || !ok {
		t.done()
	}
	return e, ok
}

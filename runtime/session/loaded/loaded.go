// Package loaded keeps models ready to answer: a model is loaded when the first request asks for it, unloaded when nobody has
// asked for a while, and makes room for another one when both do not fit.
//
//	absent -> loading -> ready -> leaving -> absent
//
// What must stay true: a turn never loses its model, so one that is leaving is closed only after its last turn; models are
// loaded and closed one after the other, so each load sees the memory as it is; requests for a model that is loading or
// leaving wait, and no request waits for another client's turns longer than it takes to make room.
package loaded

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Model is a loaded model: *session.Model, or a script in tests.
type Model interface {
	ID() string
	Device() string
	ContextLength() int
	Plan() session.Plan
	Created() time.Time
	Stats() sched.Stats
	Start(ctx context.Context, r session.Request) (session.Turn, error)
	Close() error
}

// ErrNoRoom is returned, wrapped, by Options.Load for a model that does not fit beside the others.
var ErrNoRoom = errors.New("not enough memory beside the loaded models")

// Options say what a Set holds.
type Options struct {
	// Load loads the model that key names, beside others that stay loaded. It is called for one model at a time.
	Load func(key string, beside []Model) (Model, error)
	// KeepAlive is how long a model without a turn stays loaded; below 0: for ever.
	KeepAlive time.Duration
	// Most models are loaded at once; 0: 2.
	Most int
}

// Set is the models of one process. It is safe for concurrent use.
type Set struct {
	o       Options
	loading chan struct{} // holds one while a model is loaded or closed; a channel, so that tests can run on a clock of their own
	ending  chan struct{}
	work    sync.WaitGroup // loads and closes under way

	mu      sync.Mutex
	entries map[string]*entry
	closed  bool
	changed chan struct{} // closed and made anew when a turn ends
}

// entry is one model that is not absent. Its fields are under Set.mu, but for the channels.
type entry struct {
	key     string
	ready   chan struct{} // closed when model or err is there
	gone    chan struct{} // closed when the entry is out of the set
	model   Model
	err     error
	leaving bool
	turns   int // that run
	waiting int // requests that wait for it to be loaded; each becomes a turn when it is
	used    time.Time
	idle    *time.Timer // nil: not running
	until   time.Time   // when idle ends
}

// New makes a set without a model in it.
func New(o Options) *Set {
	if o.Most == 0 {
		o.Most = 2
	}
	return &Set{o: o, loading: make(chan struct{}, 1), ending: make(chan struct{}), entries: map[string]*entry{}, changed: make(chan struct{})}
}

// Start starts a turn of the model that key names, which it loads if need be. The error is that of the load, of
// Model.Start, sched.ErrClosed, or ctx's.
func (s *Set) Start(ctx context.Context, key string, r session.Request) (session.Turn, error) {
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

// Ensure loads a model without starting a turn.
func (s *Set) Ensure(ctx context.Context, key string) error {
	e, err := s.acquire(ctx, key)
	if err == nil {
		s.release(e)
	}
	return err
}

// acquire waits until the model is there and holds it until release. Whoever waits for a load holds the model from the moment it
// is there (bring), so that it cannot leave for another before they have been served.
func (s *Set) acquire(ctx context.Context, key string) (*entry, error) {
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

// await waits for done, ctx's end or the set's, and says which it was: nil, ctx's error or sched.ErrClosed.
func (s *Set) await(ctx context.Context, done <-chan struct{}) error {
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
func (s *Set) release(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.turns--
	e.used = time.Now()
	s.rest(e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// rest starts the clock of a model that nobody uses; s.mu is held.
func (s *Set) rest(e *entry) {
	if e.turns > 0 || e.leaving || e.model == nil || e.idle != nil || s.o.KeepAlive < 0 || s.closed {
		return
	}
	e.until = time.Now().Add(s.o.KeepAlive)
	var clock *time.Timer
	clock = time.AfterFunc(s.o.KeepAlive, func() {
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
func (s *Set) wake(e *entry) {
	if e.idle != nil {
		e.idle.Stop()
		e.idle = nil
	}
}

// expel makes a model leave after its last turn.
func (s *Set) expel(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(e)
}

// leave is expel under s.mu.
func (s *Set) leave(e *entry) {
	if e.leaving {
		return
	}
	e.leaving = true
	s.wake(e)
	s.work.Go(func() {
		if !s.awaitTurns(e) {
			return // Drain closes it
		}
		s.loading <- struct{}{}
		defer func() { <-s.loading }()
		s.remove(e)
	})
}

// awaitTurns waits until e has no turn; false when the set ends before.
func (s *Set) awaitTurns(e *entry) bool {
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
func (s *Set) remove(e *entry) {
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
func (s *Set) bring(e *entry) {
	s.loading <- struct{}{}
	defer func() { <-s.loading }()
	model, err := s.load(e)
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

func (s *Set) load(e *entry) (Model, error) {
	for {
		beside, oldest := s.beside(e)
		var err error = ErrNoRoom
		if len(beside) < s.o.Most {
			if s.isClosed() {
				return nil, sched.ErrClosed
			}
			var m Model
			if m, err = s.o.Load(e.key, beside); err == nil {
				return m, nil
			}
		}
		if !errors.Is(err, ErrNoRoom) || oldest == nil {
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

// beside lists the other models that are loaded, and the one of them that was used least recently.
func (s *Set) beside(e *entry) (models []Model, oldest *entry) {
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

func (s *Set) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Drain lets no new turn in (Start returns sched.ErrClosed), waits for the running ones until ctx ends, ends what is left
// then, and closes every model. It returns how many turns it had to end.
func (s *Set) Drain(ctx context.Context) (cut int, err error) {
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
	var models []Model
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
func (s *Set) awaitAll(ctx context.Context) int {
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

// Close ends everything at once.
func (s *Set) Close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Drain(now)
	return err
}

// The set over scripted models: which are loaded when, who waits for whom, and that nothing leaks.

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine loads scripted models into an amount of memory.
type machine struct {
	t    *testing.T
	room int // units of memory; a model takes as many as its key is long
	slow time.Duration
	fail map[string]error

	mu     sync.Mutex
	events []string
	used   int
}

func (m *machine) note(format string, a ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, fmt.Sprintf(format, a...))
}

func (m *machine) load(key string, others []loadedModel) (loadedModel, error) {
	time.Sleep(m.slow)
	m.mu.Lock()
	if err := m.fail[key]; err != nil {
		m.mu.Unlock()
		return nil, err
	}
	used := m.used
	if used+len(key) > m.room {
		m.mu.Unlock()
		if len(others) == 0 && used > 0 {
			m.t.Error("memory is used and nobody is there")
		}
		return nil, fmt.Errorf("%s: %w", key, errNoRoom)
	}
	m.used += len(key)
	m.mu.Unlock()
	m.note("load %s", key)
	return &fakeModel{machine: m, key: key, Model: sessiontest.Model{Script: sessiontest.Ends}}, nil
}

type fakeModel struct {
	machine *machine
	key     string

	sessiontest.Model

	mu     sync.Mutex
	broken bool
	closed bool
}

func (f *fakeModel) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.broken {
		return nil, sched.ErrClosed
	}
	return f.Model.Start(ctx, r)
}

func (f *fakeModel) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.machine.t.Errorf("%s is closed twice", f.key)
	}
	f.closed = true
	f.machine.mu.Lock()
	f.machine.used -= len(f.key)
	f.machine.mu.Unlock()
	if f.Active() > 0 {
		f.machine.note("cut %s", f.key)
	}
	f.machine.note("close %s", f.key)
	return nil
}

func start(t *testing.T, s *loadedSet, key string) session.Turn {
	t.Helper()
	turn, err := s.start(t.Context(), key, 0, session.Request{})
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return turn
}

// size is how many models are not absent.
func (s *loadedSet) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

func (m *machine) want(t *testing.T, events ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if got, want := fmt.Sprint(m.events), fmt.Sprint(events); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// after lets fake time pass, and then wants events.
func (m *machine) after(t *testing.T, d time.Duration, events ...string) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	m.want(t, events...)
}

func TestManyRequestsOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 4, slow: time.Second}
		s := newLoadedSet(m.load, -1)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { start(t, s, "aa").Next() })
		}
		wg.Wait()
		m.after(t, 1000*time.Hour, "load aa") // for ever means for ever
		if err := s.close(); err != nil {
			t.Error(err)
		}
		m.want(t, "load aa", "close aa")
		if _, err := s.start(t.Context(), "aa", 0, session.Request{}); !errors.Is(err,
			sched.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestIdleModelIsUnloadedAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 4}
		s := newLoadedSet(m.load, time.Minute)
		defer s.close()
		turn := start(t, s, "aa")
		m.after(t, time.Hour, "load aa") // a long turn is no idleness
		turn.Next()
		m.after(t, 59*time.Second, "load aa")
		if st := s.stateOf("aa"); s.size() != 1 || time.Until(st.until) != time.Second ||
			st.state != Ready {
			t.Errorf("%+v", st)
		}
		start(t, s, "aa").Next() // restarts the minute
		m.after(t, 59*time.Second, "load aa")
		m.after(t, 2*time.Second, "load aa", "close aa")
		if st := s.stateOf("aa"); st.model != nil || st.state != Unloaded || s.size() != 0 {
			t.Error("it is still listed")
		}
		start(t, s, "aa").Next()
		m.want(t, "load aa", "close aa", "load aa")
	})
}

func TestTwoStayWhereTheyFit(t *testing.T) {
	m := &machine{t: t, room: 100}
	s := newLoadedSet(m.load, -1)
	start(t, s, "a").Next()
	start(t, s, "bb").Next()
	start(t, s, "a").Next()
	m.want(t, "load a", "load bb")
	start(t, s, "ccc").Next() // never three: the least recently used goes
	m.want(t, "load a", "load bb", "close bb", "load ccc")
	hosttest.Check(t, s.close())
}

// A batch's model is loaded beside one in use where both fit; else its requests are busy until that
// has been idle for a while. A live request for the batch's model, at any time, is served.
func TestABatchEvictsNoModelInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 5, slow: time.Second}
		s := newLoadedSet(m.load, -1)
		ask := func(key string) error {
			turn, err := s.start(t.Context(), key, 0, session.Request{
				Share: &sched.Share{Background: true}})
			if err == nil {
				turn.Next()
			}
			return err
		}
		busy := func(key string) {
			t.Helper()
			if _, ok := errors.AsType[*session.BusyError](ask(key)); !ok {
				t.Errorf("%s is not busy", key)
			}
		}
		hosttest.Check(t, ask("aaa"))
		hosttest.Check(t, ask("bb")) // beside it
		long := start(t, s, "aaa")
		m.after(t, 2*recentUse, "load aaa", "load bb")
		hosttest.Check(t, ask("cc")) // instead of the idle one
		busy("ddd")
		kept := []string{"load aaa", "load bb", "close bb", "load cc"}
		m.after(t, time.Second, kept...)
		long.Next()
		m.after(t, recentUse-2*time.Second, kept...)
		busy("ddd")
		m.after(t, recentUse, kept...)
		hosttest.Check(t, ask("ddd"))
		m.want(t, append(kept, "close cc", "close aaa", "load ddd")...)
		var work sync.WaitGroup
		work.Go(func() { hosttest.Check(t, ask("eee")) }) // served with the other
		synctest.Wait()                                   // for its try to load
		work.Go(func() { start(t, s, "eee").Next() })
		work.Wait()
		m.want(t, append(kept, "close cc", "close aaa", "load ddd", "close ddd", "load eee")...)
		hosttest.Check(t, s.close())
	})
}

func TestSwapWaitsForTheTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 3}
		s := newLoadedSet(m.load, -1)
		long := start(t, s, "aa")
		swapped := make(chan session.Turn)
		go func() { swapped <- start(t, s, "bbb") }()
		synctest.Wait()
		old, next := s.stateOf("aa"), s.stateOf("bbb")
		if s.size() != 2 || old.state != Unloading || next.state != Loading {
			t.Errorf("%+v %+v", old, next)
		}
		back := make(chan session.Turn)
		go func() { back <- start(t, s, "aa") }() // comes after the swap, not before it
		synctest.Wait()
		m.want(t, "load aa")
		long.Next()
		b := <-swapped
		m.want(t, "load aa", "close aa", "load bbb")
		synctest.Wait()
		m.want(t, "load aa", "close aa", "load bbb")
		b.Next()
		(<-back).Next()
		m.want(t, "load aa", "close aa", "load bbb", "close bbb", "load aa")
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFailedLoadIsSaidAndTriedAgain(t *testing.T) {
	damaged := errors.New("damaged")
	m := &machine{t: t, room: 9, fail: map[string]error{"aa": damaged}}
	s := newLoadedSet(m.load, -1)
	defer s.close()
	if _, err := s.start(t.Context(), "aa", 0, session.Request{}); !errors.Is(err, damaged) {
		t.Errorf("%v", err)
	}
	if _, err := s.start(t.Context(), "much too large", 0, session.Request{}); !errors.Is(err,
		errNoRoom) {
		t.Errorf("%v", err)
	}
	delete(m.fail, "aa")
	start(t, s, "aa").Next()
}

func TestBrokenModelIsLoadedAnew(t *testing.T) {
	m := &machine{t: t, room: 9}
	s := newLoadedSet(m.load, -1)
	defer s.close()
	start(t, s, "aa").Next()
	s.stateOf("aa").model.(*fakeModel).broken = true
	start(t, s, "aa").Next()
	m.want(t, "load aa", "close aa", "load aa")
}

func TestClientThatLeavesGivesTheModelBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 9, slow: time.Minute}
		s := newLoadedSet(m.load, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.start(ctx, "aa", 0, session.Request{}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		m.after(t, time.Minute, "load aa") // the load goes on: the next one will want it
		gone, leave := context.WithCancel(t.Context())
		hosttest.Must(s.start(gone, "aa", 0, session.Request{}))(t)
		leave() // and never calls Next
		m.after(t, 2*time.Hour, "load aa", "cut aa", "close aa")
		if s.size() != 0 {
			t.Error("the turn of a client that is gone keeps the model")
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 9}
		s := newLoadedSet(m.load, time.Minute)
		quick, slow := start(t, s, "a"), start(t, s, "bb")
		_ = slow
		time.AfterFunc(10*time.Second, func() { quick.Next() })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		cut, err := s.drain(ctx)
		if cut != 1 || err != nil || time.Since(began) != 30*time.Second {
			t.Errorf("%d were cut after %v, %v", cut, time.Since(began), err)
		}
		if cut, err := s.drain(ctx); cut != 0 || err != nil {
			t.Errorf("again: %d, %v", cut, err)
		}
	})
}

// Whatever comes in whatever order, memory is never overrun (machine.load refuses), nothing is
// closed twice and everything is closed in the end.
func TestAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 5, slow: time.Millisecond}
		s := newLoadedSet(m.load, 20*time.Millisecond)
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i*7919%400) * time.Millisecond)
				turn := start(t, s, []string{"a", "bb", "ccc", "dddd"}[i*31%4])
				time.Sleep(time.Duration(i*104729%30) * time.Millisecond)
				turn.Next()
			})
		}
		wg.Wait()
		if cut, err := s.drain(t.Context()); cut != 0 || err != nil {
			t.Errorf("%d cut, %v", cut, err)
		}
		if m.used != 0 {
			t.Errorf("%d units are still taken", m.used)
		}
	})
}

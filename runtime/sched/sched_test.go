package sched

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start makes a scheduler over a simulated engine and closes it with the test.
func start(t testing.TB, o Options) (*Scheduler, *simtest.Engine) {
	t.Helper()
	if o.Pages == 0 {
		o.Pages = 512
	}
	if o.MaxNumBatchedTokens == 0 {
		o.MaxNumBatchedTokens = 512
	}
	sim := newSim(o, 97, 128)
	s := New(sim, o)
	t.Cleanup(func() {
		s.Close()
		if s.pool.Used() != 0 {
			t.Errorf("%d pages are lost", s.pool.Used())
		}
	})
	return s, sim
}

// again is r with a constraint of its own.
func again(r TokenRequest) TokenRequest {
	if c, ok := r.Constraint.(*simtest.Constraint); ok {
		r.Constraint = c.Again()
	}
	return r
}

func submit(t testing.TB, s *Scheduler, ctx context.Context, r TokenRequest) *Stream {
	t.Helper()
	st, err := s.Submit(ctx, again(r))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func drain(t testing.TB, st *Stream) (ids []int32) {
	t.Helper()
	for {
		tok, ok := st.Next(t.Context())
		if !ok {
			return ids
		}
		ids = append(ids, tok.ID)
	}
}

func prompt(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i * 7 % 97)
	}
	return p
}

func TestStopIDIsDelivered(t *testing.T) {
	s, sim := start(t, Options{})
	r := TokenRequest{Prompt: prompt(5), MaxTokens: 20}
	free, _ := alone(sim, s.o.MaxModelLen, r)
	r.Stop = []int32{free[6].ID}
	st := submit(t, s, t.Context(), r)
	got := drain(t, st)
	end := slices.IndexFunc(free, func(t Token) bool { return t.ID == free[6].ID })
	if len(got) != end+1 || got[end] != free[6].ID || st.Finish() != FinishStop || st.Err() != nil {
		t.Fatalf("%v, %q, %v", got, st.Finish(), st.Err())
	}
	if _, ok := st.Next(t.Context()); ok {
		t.Fatal("a token after the end")
	}
}

func TestIgnoreEOS(t *testing.T) {
	s, _ := start(t, Options{})
	for _, c := range []struct {
		stop   int32
		ignore bool
		want   int
	}{{3, false, 1}, {3, true, 5},
		{9, true, 1}} { // 3 ends the model's text, 9 is a stop of the request alone
		p := sample.Params{LogitBias: map[int32]float32{c.stop: 100}, IgnoreEOS: c.ignore}
		got := drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3), MaxTokens: 5,
			Stop: []int32{c.stop}, Params: p}))
		if len(got) != c.want {
			t.Errorf("stop %d, ignore %v: %v", c.stop, c.ignore, got)
		}
	}
}

// Forced tokens come first, count as generated, and a stop id among them ends the request as a
// sampled one would.
func TestForced(t *testing.T) {
	s, _ := start(t, Options{Settings: engine.Settings{MaxNumBatchedTokens: 4}})
	for _, c := range []struct {
		forced []int32
		most   int
		want   int
		finish FinishReason
	}{
		{[]int32{1, 2, 5}, 6, 6, FinishLength},
		{[]int32{1, 2, 5}, 3, 3, FinishLength},
		{[]int32{1, 2, 5}, 2, 2, FinishLength},
		{[]int32{1, 9, 5}, 6, 2, FinishStop},
	} {
		st := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(9),
			Constraint: &simtest.Constraint{First: c.forced}, MaxTokens: c.most, Stop: []int32{9}})
		var got []Token
		for tok, ok := st.Next(t.Context()); ok; tok, ok = st.Next(t.Context()) {
			got = append(got, tok)
		}
		if len(got) != c.want || st.Finish() != c.finish {
			t.Errorf("%v, most %d: %v, %q", c.forced, c.most, got, st.Finish())
		}
		for i, tok := range got {
			if tok.Forced != (i < len(c.forced)) || tok.Forced && tok.ID != c.forced[i] {
				t.Errorf("token %d is %+v", i, tok)
			}
		}
	}
}

func TestContextLength(t *testing.T) {
	s, _ := start(t, Options{Settings: engine.Settings{Pages: 11, MaxModelLen: 1000}})
	if s.o.MaxModelLen != 6*32 { // 6 full pages and the 5 that a window of 128 can touch
		t.Fatalf("context %d", s.o.MaxModelLen)
	}
	_, err := s.Submit(t.Context(), TokenRequest{Prompt: prompt(190),
		Constraint: &simtest.Constraint{First: prompt(2)}})
	var long *ContextLengthError
	if !errors.As(err, &long) || long.Max != 192 || long.Needed != 193 {
		t.Fatalf("%v", err)
	}
	st := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(180), MaxTokens: 1000})
	if got := drain(t, st); len(got) != 12 || st.Finish() != FinishLength {
		t.Fatalf("%d tokens, %q", len(got), st.Finish())
	}
	if st := s.Stats(); st.PagesPeak > 11 || st.PagesTotal != 11 {
		t.Fatalf("%+v", st)
	}
}

func TestBadRequests(t *testing.T) {
	s, _ := start(t, Options{})
	for _, r := range []TokenRequest{
		{}, {Prompt: []int32{97}}, {Prompt: []int32{-1}}, {Prompt: prompt(1),
			Constraint: &simtest.Constraint{First: []int32{97}}}, {Prompt: prompt(1),
			MaxTokens: -1},
		{Prompt: prompt(1), Params: sample.Params{Temperature: -1}},
	} {
		if _, err := s.Submit(t.Context(), again(r)); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
}

// gate holds the engine inside a step until the test lets it go.
type gate struct{ in, out chan struct{} }

func (g *gate) hold(sim *simtest.Engine, at int) {
	g.in, g.out = make(chan struct{}), make(chan struct{})
	sim.Before = func(step int, _ *engine.Batch) error {
		if step == at {
			close(g.in)
			<-g.out
		}
		return nil
	}
}

func TestQueueFull(t *testing.T) {
	s, sim := start(t, Options{Settings: engine.Settings{MaxNumSeqs: 2, MaxWaiting: 3}})
	var g gate
	g.hold(sim, 1)
	var streams []*Stream
	for range 5 {
		streams = append(streams, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3),
			MaxTokens: 4}))
	}
	<-g.in
	if _, err := s.Submit(t.Context(), TokenRequest{Prompt: prompt(3)}); err != ErrQueueFull {
		t.Fatalf("%v", err)
	}
	other := &Share{Client: "another"} // has a place, however many the first has asked for
	streams = append(streams, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3),
		MaxTokens: 4, Share: other}))
	if _, err := s.Submit(t.Context(), TokenRequest{Prompt: prompt(3),
		Share: other}); err != ErrQueueFull {
		t.Fatalf("%v", err)
	}
	close(g.out)
	for _, st := range streams {
		drain(t, st)
	}
	if got := drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3),
		MaxTokens: 4})); len(got) != 4 {
		t.Fatalf("the queue stayed full: %v", got)
	}
}

// A cancelled request is in no later step, and its pages are free before the next one.
func TestCancelFreesPagesBeforeTheNextStep(t *testing.T) {
	for _, late := range []bool{false, true} { // before the next step is planned, and after
		var s *Scheduler
		ctx, cancel := context.WithCancel(t.Context())
		all := make(chan struct{})
		step, before := 0, 0
		var after []int
		o := Options{launch: func(b *engine.Batch) {
			switch step++; {
			case step == 1:
				<-all
			case step == 4:
				before = s.pool.Used()
				if !late {
					cancel()
				}
			case step == 5:
				after = append(after, len(b.Seqs), s.pool.Used(), s.pool.Free())
			}
		}, prepared: func() {
			if step == 4 && late {
				cancel()
			}
		}}
		s, _ = start(t, o)
		gone := submit(t, s, ctx, TokenRequest{Prompt: prompt(100)})
		stays := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(10), MaxTokens: 9})
		close(all)
		drain(t, stays)
		if before != 2+2*4 || !slices.Equal(after, []int{1, 2, 510}) {
			t.Fatalf("%d pages before the cancellation; sequences, pages used and free in the "+
				"step after it: %v", before, after)
		}
		drain(t, gone)
		if gone.Finish() != FinishCancelled || gone.Err() != nil {
			t.Fatalf("%q %v", gone.Finish(), gone.Err())
		}
		cancel()
	}
}

// The reader of a cancelled request does not wait for the step to end.
func TestCancelDuringAStep(t *testing.T) {
	s, sim := start(t, Options{})
	var g gate
	g.hold(sim, 1)
	ctx, cancel := context.WithCancel(t.Context())
	st := submit(t, s, ctx, TokenRequest{Prompt: prompt(10)})
	<-g.in
	time.AfterFunc(10*time.Millisecond, cancel)
	if got := drain(t, st); len(got) != 0 || st.Finish() != FinishCancelled {
		t.Fatalf("%v %q", got, st.Finish())
	}
	close(g.out)
	waiting, end := context.WithCancel(t.Context())
	end()
	st = submit(t, s, t.Context(), TokenRequest{Prompt: prompt(10), MaxTokens: 2})
	for {
		// the reader gives up, the request does not
		if _, ok := st.Next(waiting); !ok && st.Finish() == "" {
			break
		} else if st.Finish() != "" {
			break
		}
	}
	drain(t, st)
	if st.Finish() != FinishLength {
		t.Fatalf("%q", st.Finish())
	}
}

// A running sequence gets a row in every step while a long prompt is prefilled, and a
// short prompt does not wait for the long one. Counted from the batches themselves, so that no
// reader's pace is in it: the three sequences are known by how far their rows reach.
func TestPrefillDelaysNobody(t *testing.T) {
	const longLen, shortLen = 1500, 60
	s, sim := start(t, Options{Settings: engine.Settings{MaxNumBatchedTokens: 96}})
	var mu sync.Mutex
	armed := false
	// steps from the first that prefills: without the decode, to the short prompt's end, to the
	// long one's
	stalled, shortSteps, longSteps := 0, 0, 0
	step, shortDone := 0, false
	last := int32(0)
	sim.Before = func(_ int, b *engine.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if !armed || step == 0 && len(b.Seqs) == 1 {
			return nil
		}
		step++
		if decodes := b.Seqs[0]; decodes.Rows != 1 || decodes.Start == last {
			stalled++
		} else {
			last = decodes.Start
		}
		for _, q := range b.Seqs[1:] {
			switch q.Start + q.Rows {
			case longLen:
				longSteps = step
			case shortLen:
				if !shortDone {
					shortSteps, shortDone = step, true
				}
			}
		}
		return nil
	}
	decodes := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(2), MaxTokens: 1000})
	decodes.Next(t.Context())
	mu.Lock() // no step begins while both come
	long := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(longLen), MaxTokens: 1})
	short := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(shortLen), MaxTokens: 1})
	armed = true
	mu.Unlock()
	drain(t, long)
	drain(t, short)
	mu.Lock()
	defer mu.Unlock()
	// The long prompt takes 1500/95 steps at least, the short one two of 47 rows; it can come two
	// steps late, since a step is planned while the one before it runs.
	if longSteps < 15 || shortSteps == 0 || shortSteps > 4 || stalled > 0 {
		t.Errorf("prefill of the long prompt %d steps, of the short one %d, decode stalled in %d",
			longSteps, shortSteps, stalled)
	}
}

// Nothing that a reader does or leaves stalls the others.
func TestSlowReader(t *testing.T) {
	s, _ := start(t, Options{})
	slow := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(2), MaxTokens: 1000})
	if got := drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3),
		MaxTokens: 1500})); len(got) != 1500 {
		t.Fatalf("%d tokens", len(got))
	}
	if got := drain(t, slow); len(got) != 1000 || slow.Finish() != FinishLength {
		t.Fatalf("the slow reader has %d tokens", len(got))
	}
}

func TestClose(t *testing.T) {
	sim := newSim(Options{Settings: engine.Settings{Pages: 64, MaxNumBatchedTokens: 64}}, 97, 128)
	s := New(sim, Options{Settings: engine.Settings{Pages: 64, MaxNumBatchedTokens: 64,
		MaxNumSeqs: 1}})
	a := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3)})
	b := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(3)})
	a.Next(t.Context())
	s.Close()
	s.Close()
	for _, st := range []*Stream{a, b} {
		drain(t, st)
		if st.Finish() != FinishError || st.Err() != ErrClosed {
			t.Errorf("%q %v", st.Finish(), st.Err())
		}
	}
	if _, err := s.Submit(t.Context(), TokenRequest{Prompt: prompt(3)}); err != ErrClosed {
		t.Errorf("%v", err)
	}
	if st := s.Stats(); st.Running+st.Waiting+st.PagesUsed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestTimingAndStats(t *testing.T) {
	clock := costing{now: time.Unix(1, 0)}
	s, sim := start(t, Options{now: clock.time, launch: clock.launch})
	var g gate
	g.hold(sim, 2)
	st := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(40), MaxTokens: 3})
	<-g.in
	if got := s.Stats(); got.Running != 1 || got.Waiting != 0 || got.PagesUsed != 4 ||
		got.PromptTokens != 40 || got.GeneratedTokens != 1 || got.Steps != 1 {
		t.Errorf("%+v", got)
	}
	close(g.out)
	drain(t, st)
	tm := st.Timing()
	if tm.Prompt != 40 || tm.Generated != 3 || tm.Cached != 0 || tm.Decode < 44*time.Millisecond ||
		tm.TTFT != tm.Queued+tm.Prefill || tm.TTFT < 200*time.Millisecond {
		t.Errorf("%+v", tm)
	}
	if again := st.Timing(); again != tm {
		t.Errorf("the timing of an ended request moved: %+v", again)
	}
}

// Above serialLogits the rows are sampled by several goroutines; the race detector watches, and the
// texts stay.
func TestManyRowsAreSampledAtOnce(t *testing.T) {
	o := Options{Settings: engine.Settings{Pages: 256, MaxNumBatchedTokens: 256}}
	sim := newSim(o, 20000, 128)
	s := New(sim, o)
	defer s.Close()
	var streams []*Stream
	requests := make([]TokenRequest, 12)
	for i := range requests {
		requests[i] = TokenRequest{Prompt: []int32{int32(i)}, MaxTokens: 6,
			Params:     sample.Params{Temperature: 1, TopP: 0.9, Seed: uint64(i), Logprobs: 2},
			Constraint: &simtest.Constraint{Allow: func([]int32) []uint64 { return nil }}}
		streams = append(streams, submit(t, s, t.Context(), requests[i]))
	}
	for i, st := range streams {
		want, _ := alone(sim, s.o.MaxModelLen, requests[i])
		for _, w := range want {
			if got, ok := st.Next(t.Context()); !ok || got.ID != w.ID || got.Logprob != w.Logprob ||
				!slices.Equal(got.Top, w.Top) {
				t.Fatalf("request %d: %+v, want %+v", i, got, w)
			}
		}
	}
}

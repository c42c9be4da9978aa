// Any interleaving of arrivals, cancellations, preemptions, chunk sizes, prefixes found and pages
// swapped out gives each request the tokens it gets alone.

package sched

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// job is one request of a scenario.
type job struct {
	request TokenRequest
	submit  int // step at which it comes
	cancel  int // step at which it is cancelled, 0: never
	cancels context.CancelFunc
	stream  *Stream
	refused error
	arrival int
	got     []Token
	went    bool // the cancellation was made
	inside  bool // and made inside a step: no later step may have it
}

func randomRequest(rng *rand.Rand, vocab, longest int) TokenRequest {
	ids := func(n int) []int32 {
		s := make([]int32, n)
		for i := range s {
			s[i] = int32(rng.IntN(vocab))
		}
		return s
	}
	length := func(most int) int { // short ones more often
		return 1 + rng.IntN(1+rng.IntN(max(most, 1)))
	}
	r := TokenRequest{Prompt: ids(length(longest)), MaxTokens: rng.IntN(1 + rng.IntN(200)),
		Params: sample.Params{Temperature: 1, TopP: 1, Seed: rng.Uint64(), Logprobs: -1}}
	some := func() bool { return rng.IntN(4) == 0 }
	if some() {
		r.Params.Temperature = 0
	}
	if some() {
		r.Params.TopP, r.Params.TopK = 0.9, 20
	}
	if some() {
		r.Params.RepetitionPenalty, r.Params.FrequencyPenalty = 1.3, 0.5
	}
	if some() {
		r.Params.Logprobs = rng.IntN(4)
	}
	held := &simtest.Constraint{}
	r.Constraint = held
	if some() {
		held.First = ids(rng.IntN(40))
	}
	if some() {
		r.Stop = []int32{3, 7}
		r.Params.IgnoreEOS = some()
		r.Params.MinTokens = rng.IntN(20)
	}
	if some() {
		odd := uint64(0xAAAAAAAAAAAAAAAA)
		held.Allow = func(generated []int32) []uint64 { // odd and even ids in turns
			if len(generated)%3 == 0 {
				return nil
			}
			return []uint64{odd << (len(generated) % 2), odd}
		}
	}
	return r
}

// first is what a random request has forced.
func first(r TokenRequest) []int32 { return r.Constraint.(*simtest.Constraint).First }

// checkState is called before a step, in the loop's goroutine.
func (s *Scheduler) checkState(b *engine.Batch) error {
	pages := map[int32]bool{}
	windowPages := engine.WindowPages(s.eng.Settings().KVCacheDtype)
	for _, q := range s.running {
		for _, page := range slices.Concat(q.table.Full(), q.table.Window()) {
			if page != kv.NoPage {
				pages[page] = true
			}
		}
		for _, page := range q.table.Window() {
			if page != kv.NoPage && b.Twins != nil {
				pages[b.Twins[page]] = true
			}
		}
		if s.batch.Rebuild {
			continue
		}
		if q.rebuildTo == 0 && q.rows > 1 && q.rows < q.remaining() &&
			s.pool.Free() > windowPages && len(b.Tokens) < s.stepRows {
			return fmt.Errorf("a prefill has %d of %d rows though %d pages and %d rows are free",
				q.rows, q.remaining(), s.pool.Free(), s.stepRows-len(b.Tokens))
		}
		if q.decodes() && q.rows == 0 && !q.rests && s.pool.Free() > windowPages {
			return errors.New("a decode waits though there are pages")
		}
	}
	for _, q := range s.waiting {
		if q.table.Pages() != 0 || q.computed != 0 {
			return errors.New("a waiting sequence has pages")
		}
	}
	if used := len(pages); used != s.pool.Used() || used+s.pool.Free() != s.pool.Total() {
		return fmt.Errorf("%d pages are in tables, %d used, %d free, %d in all", used,
			s.pool.Used(), s.pool.Free(), s.pool.Total())
	}
	if len(s.running) > s.o.MaxNumSeqs || len(b.Tokens) > s.o.MaxNumBatchedTokens {
		return fmt.Errorf("%d sequences, %d rows", len(s.running), len(b.Tokens))
	}
	return nil
}

// scenario runs jobs and returns the statistics at the end.
func scenario(t *testing.T, rng *rand.Rand) Stats {
	t.Helper()
	return scenarioOn(t, rng, nil, func(e *simtest.Engine) StepEngine { return e })
}

// scenarioOn runs them on the simulated engine as the scheduler is to see it; change may change the
// options, the requests and the drafts, see guesses.
func scenarioOn(t *testing.T, rng *rand.Rand, change func(*Options, *guesses, []*job),
	seen func(*simtest.Engine) StepEngine) Stats {
	t.Helper()
	const vocab = 97
	o := Options{Settings: engine.Settings{Pages: 12 + rng.IntN(60),
		MaxNumBatchedTokens: 1 + rng.IntN(1+rng.IntN(120)), MaxNumSeqs: 1 + rng.IntN(8)}}
	window := []int{1, 20, 33, 128}[rng.IntN(4)]
	o.NoPrefixCaching = rng.IntN(8) == 0
	if rng.IntN(3) == 0 {
		spill, err := kv.OpenSpill(kv.SpillOptions{HostBytes: int64(rng.IntN(64 << 10))})
		if err != nil {
			t.Fatal(err)
		}
		defer spill.Close()
		o.Spill = spill
	}
	pairs := rng.IntN(4) == 0
	if pairs {
		o.Pages += o.Pages / 2
	}
	sim := newSim(o, vocab, window)
	sim.Pairs = pairs
	var s *Scheduler
	crowded := rng.IntN(2) == 0
	jobs := make([]*job, 1+rng.IntN(12))
	for i := range jobs {
		longest := 200
		if crowded {
			longest = 20
		}
		jobs[i] = &job{request: randomRequest(rng, vocab, longest), submit: rng.IntN(60)}
		if crowded { // short prompts are all let in, and grow until the pages run out
			jobs[i].request.MaxTokens += 150
			jobs[i].request.Stop = nil
		}
		// goes on from an earlier one's answer, or leaves it somewhere
		if i > 0 && rng.IntN(3) > 0 {
			r := &jobs[i].request
			earlier := jobs[rng.IntN(i)].request
			past := slices.Clone(earlier.Prompt)
			if rng.IntN(2) == 0 && earlier.MaxTokens > 0 {
				answer, _ := alone(sim, len(past)+len(first(earlier))+earlier.MaxTokens+1, earlier)
				for _, tok := range answer {
					past = append(past, tok.ID)
				}
			}
			if rng.IntN(3) == 0 {
				past = past[:rng.IntN(len(past)+1)]
			}
			r.Prompt = append(past, r.Prompt[:1+rng.IntN(len(r.Prompt))]...)
			for c := 0; c < len(r.Prompt); c += 1 + rng.IntN(100) {
				r.Cuts = append(r.Cuts, c)
			}
			jobs[i].submit += rng.IntN(300)
		}
		if rng.IntN(5) == 0 {
			jobs[i].cancel = jobs[i].submit + 1 + rng.IntN(1+rng.IntN(400))
		}
	}
	if change != nil {
		change(&o, &guesses{sim: sim}, jobs)
	}
	// The clock ticks twice a step: when it begins, and when the next one has been planned, so
	// that arrivals and cancellations meet a plan, and are met by one; where the loop is idle, the
	// test moves it on.
	var mu sync.Mutex
	var fault error
	clock, arrivals := 0, 0
	tick := func(inside bool) {
		mu.Lock()
		defer mu.Unlock()
		clock++
		for _, j := range jobs {
			if j.cancels == nil && j.submit <= clock {
				var ctx context.Context
				ctx, j.cancels = context.WithCancel(context.Background())
				j.stream, j.refused = s.Submit(ctx, again(j.request))
				arrivals++
				j.arrival = arrivals
			}
			if j.cancels != nil && j.cancel > 0 && j.cancel <= clock && !j.went {
				j.went, j.inside = true, inside
				j.cancels()
			}
		}
	}
	o.prepared = func() { tick(true) }
	o.launch = func(b *engine.Batch) {
		err := s.checkState(b)
		mu.Lock()
		// running ones are older than waiting ones, and all are in the order of their arrival
		last := 0
		for _, q := range slices.Concat(s.running, s.waiting) {
			i := slices.IndexFunc(jobs, func(j *job) bool { return j.stream == q.stream })
			if jobs[i].arrival < last && jobs[i].request.Share == nil {
				err = errors.New("a younger request is ahead of an older one")
			}
			last = jobs[i].arrival
		}
		for _, j := range jobs {
			if j.inside && slices.ContainsFunc(s.running,
				func(q *sequence) bool { return q.stream == j.stream }) {
				err = errors.New("a request is in a step after the one it was cancelled in")
			}
		}
		mu.Unlock()
		tick(true)
		if err != nil && fault == nil {
			fault = err
		}
	}
	s = New(seen(sim), o)
	for drained := 0; drained < len(jobs); {
		tick(false)
		drained = 0
		for _, j := range jobs {
			mu.Lock()
			st, came := j.stream, j.cancels != nil
			mu.Unlock()
			if came {
				drained++
			}
			for st != nil {
				tok, ok := st.Next(t.Context())
				if !ok {
					break
				}
				j.got = append(j.got, tok)
			}
		}
	}
	for i, j := range jobs {
		context := s.o.MaxModelLen
		if asked := len(j.request.Prompt) + len(first(j.request)) + 1; asked > context {
			var e *ContextLengthError
			if !errors.As(j.refused, &e) || e.Max != context || e.Needed != asked {
				t.Fatalf("job %d asks for %d of %d: %v", i, asked, context, j.refused)
			}
			continue
		} else if j.refused != nil {
			t.Fatalf("job %d: %v", i, j.refused)
		}
		got := j.got
		want, finish := alone(sim, context, j.request)
		if j.stream.Finish() == FinishCancelled && j.went {
			if len(got) > len(want) {
				t.Fatalf("job %d: %d tokens before it was cancelled, %d alone", i, len(got),
					len(want))
			}
			want = want[:len(got)]
		} else if j.stream.Finish() != finish || j.stream.Err() != nil {
			t.Fatalf("job %d ended %q (%v), alone %q", i, j.stream.Finish(), j.stream.Err(), finish)
		}
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("job %d (window %d, %+v)\ngot  %v\nwant %v", i, window, o, got, want)
		}
		if n := j.stream.Timing().Generated; n != len(got) {
			t.Fatalf("timing counts %d tokens of %d", n, len(got))
		}
	}
	for _, j := range jobs {
		j.cancels()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if fault != nil {
		t.Fatal(fault)
	}
	if s.pool.Used() != 0 {
		t.Fatalf("%d pages are lost", s.pool.Used())
	}
	return s.Stats()
}

// Requests of many sequences and of several clients get the same tokens, and all end, whatever a
// step seems to take.
func TestSharedInterleavings(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	preempted, scenarios := 0, 60
	if testing.Short() {
		scenarios = 30
	}
	for range scenarios {
		shares := []*Share{{}, {}, {Client: "a"}, {Client: "a"}, {Client: "b"}}
		preempted += int(scenarioOn(t, rng, func(o *Options, _ *guesses, jobs []*job) {
			var clock atomic.Int64
			o.now = func() time.Time {
				n := clock.Add(1)
				return time.UnixMilli(60*n + n*n*7919%53)
			}
			for _, j := range jobs {
				j.request.Share = shares[rng.IntN(len(shares))]
			}
		}, func(e *simtest.Engine) StepEngine { return e }).Preemptions)
	}
	if preempted < scenarios/2 {
		t.Errorf("%d were preempted: the scenarios do not test enough", preempted)
	}
}

func TestInterleavings(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all Stats
	scenarios := uint64(200)
	if testing.Short() { // with the race detector each takes ten times as long
		scenarios = 40
	}
	for range scenarios {
		stats := scenario(t, rng)
		all.Preemptions += stats.Preemptions
		all.Cancelled += stats.Cancelled
		all.PrefixHits += stats.PrefixHits
		all.Rebuilt += stats.Rebuilt
		all.SwappedIn += stats.SwappedIn
		all.Recomputed += stats.Recomputed
		all.Steps += stats.Steps
		all.Ahead += stats.Ahead
	}
	t.Logf("%+v", all.Counts)
	for _, least := range [][2]uint64{{all.Preemptions, 30}, {all.Cancelled, 50}, {all.PrefixHits,
		5000}, {all.Rebuilt, 250}, {all.SwappedIn, 30},
		{all.Recomputed, 500}, {all.Ahead, 5000}, {all.Steps - all.Ahead, 500}} {
		if least[0] < least[1]*scenarios/200 {
			t.Fatalf("%+v: the scenarios do not test enough", all.Counts)
		}
	}
}

func FuzzInterleavings(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { scenario(t, rand.New(rand.NewPCG(a, b))) })
}

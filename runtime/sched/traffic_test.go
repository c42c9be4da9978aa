// Traffic in simulated time: an engine whose steps cost a fixed time and so much a row, so that
// hours pass in seconds. The figures of docs/performance.md come from here: go test ./runtime/sched
// -run Traffic -v, with OSSRUN_LONG for a day.

package sched

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// costs are an engine's times: a step takes step + decode for each sequence's last row + prefill
// for each other row.
type costs struct{ step, decode, prefill time.Duration }

// Roughly a 20b on an H200 at 60 % of its roof, and on a desktop CPU.
var (
	fast = costs{4 * time.Millisecond, 12 * time.Microsecond, 10 * time.Microsecond}
	slow = costs{60 * time.Millisecond, 15 * time.Millisecond, 4 * time.Millisecond}
)

// timed is an engine that costs time and computes nothing.
type timed struct {
	*simtest.Engine
	costs
	mu    sync.Mutex
	clock time.Time
	steps int
	step  func(now time.Time) // after each, in the loop's goroutine
}

func (e *timed) Spec() models.Spec {
	return models.Spec{Layers: 24, Vocab: 16, Window: 128, MaxPosition: 131072}
}

func (e *timed) now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock
}

func (e *timed) pass(d time.Duration) {
	e.mu.Lock()
	e.clock = e.clock.Add(d)
	e.mu.Unlock()
}

func (e *timed) Step(_ context.Context, b *engine.Batch, _ []float32) error {
	last := time.Duration(len(b.LogitRows))
	e.pass(e.costs.step + last*e.decode + (time.Duration(len(b.Tokens))-last)*e.prefill)
	e.steps++
	e.step(e.now())
	return nil
}

// client asks, waits for the answer, thinks, and asks again. With grow its next prompt is the last
// one, the answer and what it says to it.
type client struct {
	prompt, answer int
	think          time.Duration
	grow           bool

	history []int32
	stream  *Stream
	next    time.Time
	turns   int
}

type traffic struct {
	name    string
	costs   costs
	options Options
	clients func() []*client
	span    time.Duration
}

type measured struct {
	ttft, tpot []time.Duration // one a request
	tokens     int
	stats      Stats
	span       time.Duration
}

func (m measured) String() string {
	at := func(d []time.Duration, p float64) string {
		if len(d) == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f",
			float64(d[min(len(d)-1, int(p*float64(len(d))))].Microseconds())/1000)
	}
	slices.Sort(m.ttft)
	slices.Sort(m.tpot)
	return fmt.Sprintf("%d requests, %.0f tokens/s, TTFT ms p50 %s p99 %s, TPOT ms p50 %s p99 "+
		"%s, %.0f%% cached, %d preemptions", len(m.ttft),
		float64(m.tokens)/m.span.Seconds(), at(m.ttft, 0.5), at(m.ttft, 0.99), at(m.tpot, 0.5),
		at(m.tpot, 0.99),
		100*float64(m.stats.PrefixHits)/float64(max(1, m.stats.PrefixQueries)), m.stats.Preemptions)
}

// play runs traffic to its end.
func play(t *testing.T, load traffic) measured {
	t.Helper()
	start := time.Unix(0, 0)
	eng := &timed{Engine: new(simtest.Engine), costs: load.costs, clock: start}
	load.options.now = eng.now
	clients := load.clients()
	rng := rand.New(rand.NewPCG(1, 2))
	var m measured
	var s *Scheduler
	ids := func(n int) []int32 {
		p := make([]int32, n)
		for i := range p {
			p[i] = int32(rng.IntN(16))
		}
		return p
	}
	var mu sync.Mutex
	end := start.Add(load.span)
	// tick lets the clients act that have something to do.
	tick := func(now time.Time) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range clients {
			if c.stream != nil {
				if c.stream.Finish() == "" {
					continue
				}
				tm := c.stream.Timing()
				m.ttft = append(m.ttft, tm.TTFT)
				m.tpot = append(m.tpot, tm.Decode/time.Duration(max(1, tm.Generated-1)))
				m.tokens += tm.Generated
				if c.grow {
					for tok, ok := c.stream.Next(context.Background()); ok; tok,
						ok = c.stream.Next(context.Background()) {
						c.history = append(c.history, tok.ID)
					}
				}
				c.stream, c.next = nil, now.Add(c.think)
			}
			if now.Before(c.next) || now.After(end) {
				continue
			}
			if !c.grow || len(c.history) > 30000 {
				c.history = nil
			}
			n := c.prompt
			if c.grow && len(c.history) > 0 {
				n = c.prompt / 8
			}
			c.history = append(c.history, ids(n)...)
			c.turns++
			st, err := s.Submit(context.Background(), TokenRequest{Prompt: c.history,
				MaxTokens: c.answer, Params: sample.Params{Logprobs: -1}})
			if err != nil {
				t.Error(err)
				return
			}
			c.stream = st
		}
	}
	var last time.Time
	eng.step = func(now time.Time) {
		if now.Sub(last) > 5*time.Millisecond {
			last = now
			tick(now)
		}
	}
	s = New(eng, load.options)
	busy := func() bool { return s.places.Total() > 0 }
	for {
		if busy() {
			time.Sleep(20 * time.Microsecond)
			continue
		}
		if tick(eng.now()); busy() { // else nothing runs: time passes until somebody asks
			continue
		}
		if eng.now().After(end) {
			break
		}
		next := end.Add(time.Millisecond)
		for _, c := range clients {
			if c.next.Before(next) {
				next = c.next
			}
		}
		eng.pass(max(next.Sub(eng.now()), time.Millisecond))
	}
	m.stats = s.Stats()
	m.span = eng.now().Sub(start)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.PagesUsed != 0 || st.Failed != 0 || st.Cancelled != 0 {
		t.Errorf("%+v at the end", st)
	}
	return m
}

// While 256 sequences decode, the engine waits for the scheduler for less than three hundredths of
// a fast card's step. Measured is the processor time of the loop's thread from the end of a
// step to the beginning of the next, which other programs on the machine do not lengthen as they do
// the time of day; work next to the engine is not in it.
func TestMeasureUtilisation(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("a figure of a quiet machine: .ci/long measure")
	}
	const seqs, steps = 256, 1500
	eng := &gaps{nullEngine: nullEngine{Engine: new(simtest.Engine), vocab: 16}, seqs: seqs}
	s := New(eng, Options{Settings: engine.Settings{Pages: 1 << 16, MaxNumSeqs: seqs}})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers sync.WaitGroup
	for range seqs {
		st := submit(t, s, ctx, TokenRequest{Prompt: []int32{1},
			Params: sample.Params{Logprobs: -1}})
		readers.Go(func() {
			for _, ok := st.Next(ctx); ok; _, ok = st.Next(ctx) {
			}
		})
	}
	waitUntil(func() bool { return s.Stats().Steps >= steps })
	cancel()
	readers.Wait()
	s.Close()
	if eng.steps < steps/2 {
		t.Fatalf("only %d steps had %d sequences", eng.steps, seqs)
	}
	gap := eng.spent / time.Duration(eng.steps)
	step := fast.step + seqs*fast.decode
	share := float64(step) / float64(step+gap)
	t.Logf("%v of the loop's processor time a step with sampling from a small vocabulary, of a "+
		"step of %v: utilisation %.1f %%; %d of %d steps planned ahead",
		gap, step, 100*share, s.Stats().Ahead, s.Stats().Steps)
	if share < 0.97 {
		t.Errorf("the engine works %.1f %% of the time", 100*share)
	}
}

// gaps adds up the processor time of the goroutine that asks for steps, from each step with seqs
// sequences to the next.
type gaps struct {
	nullEngine
	seqs  int
	last  time.Duration
	spent time.Duration
	steps int
}

func (e *gaps) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	if e.last == 0 {
		runtime.LockOSThread() // the loop's goroutine stays on this thread until both end
	}
	now := hosttest.ThreadTime()
	if len(b.Seqs) == e.seqs && e.last > 0 {
		e.spent += now - e.last
		e.steps++
	}
	err := e.nullEngine.Step(ctx, b, logits)
	e.last = hosttest.ThreadTime()
	return err
}

func many(n int, c client) []*client {
	all := make([]*client, n)
	for i := range all {
		one := c
		one.next = time.Unix(0, 0).Add(time.Duration(i) * 7 * time.Millisecond)
		all[i] = &one
	}
	return all
}

func TestTraffic(t *testing.T) {
	gpu := Options{Settings: engine.Settings{Pages: 60000, MaxNumBatchedTokens: 8192,
		MaxNumSeqs: 256}}
	day, minute := time.Hour, 20*time.Second
	if testing.Short() {
		day, minute = 2*time.Minute, 8*time.Second
	}
	if os.Getenv("OSSRUN_LONG") != "" {
		day, minute = 24*time.Hour, time.Minute
	}
	chat := client{prompt: 1024, answer: 256, think: 50 * time.Millisecond}
	results := map[string]measured{}
	for _, load := range []traffic{
		{"100 clients that stream", fast, gpu, func() []*client { return many(100, chat) }, minute},
		{"and one prompt of 32,000 after the other", fast, gpu, func() []*client {
			return append(many(100, chat), &client{prompt: 32000, answer: 16,
				think: 10 * time.Millisecond})
		}, minute},
		{"256 clients", fast, gpu, func() []*client { return many(256, chat) }, minute},
		{"50 agents, prefix cache", fast, gpu, func() []*client {
			return many(50, client{prompt: 6000, answer: 100, think: 200 * time.Millisecond,
				grow: true})
		}, minute},
		{"50 agents, no prefix cache", fast, Options{Settings: engine.Settings{Pages: gpu.Pages,
			MaxNumBatchedTokens: gpu.MaxNumBatchedTokens, MaxNumSeqs: gpu.MaxNumSeqs,
			NoPrefixCaching: true}},
			func() []*client {
				return many(50, client{prompt: 6000, answer: 100, think: 200 * time.Millisecond,
					grow: true})
			}, minute},
		{"a day: 3 people and an agent on a CPU", slow, Options{Settings: engine.Settings{
			Pages: 4096, MaxNumBatchedTokens: 512}},
			func() []*client {
				return append(many(3, client{prompt: 800, answer: 200, think: 30 * time.Second}),
					&client{prompt: 3000, answer: 80, think: 5 * time.Second, grow: true})
			}, day},
		{"a day: 30 people, 3 agents and a long prompt every 10 minutes on a card", fast, gpu,
			func() []*client {
				mixed := append(many(30, client{prompt: 800, answer: 300, think: 4 * time.Minute}),
					many(3, client{prompt: 3000, answer: 80, think: time.Minute, grow: true})...)
				return append(mixed, &client{prompt: 100000, answer: 500, think: 10 * time.Minute})
			}, day},
	} {
		began, cpu := time.Now(), hosttest.ProcessTime()
		m := play(t, load)
		results[load.name] = m
		t.Logf("%s: %v; %v of traffic, %d steps in %v (CPU %v)", load.name, m,
			m.span.Round(time.Second), m.stats.Steps,
			time.Since(began).Round(time.Millisecond),
			(hosttest.ProcessTime() - cpu).Round(time.Millisecond))
	}
	p99 := func(d []time.Duration) time.Duration { return d[len(d)*99/100] }
	calm, mixed := results["100 clients that stream"],
		results["and one prompt of 32,000 after the other"]
	step := fast.step + 8192*fast.prefill
	if worst := p99(mixed.tpot); worst > step {
		t.Errorf("with long prompts beside it a token takes %v, more than a step full of them "+
			"(%v); alone %v", worst, step, p99(calm.tpot))
	}
	with, without := results["50 agents, prefix cache"], results["50 agents, no prefix cache"]
	if with.stats.PrefixHits*10 < with.stats.PrefixQueries*7 || p99(with.ttft) > p99(without.ttft) {
		t.Errorf("agents: %v; without the cache %v", with, without)
	}
}

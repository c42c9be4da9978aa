// Drafts change how long a request takes and nothing else: whatever is guessed, right, wrong or
// right for a while, each request gets the tokens, logprobs and end that it gets alone.

package sched

import (
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// guesses drafts what requests will say, with mistakes.
type guesses struct {
	sim   *simtest.Engine
	texts [][]int32 // prompts with their answers
	rng   *rand.Rand
	none  int // the larger, the more often nothing is proposed
}

// knows notes what a request will say.
func (g *guesses) knows(context int, r TokenRequest) {
	text := slices.Clone(r.Prompt)
	answer, _ := alone(g.sim, context, r)
	for _, t := range answer {
		text = append(text, t.ID)
	}
	g.texts = append(g.texts, text)
}

// wrote notes what requests have said.
func (g *guesses) wrote(requests []TokenRequest, answers [][]Token) {
	for i, r := range requests {
		text := slices.Clone(r.Prompt)
		for _, tok := range answers[i] {
			text = append(text, tok.ID)
		}
		g.texts = append(g.texts, text)
	}
}

// answers submits all requests and reads what they say.
func answers(t *testing.T, s *Scheduler, requests []TokenRequest) (texts [][]Token) {
	t.Helper()
	var streams []*Stream
	for _, r := range requests {
		streams = append(streams, submit(t, s, t.Context(), r))
	}
	for _, st := range streams {
		var text []Token
		for tok, ok := st.Next(t.Context()); ok; tok, ok = st.Next(t.Context()) {
			text = append(text, tok)
		}
		texts = append(texts, text)
	}
	return texts
}

// propose is Options.propose.
func (g *guesses) propose(tokens []int32, most int) []int32 {
	n := max(0, g.rng.IntN(most+1+g.none)-g.none)
	var guess []int32
	for _, text := range g.texts {
		if len(text) > len(tokens) && slices.Equal(text[:len(tokens)], tokens) {
			guess = slices.Clone(text[len(tokens):min(len(text), len(tokens)+n)])
			break
		}
	}
	for len(guess) < n {
		guess = append(guess, int32(g.rng.IntN(g.sim.Spec().Vocab)))
	}
	if n > 0 && g.rng.IntN(2) == 0 {
		guess[g.rng.IntN(n)] = int32(g.rng.IntN(g.sim.Spec().Vocab))
	}
	return guess
}

// drafted makes every request of a scenario draft, and asks more of some.
func drafted(rng *rand.Rand) func(*Options, *guesses, []*job) {
	return func(o *Options, g *guesses, jobs []*job) {
		o.Drafts = 1 + rng.IntN(40)
		o.MaxNumBatchedTokens += rng.IntN(60)
		*g.sim = *newSim(*o, g.sim.Spec().Vocab, g.sim.Spec().Window)
		g.sim.Pairs = engine.WindowPages(g.sim.Settings().KVCacheDtype) > 1
		for _, j := range jobs {
			r := &j.request
			some := func() bool { return rng.IntN(4) == 0 }
			if some() {
				r.Params.MinP = 0.05
			}
			if some() {
				r.Params.LogitBias = map[int32]float32{5: 3, 9: -100, 11: -2}
			}
			if some() {
				r.Params.PresencePenalty = 0.7
			}
			if some() {
				follow := []int32{8, 9, 10, 11}
				r.Constraint.(*simtest.Constraint).Follow = func(generated []int32) []int32 {
					if len(generated) == 0 || generated[len(generated)-1]%8 != 0 {
						return nil
					}
					return follow[:1+len(generated)%4]
				}
			}
			g.knows(4096, *r)
		}
		g.rng = rand.New(rand.NewPCG(rng.Uint64(), 1))
		o.propose = g.propose
	}
}

// With OSSRUN_LONG these are 10,000 turns.
func TestDraftsChangeNothing(t *testing.T) {
	changeNothing(t, 60, func(e *simtest.Engine) StepEngine { return e })
}

// A device that samples has drafts in the steps that are not queued ahead.
func TestDraftsChangeNothingOnDevice(t *testing.T) {
	changeNothing(t, 30, func(e *simtest.Engine) StepEngine { return simtest.NewDevice(e) })
}

func changeNothing(t *testing.T, scenarios int, on func(*simtest.Engine) StepEngine) {
	rng := rand.New(rand.NewPCG(5, 6))
	var all Stats
	switch {
	case os.Getenv("OSSRUN_LONG") != "":
		scenarios = 1700
	case testing.Short():
		scenarios = 25
	}
	turns := uint64(0)
	for range scenarios {
		stats := scenarioOn(t, rng, drafted(rng), on)
		turns += stats.Stopped + stats.Length + stats.Cancelled
		all.Drafts += stats.Drafts
		all.DraftTokens += stats.DraftTokens
		all.AcceptedTokens += stats.AcceptedTokens
		all.Preemptions += stats.Preemptions
		all.Rebuilt += stats.Rebuilt
		all.SwappedIn += stats.SwappedIn
		all.Steps += stats.Steps
		all.Ahead += stats.Ahead
	}
	t.Logf("%d turns, %+v", turns, all.Counts)
	for _, least := range [][2]uint64{{turns, 300}, {all.Drafts, 3000}, {all.AcceptedTokens, 8000},
		{all.DraftTokens - all.AcceptedTokens, 8000}, {all.Rebuilt, 50}, {all.Ahead, 3000}} {
		if least[0] < least[1]*uint64(scenarios)/60 {
			t.Fatalf("%d turns, %+v: the scenarios do not test enough", turns, all.Counts)
		}
	}
}

// costing is a clock that goes by what steps have in them.
type costing struct {
	mu  sync.Mutex
	now time.Time
}

func (c *costing) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *costing) launch(b *engine.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Duration(40+4*len(b.Tokens)) * time.Millisecond)
}

// A text that repeats itself is drafted by the scheduler's own means, in a fraction of the steps.
func TestDraftsSaveSteps(t *testing.T) {
	clock := costing{now: time.Unix(1, 0)}
	s, _ := start(t, Options{Settings: engine.Settings{Drafts: 32}, now: clock.time,
		launch: clock.launch})
	// one token may follow each other: 20, 21, 22, ... 35, 20, ...
	next := func(generated []int32) []uint64 {
		return []uint64{1 << (20 + len(generated)%16), 0}
	}
	r := TokenRequest{Prompt: prompt(10), MaxTokens: 400, Params: sample.Params{Logprobs: -1},
		Constraint: &simtest.Constraint{Allow: next}}
	for i, id := range drain(t, submit(t, s, t.Context(), r)) {
		if want := int32(20 + i%16); id != want {
			t.Fatalf("token %d is %d, want %d", i, id, want)
		}
	}
	if n := s.Stats(); n.Steps+n.AcceptedTokens != 400 || n.Steps > 80 {
		t.Fatalf("%+v", n.Counts)
	}
}

// A prediction is drafted from behind what it begins with, and what came of it is counted.
func TestPredictions(t *testing.T) {
	clock := costing{now: time.Unix(1, 0)}
	s, sim := start(t, Options{Settings: engine.Settings{Drafts: 32}, now: clock.time,
		launch: clock.launch})
	r := TokenRequest{Prompt: prompt(10), MaxTokens: 200, Params: sample.Params{Temperature: 1,
		TopP: 1,
		Seed: 3, Logprobs: -1}}
	answer, _ := alone(sim, s.o.MaxModelLen, r)
	r.Prediction = slices.Clone(r.Prompt)
	for i, tok := range answer {
		if i == 100 {
			r.Prediction = append(r.Prediction, 1, 2, 3)
		}
		r.Prediction = append(r.Prediction, tok.ID)
	}
	st := submit(t, s, t.Context(), r)
	for i, id := range drain(t, st) {
		if id != answer[i].ID {
			t.Fatalf("token %d is %d, want %d", i, id, answer[i].ID)
		}
	}
	n, tm := s.Stats(), st.Timing()
	if tm.Accepted < 150 || tm.Rejected == 0 || tm.Accepted > int(n.AcceptedTokens) ||
		n.Steps > 60 {
		t.Fatalf("%+v, %+v", tm, n.Counts)
	}
}

// A broken row ends the request after the tokens before it, and only if these tokens
// really came.
func TestBrokenRowsOfDrafts(t *testing.T) {
	run := func(o Options) (got []int32, st *Stream, stats Stats) {
		sim := newSim(o, 97, 128)
		s := New(brokenRow{sim}, o)
		defer s.Close()
		st = submit(t, s, t.Context(), TokenRequest{Prompt: prompt(12), MaxTokens: 500,
			Params: sample.Params{Temperature: 1, TopP: 1, Seed: 2}})
		return drain(t, st), st, s.Stats()
	}
	o := Options{Settings: engine.Settings{Pages: 64, MaxNumBatchedTokens: 64}}
	want, ended, _ := run(o)
	if n := len(want); n < 20 || want[n-1] != 42 || ended.Finish() != FinishError {
		t.Fatalf("%v %q", want, ended.Finish())
	}
	text := append(prompt(12), want...)
	o.Drafts = 7
	o.propose = func(tokens []int32, most int) []int32 {
		if len(tokens)%3 == 0 {
			return []int32{42, 42}
		}
		return append(slices.Clone(text[len(tokens):min(len(text), len(tokens)+4)]), 5)
	}
	got, st, stats := run(o)
	if !slices.Equal(got, want) || st.Finish() != FinishError || stats.NonFinite != 1 ||
		stats.PagesUsed != 0 || stats.AcceptedTokens == 0 {
		t.Fatalf("got %v, want %v, %q, %+v", got, want, st.Finish(), stats)
	}
}

// On the CPU's engine a row is computed to the same bits whatever else is in the step, so the same
// holds there: texts, logprobs and rivals, in batches of requests that draft and of those that do
// not.
func TestDraftsOnTheCPU(t *testing.T) {
	dev, ckpt, cases := goldenT1(t)
	var requests []TokenRequest
	for i, g := range cases {
		if len(g.Tokens) > 200 {
			continue
		}
		for k := range 8 {
			p := sample.Params{Temperature: 1, TopP: 1, Seed: uint64(100*i + k), Logprobs: k - 4}
			p.Logprobs = max(p.Logprobs, -1)
			r := TokenRequest{Prompt: g.Tokens, MaxTokens: 40, Params: p}
			switch k {
			case 0:
				r.Params.Temperature = 0
			case 1:
				r.Params.TopP, r.Params.TopK = 0.8, 30
			case 2:
				r.Params.MinP, r.Params.Temperature = 0.02, 1.5
			case 3:
				r.Params.Temperature, r.Params.RepetitionPenalty = 0, 1.4
			case 4:
				r.Params.FrequencyPenalty, r.Params.PresencePenalty = 1, 0.5
			case 5:
				r.Stop, r.Params.MinTokens = []int32{17, 30, 60}, 10
			case 6:
				r.Params.LogitBias = map[int32]float32{3: 4, 9: -100}
			case 7:
				r.Params.Temperature = 0.2
			}
			requests = append(requests, r)
		}
	}
	run := func(o Options) (texts [][]Token, stats Stats) {
		s, end := newReal(t, dev, ckpt, o)
		defer end()
		return answers(t, s, requests), s.Stats()
	}
	want, _ := run(Options{Settings: engine.Settings{Pages: 100, MaxNumBatchedTokens: 128,
		MaxNumSeqs: 1}})
	g := guesses{sim: newSim(Options{}, ckpt.Spec.Vocab, 128), rng: rand.New(rand.NewPCG(8, 8))}
	g.wrote(requests, want)
	for _, o := range []Options{
		{Settings: engine.Settings{Pages: 100, MaxNumBatchedTokens: 64, MaxNumSeqs: 1, Drafts: 32}},
		{Settings: engine.Settings{Pages: 200, MaxNumBatchedTokens: 128, MaxNumSeqs: 12,
			Drafts: 16}},
		{Settings: engine.Settings{Pages: 40, MaxNumBatchedTokens: 32, MaxNumSeqs: 6, Drafts: 5}},
	} {
		o.propose = g.propose
		got, stats := run(o)
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%+v: request %d %+v\ngot  %v\nwant %v", o.Settings, i,
					requests[i].Params, got[i], want[i])
			}
		}
		t.Logf("%d turns, %+v", len(got), stats.Counts)
		if stats.AcceptedTokens < 500 || stats.DraftTokens < stats.AcceptedTokens+500 {
			t.Errorf("%+v: too little was drafted", stats.Counts)
		}
	}
}

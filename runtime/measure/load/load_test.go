package load

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
)

func everything() Options {
	return Options{Backend: Completions, Model: "m", RequestRate: math.Inf(1), Burstiness: 1}
}

// Each metric agrees with what the server did.
func TestKnownLatencies(t *testing.T) {
	for _, backend := range []Backend{Completions, Chat} {
		t.Run(string(backend), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { knownLatencies(t, backend) })
		})
	}
}

func knownLatencies(t *testing.T, backend Backend) {
	s := &timed{first: 300 * time.Millisecond, gap: 60 * time.Millisecond,
		spread: 100 * time.Millisecond}
	o := everything()
	o.Backend, o.MaxConcurrency = backend, 4
	const n, tokens = 8, 10
	goals := Goals{TTFT: 450 * time.Millisecond} // two of each four requests meet it
	outcomes, took, err := Run(t.Context(), s.inMemory(t), Random{Input: 5, Output: tokens}.
		Requests(n, 1), o)
	if err != nil {
		t.Fatal(err)
	}
	r := Measure(outcomes, took, goals)
	var ttft, tpot, itl, e2el []float64
	for _, wrote := range s.wrote {
		ttft, e2el = append(ttft, milliseconds(wrote[0])), append(e2el,
			milliseconds(wrote[tokens-1]))
		tpot = append(tpot, milliseconds(wrote[tokens-1]-wrote[0])/(tokens-1))
		for i := range tokens - 1 {
			itl = append(itl, milliseconds(wrote[i+1]-wrote[i]))
		}
	}
	rounds := 0. // four at once, each place its requests one after the other
	for _, took := range e2el {
		rounds += took / 1000 / 4
	}
	pairs := map[string][2]float64{
		"request throughput": {r.RequestsPerS, n / r.Duration},
		"output throughput":  {r.OutputPerS, n * tokens / r.Duration},
		"input throughput":   {r.InputPerS, n * 5 / r.Duration},
		"total throughput":   {r.TotalPerS, n * (5 + tokens) / r.Duration},
		"goodput":            {*r.GoodPerS, n / 2 / r.Duration},
	}
	for name, of := range map[string]struct {
		ours Latency
		told []float64
	}{"TTFT": {r.TTFT, ttft}, "TPOT": {r.TPOT, tpot}, "ITL": {r.ITL, itl}, "E2EL": {r.E2EL, e2el}} {
		told := latency(of.told)
		pairs["mean "+name] = [2]float64{of.ours.Mean, told.Mean}
		pairs["median "+name] = [2]float64{of.ours.Median, told.Median}
		pairs["p99 "+name] = [2]float64{of.ours.Percentile(99), told.Percentile(99)}
	}
	// the order in which places get free is not known: as long as all, and no longer than the
	// slowest two after each other
	if slow := slices.Max(e2el) / 1000; r.Duration < .999*rounds || r.Duration > 1.001*2*slow {
		t.Errorf("duration %.3f is not within %.3f and %.3f", r.Duration, rounds, 2*slow)
	}
	for name, pair := range pairs {
		if math.Abs(pair[0]/pair[1]-1) > 1e-6 {
			t.Errorf("%s %.6f, the server's %.6f", name, pair[0], pair[1])
		}
	}
	if r.Completed != n || r.OutputTokens != n*tokens || r.Retokenized != n*tokens ||
		r.PeakConcurrency != 4 {
		t.Errorf("%+v", r)
	}
}

func TestBodies(t *testing.T) {
	s := &timed{}
	o := everything()
	o.IgnoreEOS, o.Extra = true, map[string]any{"temperature": 0.5}
	list := []Request{{Prompt: "p", OutputTokens: 3}}
	if _, _, err := Run(t.Context(), s.at(t), list, o); err != nil {
		t.Fatal(err)
	}
	o.Backend, o.NoStream, o.IgnoreEOS = Chat, true, false
	if _, _, err := Run(t.Context(), s.at(t), list, o); err != nil {
		t.Fatal(err)
	}
	a, b := s.bodies[0], s.bodies[1]
	if a["prompt"] != "p" || a["max_tokens"] != 3.0 || a["ignore_eos"] != true ||
		a["temperature"] != .5 || a["stream"] != true || a["stream_options"] == nil {
		t.Error(a)
	}
	if b["messages"] == nil || b["max_completion_tokens"] != 3.0 || b["ignore_eos"] != nil ||
		b["stream"] != false || b["stream_options"] != nil || b["max_tokens"] != nil {
		t.Error(b)
	}
}

// What fails is counted and named, and is in no latency; a server without usage is counted by text.
func TestFailures(t *testing.T) {
	s := &timed{noUsage: true, fail: func(n int) string {
		return map[bool]string{n%3 == 2: "no memory"}[true]
	}}
	o := everything()
	o.MaxConcurrency = 1
	outcomes, took, err := Run(t.Context(), s.at(t), Random{Input: 2, Output: 4}.Requests(9, 1), o)
	if err != nil {
		t.Fatal(err)
	}
	r := Measure(outcomes, took, Goals{E2EL: time.Hour, TTFT: time.Nanosecond})
	list := r.failures()
	if r.Completed != 6 || r.Failed != 3 || r.OutputTokens != 24 || r.GoodPerS == nil ||
		*r.GoodPerS != 0 || len(list) != 1 || !strings.HasPrefix(list[0], "3 times: ") ||
		!strings.Contains(list[0], "500: no memory (http") {
		t.Errorf("%+v %q", r, list)
	}
	o.Warmups = 1
	s.fail = func(int) string { return "not ready" }
	if _, _, err := Run(t.Context(), s.at(t), []Request{{Prompt: "p"}}, o); err == nil ||
		!strings.Contains(err.Error(), "not ready") {
		t.Error(err)
	}
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &timed{first: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o := everything()
		o.MaxConcurrency = 2
		list := Random{Input: 2, Output: 4}.Requests(9, 1)
		outcomes, took, err := Run(ctx, s.inMemory(t), list, o)
		r := Measure(outcomes, took, Goals{})
		if !errors.Is(err, context.DeadlineExceeded) || r.Completed != 0 || r.Failed != 2 ||
			took != time.Minute {
			t.Errorf("%v after %v: %+v", err, took, r)
		}
	})
}

func TestArrivals(t *testing.T) {
	const n, rate = 20000, 50.0
	for _, burstiness := range []float64{.25, 1, 4} {
		o := Options{RequestRate: rate, Burstiness: burstiness, Seed: 3}
		due := arrivals(make([]Request, n), &o)
		sum, squares, last := 0.0, 0.0, time.Duration(0)
		for _, at := range due {
			gap := (at - last).Seconds() * rate
			sum, squares, last = sum+gap, squares+gap*gap, at
		}
		mean := sum / n
		variance := squares/n - mean*mean
		if math.Abs(mean-1) > .01 || math.Abs(variance*burstiness-1) > .1 {
			t.Errorf("burstiness %v: mean gap %.3f of 1, variance %.3f of %.3f", burstiness, mean,
				variance, 1/burstiness)
		}
	}
	traced := []Request{{}, {Due: time.Second}, {Due: 3 * time.Second}}
	if due := arrivals(traced, &Options{RequestRate: math.Inf(1)}); due[0] != 0 ||
		due[2] != 3*time.Second {
		t.Error(due)
	}
	for strategy, middle := range map[string]float64{"linear": 55, "exponential": math.Sqrt(1000)} {
		o := Options{RequestRate: math.Inf(1), Burstiness: 1000, Seed: 3,
			Ramp: Ramp{strategy, 10, 100}}
		due := arrivals(make([]Request, n), &o)
		for at, rate := range map[int]float64{0: 10, n/2 - 50: middle, n - 101: 100} {
			if got := 100 / (due[at+100] - due[at]).Seconds(); math.Abs(got/rate-1) > .03 {
				t.Errorf("%s: %.1f requests a second at %d, not %.1f", strategy, got, at, rate)
			}
		}
	}
}

func TestRandom(t *testing.T) {
	list := Random{Input: 100, Output: 50, RangeRatio: .2, Prefix: 7}.Requests(300, 5)
	least, most := math.MaxInt, 0
	for _, r := range list {
		if n := len(token.Get().Encode(nil, r.Prompt)); n != r.InputTokens {
			t.Fatalf("%d tokens, %d promised: %q", n, r.InputTokens, r.Prompt)
		}
		least, most = min(least, r.InputTokens), max(most, r.InputTokens)
		if r.OutputTokens < 40 || r.OutputTokens > 60 {
			t.Errorf("%d tokens to be made", r.OutputTokens)
		}
	}
	if least < 87 || least > 92 || most < 122 || most > 127 {
		t.Errorf("prompts of %d to %d tokens", least, most)
	}
	if again := (Random{Input: 100, Output: 50, RangeRatio: .2, Prefix: 7}).
		Requests(300, 5); again[299] != list[299] {
		t.Error("the same seed gives other requests")
	}
	exact := Random{Input: 64, Output: 8}.Requests(20, 1)
	for _, r := range exact {
		if r.InputTokens != 64 || r.OutputTokens != 8 {
			t.Error(r)
		}
	}
}

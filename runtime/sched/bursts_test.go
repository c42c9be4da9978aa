package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// h200 has the times of 20b on an H200 as measured (docs/performance.md): a step of 9 to 256 rows,
// and 38,700 rows of prompts a second.
var h200 = costs{14 * time.Millisecond, 20 * time.Microsecond, 24 * time.Microsecond}

// burst submits requests together to an engine with the given times, and returns it when all ended.
func burst(t *testing.T, c costs, requests []TokenRequest, step func(e *timed, b *engine.Batch,
	took time.Duration)) (streams []*Stream, all time.Duration) {
	t.Helper()
	e := &timed{Engine: new(simtest.Engine), costs: c, clock: time.Unix(0, 0)}
	e.step = func(time.Time) {}
	submitted, planned := make(chan struct{}), make(chan struct{}, 1)
	o := Options{Settings: engine.Settings{Pages: 60_000, MaxNumBatchedTokens: 8192,
		MaxNumSeqs: 256}, now: e.now}
	o.launch = func(*engine.Batch) {
		select {
		case planned <- struct{}{}:
		default:
		}
		<-submitted
	}
	s := New(&observed{e, step}, o)
	defer s.Close()
	// a step of one row runs while the requests come, so that all are in one plan
	submit(t, s, t.Context(), TokenRequest{Prompt: []int32{1}, MaxTokens: 1,
		Params: sample.Params{Logprobs: -1}, Share: requests[0].Share})
	<-planned
	for _, r := range requests {
		r.Params = sample.Params{Logprobs: -1}
		streams = append(streams, submit(t, s, t.Context(), r))
	}
	close(submitted)
	for _, st := range streams {
		for _, ok := st.Next(t.Context()); ok; _, ok = st.Next(t.Context()) {
		}
	}
	return streams, e.now().Sub(time.Unix(0, 0))
}

// observed tells of each step.
type observed struct {
	*timed
	told func(e *timed, b *engine.Batch, took time.Duration)
}

func (o *observed) Step(ctx context.Context, b *engine.Batch, logits []float32) error {
	began := o.now()
	err := o.timed.Step(ctx, b, logits)
	if o.told != nil {
		o.told(o.timed, b, o.now().Sub(began))
	}
	return err
}

// prompts are n different prompts of a client, of so many tokens.
func prompts(client string, n, tokens, first int) (all []TokenRequest) {
	for i := range n {
		p := make([]int32, tokens)
		for j := range p {
			p[j] = int32((j*7 + (first+i)*(j%5+3)) % 16)
		}
		all = append(all, TokenRequest{Prompt: p, MaxTokens: 1, Share: &Share{Client: client}})
	}
	return all
}

func meanFirst(streams []*Stream) (mean time.Duration) {
	for _, st := range streams {
		mean += st.Timing().TTFT / time.Duration(len(streams))
	}
	return mean
}

// Prompts that come together are computed one after the other: their mean first token comes after
// half the time of all. Two clients with half of them each have the same mean.
func TestABurstIsComputedLeastFirst(t *testing.T) {
	streams, all := burst(t, h200, prompts("a", 64, 1024, 0), nil)
	mean := meanFirst(streams)
	t.Logf("64 prompts of 1,024: %v, mean first token %v", all, mean)
	if least := time.Duration(64 * 1024 * int64(h200.prefill)); mean > all*6/10 || all > least*5/4 {
		t.Errorf("64 prompts of 1,024 take %v, their mean first token %v", all, mean)
	}

	both, _ := burst(t, h200, append(prompts("a", 32, 1024, 0), prompts("b", 32, 1024, 32)...), nil)
	a, b := meanFirst(both[:32]), meanFirst(both[32:])
	if a > b*11/10 || b > a*11/10 || max(a, b) > all*6/10 {
		t.Errorf("two clients with 32 each: means of %v and %v, one with 64: %v", a, b, mean)
	}

	// short ones are before a long one
	mixed := append(prompts("a", 1, 30_000, 0), prompts("a", 63, 1024, 1)...)
	streams, all = burst(t, h200, mixed, nil)
	if first, rest := streams[0].Timing().TTFT, meanFirst(streams[1:]); first < all*9/10 ||
		rest > all/2 {
		t.Errorf("a long prompt has its first token after %v, the short ones after %v, of %v",
			first, rest, all)
	}
}

// A long prompt has a page of each step, though its client fills every step with shorter ones; also
// where all want scores, which one prompt of a step has.
func TestALongPromptIsNotForgotten(t *testing.T) {
	t.Run("plain", func(t *testing.T) { longAmongShorter(t, 8, 1024, false) })
	t.Run("scored", func(t *testing.T) { longAmongShorter(t, 1, 32, true) })
}

// longAmongShorter submits n prompts of so many tokens in each step beside a long one.
func longAmongShorter(t *testing.T, n, tokens int, score bool) {
	const long = 3000
	each := kv.PageTokens
	if score {
		each = mostScored
	}
	e := &timed{Engine: new(simtest.Engine), costs: h200, clock: time.Unix(0, 0)}
	e.step = func(time.Time) {}
	var s *Scheduler
	var first *Stream
	submitted, steps := make(chan struct{}), 0
	shorter := func() {
		for _, r := range prompts("a", n, tokens, n*steps) {
			r.Params, r.ScorePrompt = sample.Params{Logprobs: -1}, score
			if _, err := s.Submit(t.Context(), r); err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	}
	s = New(&observed{e, func(*timed, *engine.Batch, time.Duration) {
		if first.Timing().Generated == 0 && steps < 500 {
			steps++
			shorter()
		}
	}}, Options{Settings: engine.Settings{Pages: 60_000, MaxNumBatchedTokens: 8192,
		MaxNumSeqs: 256}, now: e.now, launch: func(*engine.Batch) { <-submitted }})
	defer s.Close()
	r := prompts("a", 1, long, 0)[0]
	r.Params, r.ScorePrompt = sample.Params{Logprobs: -1}, score
	first = submit(t, s, t.Context(), r)
	shorter()
	close(submitted)
	for _, ok := first.Next(t.Context()); ok; _, ok = first.Next(t.Context()) {
	}
	s.Close() // its loop counts the steps
	if most := long/each + 3; steps > most {
		t.Errorf("a prompt of %d took %d steps, more than %d", long, steps, most)
	}
}

// Tokens wait for prompts no longer than patience where that costs less than 3 % of the rows that a
// second computes; where shorter steps cost more, steps are as long as they may be.
func TestTokensWaitWithinPatience(t *testing.T) {
	requests := prompts("a", 8, 64, 0)
	for i := range requests {
		requests[i].MaxTokens = 300
	}
	requests = append(requests, prompts("b", 12, 20_000, 8)...)
	for _, c := range []struct {
		name  string
		costs costs
		most  time.Duration // a step beside tokens, once steps are measured
	}{
		{"a card by count", fast, patience * 51 / 50},
		{"a card as measured", h200, 155 * time.Millisecond},
		{"a card whose steps cost much", costs{60 * time.Millisecond, 0, 5 * time.Microsecond},
			110 * time.Millisecond},
		{"a processor", costs{time.Millisecond, time.Millisecond, 10 * time.Millisecond},
			time.Second},
	} {
		rows, spent, worst, steps := 0, time.Duration(0), time.Duration(0), 0
		burst(t, c.costs, requests, func(_ *timed, b *engine.Batch, took time.Duration) {
			if len(b.Tokens) == len(b.LogitRows) {
				return // of tokens alone
			}
			rows, spent = rows+len(b.Tokens), spent+took
			steps++
			waits := slices.ContainsFunc(b.Seqs, func(q engine.SeqRows) bool { return q.Rows == 1 })
			if steps > 12 && waits {
				worst = max(worst, took)
			}
		})
		t.Logf("%s: steps beside tokens take at most %v", c.name, worst)
		if worst > c.most {
			t.Errorf("%s: a token waits %v, more than %v", c.name, worst, c.most)
		}
		whole := 8192 / (c.costs.step + 8192*c.costs.prefill).Seconds()
		if rate := float64(rows) / spent.Seconds(); rate < 0.95*whole {
			t.Errorf("%s: %.0f rows a second, %.0f in whole steps", c.name, rate, whole)
		}
	}
}

// However short a step is, each client that has a prompt to compute has a row of it.
func TestEveryClientHasRowsOfAStep(t *testing.T) {
	const clients = 90
	requests := prompts("tokens", 1, 40, 0)
	requests[0].MaxTokens = 400
	for i := range clients {
		requests = append(requests, prompts(fmt.Sprint("client ", i), 1, 400, 1+i)...)
	}
	steps, without := 0, 0
	burst(t, costs{time.Millisecond, time.Millisecond, 10 * time.Millisecond}, requests,
		func(_ *timed, b *engine.Batch, _ time.Duration) {
			if steps++; steps > 30 && steps < 60 && len(b.Seqs) < clients {
				without++
			}
		})
	if without > 0 {
		t.Errorf("in %d of 30 steps some client has no row", without)
	}
}

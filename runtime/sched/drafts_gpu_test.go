// Drafts on a card, emulated: the texts are those that it gives without, where a row has the same
// bits in the steps of both: in steps of few rows, or in all if it is deterministic. CI's step
// gpu runs it.

package sched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/sample"
)

func TestDraftsOnAGPU(t *testing.T) {
	drivertest.Long(t)
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake", Major: 9,
		Memory: 64 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dev, err := device.Open(f.Driver, device.Options{Arch: "sm_90"})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	_, ckpt, cases := goldenT1(t)
	at := slices.IndexFunc(cases, func(c golden.Case) bool { return len(c.Tokens) == 31 })
	const kinds, most = 8, 40
	var requests []TokenRequest
	for k := range kinds {
		p := sample.Params{Temperature: 1, TopP: 1, Seed: uint64(k), Logprobs: k - 3}
		p.Logprobs = max(p.Logprobs, -1)
		switch k {
		case 0:
			p.Temperature = 0
		case 1:
			p.TopP, p.TopK = 0.8, 30
		case 2:
			p.Temperature, p.RepetitionPenalty = 0, 1.4
		case 3:
			p.FrequencyPenalty, p.LogitBias = 1, map[int32]float32{3: 4, 9: -100}
		}
		requests = append(requests, TokenRequest{Prompt: cases[at].Tokens[:8+k], MaxTokens: most,
			Params: p})
	}
	for _, c := range []struct {
		name string
		s    engine.Settings
	}{
		{"few rows", engine.Settings{MaxNumSeqs: 1}},
		{"deterministic", engine.Settings{MaxNumSeqs: 6, Deterministic: true,
			Compute: engine.Rounded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.Pages, c.s.MaxNumBatchedTokens = 64, 32
			run := func(o Options) (texts [][]Token, stats Stats) {
				s, end := newReal(t, dev, ckpt, o)
				defer end()
				return answers(t, s, requests), s.Stats()
			}
			want, _ := run(Options{Settings: c.s})
			g := guesses{sim: newSim(Options{}, ckpt.Spec.Vocab, 128), none: 6,
				rng: rand.New(rand.NewPCG(8, 8))}
			g.wrote(requests, want)
			c.s.Drafts = 12
			got, stats := run(Options{Settings: c.s, propose: g.propose})
			for i := range got {
				if !slices.EqualFunc(got[i], want[i], func(a, b Token) bool {
					// the card and the host add the logits up for a logprob in different orders
					return a.ID == b.ID && math.Abs(float64(a.Logprob-b.Logprob)) < 1e-4 &&
						len(a.Top) == len(b.Top)
				}) {
					t.Errorf("request %d %+v\ngot  %v\nwant %v", i, requests[i].Params, got[i],
						want[i])
				}
			}
			t.Logf("%+v", stats.Counts)
			if n := uint64(kinds); stats.AcceptedTokens < 2*n || stats.DraftTokens <
				stats.AcceptedTokens+n || stats.Ahead == 0 {
				t.Errorf("%+v: too little was drafted", stats.Counts)
			}
		})
	}
}

package sample

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
)

// asDevice makes a choice from what RowParams says alone, the way a device does.
func asDevice(c engine.SamplingParams, logits []float32) (engine.SampledToken, error) {
	logits = slices.Clone(logits)
	for _, e := range c.Edits {
		v := logits[e.ID]
		if v > 0 {
			v /= e.Repetition
		} else {
			v *= e.Repetition
		}
		logits[e.ID] = v - e.Penalty + e.Bias
	}
	p := Params{Temperature: c.Temperature, TopP: c.TopP, MinP: c.MinP, TopK: int(c.TopK),
		Seed: c.Seed, Logprobs: -1}
	return New(p, len(logits), nil).Next(logits, int(c.Position), c.Mask)
}

// TestRowParams: a device's parameters lead to the token that Next takes, whatever a request
// asks for, wishes that contradict its mask included.
func TestRowParams(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const vocab = 150
	masked, edited, nothing := 0, 0, 0
	for n := range 3000 {
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * 3)
		}
		some := func() bool { return rng.IntN(3) == 0 }
		p := Params{Temperature: float32(rng.IntN(3)), TopP: 1, Seed: rng.Uint64(), Logprobs: -1}
		if some() {
			p.TopP, p.TopK, p.MinP = 0.8, rng.IntN(30), 0.05
		}
		if some() {
			p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = 1.5, 0.25, 0.5
		}
		if some() {
			p.LogitBias = map[int32]float32{}
			for range 1 + rng.IntN(60) {
				p.LogitBias[int32(rng.IntN(vocab))] = []float32{-100, 100, 3, -2}[rng.IntN(4)]
			}
		}
		prompt := []int32{1, 2, 3, 149}
		s := New(p, vocab, prompt)
		if some() {
			s.p.MinTokens = rng.IntN(4)
			s.HoldStops([]int32{7, 20, 140, 1000})
		}
		for range rng.IntN(6) {
			s.Accept(int32(rng.IntN(vocab)))
		}
		var mask []uint64
		if some() {
			mask = make([]uint64, 1+rng.IntN(3)) // may end early
			for range rng.IntN(8) {
				id := rng.IntN(len(mask) * 64)
				mask[id/64] |= 1 << (id % 64)
			}
		}
		want, wantErr := s.Next(logits, n, mask)
		c, err := s.RowParams(n, mask)
		if wantErr != nil {
			nothing++
			if !errors.Is(err, wantErr) {
				t.Fatalf("case %d: %v, the host says %v", n, err, wantErr)
			}
			continue
		}
		if err != nil || len(c.Edits) > s.MaxEdits() {
			t.Fatalf("case %d: %v, %d edits of at most %d", n, err, len(c.Edits), s.MaxEdits())
		}
		if c.Mask != nil {
			masked++
		}
		if len(c.Edits) > 0 {
			edited++
		}
		got, err := asDevice(c, logits)
		if err != nil || got.ID != want.ID {
			t.Fatalf("case %d: token %d (%v), the host takes %d: %+v, mask %x", n, got.ID, err,
				want.ID, p, mask)
		}
	}
	if masked < 500 || edited < 500 || nothing < 20 {
		t.Errorf("%d masks, %d with edits, %d without a token: not enough was tried", masked,
			edited, nothing)
	}
}

func TestCheckedTokens(t *testing.T) {
	for id, want := range map[int32]error{engine.NotFinite: ErrNonFinite,
		engine.NothingAllowed: ErrNothingAllowed} {
		if err := Check(engine.SampledToken{ID: id}); !errors.Is(err, want) {
			t.Errorf("%d: %v", id, err)
		}
	}
	if err := Check(engine.SampledToken{ID: 4}); err != nil {
		t.Error(err)
	}
}

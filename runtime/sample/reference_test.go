// The naive reference that sampling is held to: float64 throughout, everything sorted, every step
// as Params states it.

package sample

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

type naive struct {
	id     int32
	logit  float64
	banned bool
	forced bool
	weight float64
}

// naiveDistribution returns the kept tokens by rising id with their weights, or nil if none is
// allowed.
func naiveDistribution(p Params, logits []float32, prompt, generated, stops []int32,
	mask []uint64) []naive {
	inPrompt := func(id int32) bool { return slices.Contains(prompt, id) }
	count := func(id int32) (n int) {
		for _, g := range generated {
			if g == id {
				n++
			}
		}
		return n
	}
	var all []naive
	for i, l := range logits {
		t := naive{id: int32(i), logit: float64(l)}
		n := count(t.id)
		if r := float64(p.RepetitionPenalty); r != 0 && r != 1 && (n > 0 || inPrompt(t.id)) {
			if t.logit > 0 {
				t.logit /= r
			} else {
				t.logit *= r
			}
		}
		if n > 0 {
			t.logit -= float64(p.FrequencyPenalty)*float64(n) + float64(p.PresencePenalty)
		}
		t.logit = float64(float32(t.logit)) // logits are float32 between the steps
		if b := p.LogitBias[t.id]; b != 0 {
			t.logit = float64(float32(t.logit) + b)
			t.banned = b <= -100
			t.forced = b >= 100
		}
		if mask == nil || i/64 < len(mask) && mask[i/64]>>(i%64)&1 == 1 {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	held := func(t naive) bool {
		return len(generated) < p.MinTokens && slices.Contains(stops,
			t.id)
	}
	anyForced := slices.ContainsFunc(slices.Collect(func(yield func(float32) bool) {
		for _, b := range p.LogitBias {
			if !yield(b) {
				return
			}
		}
	}), func(b float32) bool { return b >= 100 })
	var kept []naive
	for _, ok := range []func(naive) bool{
		func(t naive) bool { return !t.banned && !held(t) && (t.forced || !anyForced) },
		func(t naive) bool { return !t.banned && !held(t) },
		func(t naive) bool { return !t.banned },
		func(naive) bool { return true },
	} {
		kept = slices.DeleteFunc(slices.Clone(all), func(t naive) bool { return !ok(t) })
		if len(kept) > 0 {
			break
		}
	}
	slices.SortStableFunc(kept, func(a, b naive) int { return cmp.Compare(b.logit, a.logit) })
	if p.Temperature == 0 {
		return kept[:1]
	}
	for i := range kept {
		kept[i].weight = math.Exp((kept[i].logit - kept[0].logit) / float64(p.Temperature))
	}
	if p.TopK > 0 && p.TopK < len(kept) {
		kept = kept[:p.TopK]
	}
	if p.TopP < 1 {
		whole, sum := 0.0, 0.0
		for _, t := range kept {
			whole += t.weight
		}
		for i, t := range kept {
			if sum += t.weight; sum >= float64(p.TopP)*whole {
				kept = kept[:i+1]
				break
			}
		}
	}
	if p.MinP > 0 {
		highest := kept[0].logit
		kept = slices.DeleteFunc(kept, func(t naive) bool {
			// weight < MinP without its rounding
			return (t.logit-highest)/float64(p.Temperature) < math.Log(float64(p.MinP))
		})
	}
	slices.SortFunc(kept, func(a, b naive) int { return cmp.Compare(a.id, b.id) })
	return kept
}

func naiveDraw(kept []naive, u float64) int32 {
	whole, sum := 0.0, 0.0
	for _, t := range kept {
		whole += t.weight
	}
	for _, t := range kept {
		if sum += t.weight; sum > u*whole {
			return t.id
		}
	}
	return kept[len(kept)-1].id
}

// situation is one random choice to make. Logits come from a few shapes: those of a model, flat
// ones, and ones on a grid where many are equal.
func situation(rng *rand.Rand) (p Params, logits []float32, prompt, generated, stops []int32,
	mask []uint64) {
	vocab := 1 + rng.IntN(400)
	logits = make([]float32, vocab)
	shape := rng.IntN(4)
	for i := range logits {
		switch shape {
		case 0:
			logits[i] = float32(rng.NormFloat64() * 3)
		case 1:
			logits[i] = float32(rng.NormFloat64() * 0.001)
		case 2:
			logits[i] = float32(rng.IntN(5))
		case 3:
			logits[i] = float32(rng.NormFloat64() * 40)
		}
	}
	ids := func(n int) (s []int32) {
		for range rng.IntN(n + 1) {
			s = append(s, int32(rng.IntN(vocab)))
		}
		return s
	}
	p = Params{Temperature: 1, TopP: 1, Seed: rng.Uint64(), Logprobs: -1}
	some := func() bool { return rng.IntN(3) == 0 }
	if some() {
		p.Temperature = []float32{0, 1e-30, 0.01, 0.7, 1.3, 2, 1e6, 3e38}[rng.IntN(8)]
	}
	if some() {
		p.TopP = []float32{0, 1e-9, 0.1, 0.5, 0.9, 0.99999994}[rng.IntN(6)]
	}
	if some() {
		p.TopK = rng.IntN(vocab + 10)
	}
	if some() {
		p.MinP = []float32{1e-20, 0.01, 0.3, 1}[rng.IntN(4)]
	}
	if some() {
		prompt, generated = ids(20), ids(30)
		p.RepetitionPenalty = []float32{0, 0.5, 1, 1.2, 2}[rng.IntN(5)]
		p.FrequencyPenalty = float32(rng.NormFloat64())
		p.PresencePenalty = float32(rng.NormFloat64())
	}
	if some() {
		p.LogitBias = map[int32]float32{}
		for _, id := range ids(6) {
			p.LogitBias[id] = []float32{-100, 100, -99.5, 3, -3, 0}[rng.IntN(6)]
		}
	}
	if some() {
		stops, p.MinTokens = ids(5), rng.IntN(40)
	}
	if some() {
		mask = make([]uint64, rng.IntN((vocab+63)/64+2))
		for i := range mask {
			switch rng.IntN(3) {
			case 0:
				mask[i] = ^uint64(0)
			case 1:
				mask[i] = rng.Uint64() & rng.Uint64() & rng.Uint64()
			}
		}
	}
	return
}

func compare(t *testing.T, rng *rand.Rand) (allowed bool) {
	t.Helper()
	p, logits, prompt, generated, stops, mask := situation(rng)
	before := slices.Clone(logits)
	position := rng.IntN(1 << 20)
	s := New(p, len(logits), prompt)
	s.HoldStops(stops)
	for _, id := range generated {
		s.Accept(id)
	}
	got, err := s.Next(logits, position, mask)
	if !slices.Equal(logits, before) {
		t.Fatal("Next left the logits changed")
	}
	kept := naiveDistribution(p, logits, prompt, generated, stops, mask)
	if kept == nil {
		if err != ErrNothingAllowed {
			t.Fatalf("nothing is allowed, got %v, %v", got, err)
		}
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	want := naiveDraw(kept, Uniform(p.Seed, position, 0))
	if got.ID != want {
		t.Fatalf("chose %d, the reference %d\nparams %+v\n%d logits, %d kept, mask %x", got.ID,
			want, p, len(logits), len(kept), mask)
	}
	return true
}

func TestChoiceEqualsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	allowed := 0
	for range 12000 {
		if compare(t, rng) {
			allowed++
		}
	}
	if allowed < 10000 {
		t.Fatalf("only %d situations had a choice", allowed)
	}
}

func FuzzChoice(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { compare(t, rand.New(rand.NewPCG(a, b))) })
}

// FuzzParams feeds raw parameters: what Check lets through must give a token, whatever the numbers
// are.
func FuzzParams(f *testing.F) {
	f.Add(float32(1), float32(1), float32(0), 0, float32(0), float32(0), float32(1), int32(3),
		float32(100), uint64(7), float32(2))
	f.Add(float32(1e-45), float32(0), float32(1), 5, float32(-2), float32(3e38), float32(1e-40),
		int32(9), float32(-100), uint64(0), float32(3e38))
	f.Fuzz(func(t *testing.T, temperature, topP, minP float32, topK int, presence, frequency,
		repetition float32,
		id int32, bias float32, maskWord uint64, size float32) {
		const vocab = 130
		p := Params{Temperature: temperature, TopP: topP, MinP: minP, TopK: topK,
			PresencePenalty:  presence,
			FrequencyPenalty: frequency, RepetitionPenalty: repetition,
			LogitBias: map[int32]float32{id: bias}, Logprobs: 3}
		if p.Check(vocab) != nil || math.IsNaN(float64(size)) || math.IsInf(float64(size), 0) {
			t.Skip()
		}
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = size * float32(i%7-3) / 3
		}
		if !scan(logits, make([]float32, blocks(vocab))) {
			t.Skip()
		}
		var mask []uint64
		if maskWord != 0 {
			mask = []uint64{maskWord, 0, 1}
		}
		s := New(p, vocab, []int32{1, 2, 3})
		for position := range 4 {
			c, err := s.Next(logits, position, mask)
			if err != nil {
				t.Fatal(err)
			}
			if mask != nil && mask[c.ID/64]>>(c.ID%64)&1 == 0 {
				t.Fatalf("chose %d, which the mask forbids", c.ID)
			}
			if math.IsNaN(float64(c.Logprob)) || c.Logprob > 0 || len(c.Top) != 3 {
				t.Fatalf("%+v", c)
			}
			s.Accept(c.ID)
		}
	})
}

package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The known answers of the Random123 distribution for philox4x32-10.
func TestPhiloxKnownAnswers(t *testing.T) {
	const f = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{f, f, f, f}, [2]uint32{f, f}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
			0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822,
			0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestExpIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		x := -floorNats * rng.Float64()
		want := math.Exp(x)
		if got := exp2Steps(x * expScale); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("exp(%v) = %v, want %v: relative error %g", x, got, want, (got-want)/want)
		}
	}
	if exp2Steps(0) != 1 {
		t.Fatal("exp(0) is not 1")
	}
}

// A chi-square test of 200,000 draws against the softmax of the logits, at a fixed seed: 19 degrees
// of freedom, and 43.8 is passed once in a thousand by a true sampler.
func TestDrawsFollowTheDistribution(t *testing.T) {
	for _, temperature := range []float32{0.5, 1, 2} {
		const vocab, draws = 20, 200000
		logits := make([]float32, vocab)
		rng := rand.New(rand.NewPCG(5, 6))
		for i := range logits {
			logits[i] = float32(rng.NormFloat64())
		}
		kept := naiveDistribution(Params{Temperature: temperature, TopP: 1}, logits, nil, nil, nil,
			nil)
		whole := 0.0
		for _, k := range kept {
			whole += k.weight
		}
		s := New(Params{Temperature: temperature, TopP: 1, Seed: 42, Logprobs: -1}, vocab, nil)
		var seen [vocab]float64
		for position := range draws {
			c := hosttest.Must(s.Next(logits, position, nil))(t)
			seen[c.ID]++
		}
		chi := 0.0
		for i, k := range kept {
			want := draws * k.weight / whole
			chi += (seen[i] - want) * (seen[i] - want) / want
		}
		if chi > 43.8 {
			t.Errorf("temperature %v: chi-square %.1f", temperature, chi)
		}
	}
}

// Seeds and positions must each give a stream of their own: correlations would repeat texts.
func TestUniformIsUniformOverSeedsAndPositions(t *testing.T) {
	seen := map[float64]bool{}
	var bins [16]float64
	const n = 64
	for seed := range uint64(n) {
		for position := range n {
			for stream := range uint32(4) {
				u := Uniform(seed, position, stream)
				if u < 0 || u >= 1 || seen[u] {
					t.Fatalf("seed %d position %d stream %d: %v is out of range or repeated", seed,
						position, stream, u)
				}
				seen[u] = true
				bins[int(u*16)]++
			}
		}
	}
	chi := 0.0
	for _, b := range bins {
		want := float64(n * n * 4 / 16)
		chi += (b - want) * (b - want) / want
	}
	if chi > 37.7 { // 15 degrees of freedom, once in a thousand
		t.Errorf("chi-square %.1f", chi)
	}
}

func TestTiesGoToTheLowestID(t *testing.T) {
	logits := make([]float32, 300)
	logits[7], logits[130], logits[299] = 2, 2, 2
	for _, p := range []Params{{}, {Temperature: 1, TopP: 1, TopK: 1}, {Temperature: 1}} {
		for position := range 20 {
			if c, err := New(p, 300, nil).Next(logits, position, nil); err != nil || c.ID != 7 {
				t.Fatalf("%+v: got %v, %v", p, c, err)
			}
		}
	}
}

func TestNonFiniteLogitsAreAnError(t *testing.T) {
	for n := 1; n < 70; n += 17 {
		for at := range n {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				logits := make([]float32, n)
				logits[at] = float32(bad)
				for _, p := range []Params{{}, Defaults()} {
					if _, err := New(p, n, nil).Next(logits, 0, []uint64{1}); !errors.Is(err,
						ErrNonFinite) {
						t.Fatalf("%v at %d of %d: %v", bad, at, n, err)
					}
				}
			}
		}
	}
	logits := []float32{math.MaxFloat32, -math.MaxFloat32, 0}
	if c, err := New(Params{Temperature: 1, TopP: 1, Logprobs: 2}, 3, nil).Next(logits, 0,
		nil); err != nil || c.ID != 0 {
		t.Fatalf("the largest finite logits: %v, %v", c, err)
	}
	if _, err := New(Params{}, 4, nil).Next(logits, 0, nil); err == nil {
		t.Fatal("a short row was taken")
	}
}

// Logprobs are the model's own: penalties, bias, mask and temperature choose the token but do not
// change them.
func TestLogprobsAreOfTheModel(t *testing.T) {
	logits := []float32{1, 3, 2, 0, -1}
	norm := 0.0
	for _, l := range logits {
		norm += math.Exp(float64(l))
	}
	norm = math.Log(norm)
	p := Params{Temperature: 0.2, TopP: 0.5, TopK: 2, LogitBias: map[int32]float32{3: 100, 1: -100},
		Logprobs: 3}
	c, err := New(p, 5, []int32{0, 1}).Next(logits, 9, []uint64{0b01101})
	if err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-6 }
	if c.ID != 3 || !near(float64(c.Logprob), 0-norm) || len(c.Top) != 3 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []int32{1, 2, 0} {
		if c.Top[i].ID != want || !near(float64(c.Top[i].Logprob), float64(logits[want])-norm) {
			t.Fatalf("rival %d: %+v", i, c.Top[i])
		}
	}
	p.Logprobs = 20
	if c, err = New(p, 5, nil).Next(logits, 9, nil); err != nil || len(c.Top) != 5 {
		t.Fatalf("more rivals than tokens: %+v %v", c, err)
	}
}

func TestMinTokensHoldsStops(t *testing.T) {
	logits := []float32{0, 9, 1}
	s := New(Params{MinTokens: 2}, 3, nil)
	s.HoldStops([]int32{1, 77})
	for i, want := range []int32{2, 2, 1, 1} {
		c, err := s.Next(logits, i, nil)
		if err != nil || c.ID != want {
			t.Fatalf("token %d: %v %v, want %d", i, c, err, want)
		}
		s.Accept(c.ID)
	}
}

// The same seed gives the same text, another seed another one; Next may be asked again without a
// change.
func TestSeeds(t *testing.T) {
	logits := make([]float32, 1000)
	text := func(seed uint64) (ids []int32) {
		s := New(Params{Temperature: 1, TopP: 1, Seed: seed, FrequencyPenalty: 0.5}, 1000, nil)
		for position := range 50 {
			c, _ := s.Next(logits, position, nil)
			if again, _ := s.Next(logits, position, nil); again.ID != c.ID {
				t.Fatal("asked again, another token")
			}
			s.Accept(c.ID)
			ids = append(ids, c.ID)
		}
		return ids
	}
	if !slices.Equal(text(1), text(1)) || slices.Equal(text(1), text(2)) {
		t.Fatal("seeds do not decide the text")
	}
	if first, second := Defaults(), Defaults(); first.Seed == second.Seed {
		t.Fatal("two requests without a seed would have the same text")
	}
}

func TestCheck(t *testing.T) {
	hosttest.Check(t, Defaults().Check(10))
	hosttest.Check(t, (Params{}).Check(10))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for param, bad := range map[string][]func(*Params){
		"temperature": {func(p *Params) { p.Temperature = -1 },
			func(p *Params) { p.Temperature = nan }, func(p *Params) { p.Temperature = inf }},
		"top_p":              {func(p *Params) { p.TopP = 1.1 }, func(p *Params) { p.TopP = nan }},
		"min_p":              {func(p *Params) { p.MinP = -0.1 }, func(p *Params) { p.MinP = nan }},
		"presence_penalty":   {func(p *Params) { p.PresencePenalty = inf }},
		"frequency_penalty":  {func(p *Params) { p.FrequencyPenalty = nan }},
		"repetition_penalty": {func(p *Params) { p.RepetitionPenalty = -1 }},
		"top_logprobs": {func(p *Params) { p.Logprobs = 21 },
			func(p *Params) { p.Logprobs = -2 }},
		"min_tokens": {func(p *Params) { p.MinTokens = -1 }},
		"logit_bias": {func(p *Params) { p.LogitBias = map[int32]float32{10: 1} },
			func(p *Params) { p.LogitBias = map[int32]float32{-1: 1} },
			func(p *Params) { p.LogitBias = map[int32]float32{1: 101} },
			func(p *Params) { p.LogitBias = map[int32]float32{1: nan} }},
	} {
		for i, set := range bad {
			p := Defaults()
			set(&p)
			var e *ParamError
			if err := p.Check(10); !errors.As(err, &e) || e.Param != param {
				t.Errorf("%s, value %d: %v", param, i, err)
			}
		}
	}
}

const gptOSSVocab = 201088

// modelLogits has the shape of a model's: most far below a few.
func modelLogits() []float32 {
	rng := rand.New(rand.NewPCG(7, 8))
	logits := make([]float32, gptOSSVocab)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 2)
	}
	for range 50 {
		logits[rng.IntN(len(logits))] = 10 + float32(rng.NormFloat64()*3)
	}
	return logits
}

func TestNothingIsAllocatedPerToken(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	logits := modelLogits()
	for name, p := range benchmarkParams() {
		if p.Logprobs > 0 {
			continue
		}
		s := New(p, gptOSSVocab, []int32{1, 2, 3})
		s.HoldStops([]int32{5})
		if n := testing.AllocsPerRun(5, func() { s.Next(logits, 1, nil) }); n > 0.5 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func benchmarkParams() map[string]Params {
	plain := Params{Temperature: 1, TopP: 1, Seed: 1, Logprobs: -1}
	with := func(set func(*Params)) Params { p := plain; set(&p); return p }
	return map[string]Params{
		"plain":      plain,
		"greedy":     with(func(p *Params) { p.Temperature = 0 }),
		"logprobs20": with(func(p *Params) { p.Logprobs = 20 }),
		"topp0.9":    with(func(p *Params) { p.TopP = 0.9 }),
		"topk50":     with(func(p *Params) { p.TopK = 50 }),
		"minp0.05":   with(func(p *Params) { p.MinP = 0.05 }),
		"penalties":  with(func(p *Params) { p.PresencePenalty, p.RepetitionPenalty = 1, 1.1 }),
		"force":      with(func(p *Params) { p.LogitBias = map[int32]float32{5: 100} }),
	}
}

func BenchmarkNext(b *testing.B) {
	logits := modelLogits()
	params := benchmarkParams()
	for _, name := range []string{"plain", "greedy", "logprobs20", "topp0.9", "topk50", "minp0.05",
		"penalties", "force"} {
		b.Run(name, func(b *testing.B) {
			s := New(params[name], gptOSSVocab, nil)
			for id := range int32(1000) {
				s.Accept(id)
			}
			b.ReportAllocs()
			position := 0
			for b.Loop() {
				position++
				if _, err := s.Next(logits, position, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	few, text := make([]uint64, gptOSSVocab/64), make([]uint64, gptOSSVocab/64)
	few[3] = 0xff
	for i := range text { // as inside a JSON string: every second word lacks a token
		text[i] = ^(uint64(i&1) << (i % 64))
	}
	for name, mask := range map[string][]uint64{"mask": few, "maskText": text} {
		b.Run(name, func(b *testing.B) {
			s := New(params["plain"], gptOSSVocab, nil)
			for b.Loop() {
				if _, err := s.Next(logits, 1, mask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleSampler() {
	logits := []float32{0, 2, 1}
	s := New(Params{Temperature: 0}, len(logits), nil)
	c, err := s.Next(logits, 0, nil)
	fmt.Println(c.ID, err)
	c, err = s.Next(logits, 0, []uint64{0b101}) // token 1 is not allowed
	fmt.Println(c.ID, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
}

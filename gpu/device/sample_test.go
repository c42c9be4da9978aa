package device

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
)

// Tokens chosen on the card: the same as the host chooses from the same logits, one step ahead,
// under masks that follow from the step before.

// tinyEngine is an engine on the fake of an API.
func tinyEngine(t *testing.T, api driver.API) *engine.InProcess {
	t.Helper()
	dev, _ := open(t, api)
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// only is a mask of some tokens.
func only(vocab int, ids ...int) []uint64 {
	m := make([]uint64, (vocab+63)/64)
	for _, id := range ids {
		m[id/64] |= 1 << (id % 64)
	}
	return m
}

// sampleOne runs a batch with one logit row and gives its token.
func sampleOne(t *testing.T, eng *engine.InProcess, b *engine.Batch,
	c engine.SamplingParams) engine.SampledToken {
	t.Helper()
	var chosen [1]engine.SampledToken
	if err := errors.Join(eng.Queue(t.Context(), b, nil), eng.Sample([]engine.SamplingParams{c}),
		eng.Wait(chosen[:])); err != nil {
		t.Fatal(err)
	}
	return chosen[0]
}

// TestSampleAsTheHost: the device's choice is the host's, for each parameter and with logprobs.
func TestSampleAsTheHost(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			eng := tinyEngine(t, api)
			vocab := eng.Spec().Vocab
			logits := make([]float32, vocab)
			hosttest.Check(t, eng.Step(t.Context(), prompt(), logits))
			odd := []int{}
			for i := 1; i < vocab; i += 2 {
				odd = append(odd, i)
			}
			different := map[int32]bool{}
			for _, x := range []struct {
				p    sample.Params
				mask []uint64
			}{
				{sample.Params{Temperature: 0, Logprobs: 3}, nil},
				{sample.Params{Temperature: 1, TopP: 1, Seed: 1}, nil},
				{sample.Params{Temperature: 1, TopP: 1, Seed: 2}, nil},
				{sample.Params{Temperature: 2, TopP: 1, Seed: 3, TopK: 7}, nil},
				{sample.Params{Temperature: 1.5, TopP: 0.6, Seed: 4}, nil},
				{sample.Params{Temperature: 3, TopP: 1, MinP: 0.2, Seed: 5}, nil},
				{sample.Params{Temperature: 1, TopP: 1, Seed: 6, Logprobs: 20},
					only(vocab, odd...)},
				{sample.Params{Temperature: 0, Logprobs: 0}, only(vocab, 17)},
			} {
				want := hosttest.Must(sample.New(x.p, vocab, nil).Next(slices.Clone(logits), 2,
					x.mask))(t)
				topP := x.p.TopP
				if x.p.Temperature == 0 {
					topP = 1
				}
				got := sampleOne(t, eng, prompt(),
					engine.SamplingParams{Draw: engine.Draw{Temperature: x.p.Temperature,
						TopP: topP,
						MinP: x.p.MinP, TopK: int32(x.p.TopK), Seed: x.p.Seed, Position: 2},
						Mask: x.mask, Logprobs: x.p.Logprobs})
				different[got.ID] = true
				if got.ID != want.ID {
					t.Errorf("%+v: token %d, the host takes %d", x.p, got.ID, want.ID)
				}
				if math.Abs(float64(got.Logprob-want.Logprob)) > 1e-4 ||
					len(got.Top) != len(want.Top) {
					t.Errorf("%+v: logprob %v and %d rivals, not %v and %d", x.p, got.Logprob,
						len(got.Top), want.Logprob, len(want.Top))
				}
				for i := range got.Top {
					if got.Top[i].ID != want.Top[i].ID ||
						math.Abs(float64(got.Top[i].Logprob-want.Top[i].Logprob)) > 1e-4 {
						t.Errorf("%+v: rival %d is %v, not %v", x.p, i, got.Top[i], want.Top[i])
					}
				}
			}
			if len(different) < 3 {
				t.Errorf("only %d different tokens: nothing was tried", len(different))
			}
		})
	}
}

// TestSampleEdits: a bias and a penalty change the choice, not the logprob.
func TestSampleEdits(t *testing.T) {
	eng := tinyEngine(t, driver.CUDA)
	plain := sampleOne(t, eng, prompt(), engine.SamplingParams{Draw: engine.Draw{TopP: 1},
		Logprobs: 1})
	other := sampleOne(t, eng, prompt(), engine.SamplingParams{Draw: engine.Draw{TopP: 1},
		Logprobs: 1,
		Edits:    []engine.Edit{{ID: plain.ID, Repetition: 1, Penalty: 1000}}})
	if other.ID == plain.ID || !slices.Equal(other.Top, plain.Top) {
		t.Errorf("%+v, and with its token penalised %+v", plain, other)
	}
	forced := sampleOne(t, eng, prompt(), engine.SamplingParams{Draw: engine.Draw{TopP: 1},
		Logprobs: 0,
		Edits:    []engine.Edit{{ID: 9, Repetition: 1, Bias: 1000}}})
	if forced.ID != 9 || forced.Logprob >= plain.Logprob {
		t.Errorf("%+v with a bias of 1000 on 9", forced)
	}
}

// TestGreedyIsOneLaunch: a step whose rows have no temperature launches no kernel that draws.
func TestGreedyIsOneLaunch(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	defer eng.Close()
	for _, temperature := range []float32{0, 1} {
		sampleOne(t, eng, prompt(), engine.SamplingParams{Logprobs: -1,
			Draw: engine.Draw{Temperature: temperature, TopP: 1}})
		if drawn := dev.kernels.functions["sample"] != nil; drawn != (temperature != 0) ||
			dev.kernels.functions["sample_look"] == nil {
			t.Errorf("temperature %g: a kernel drew: %v", temperature, drawn)
		}
	}
}

// TestSampleNothing: a mask without a token is an error.
func TestSampleNothing(t *testing.T) {
	eng := tinyEngine(t, driver.CUDA)
	if got := sampleOne(t, eng, prompt(), engine.SamplingParams{Draw: engine.Draw{TopP: 1},
		Logprobs: -1,
		Mask:     only(eng.Spec().Vocab)}); got.ID != engine.NothingAllowed {
		t.Errorf("token %d", got.ID)
	}
}

// decode is one row at a position.
func decode(token int32, at int) *engine.Batch {
	return &engine.Batch{Tokens: []int32{token}, LogitRows: []int32{0},
		Seqs: []engine.SeqRows{{Start: int32(at), Rows: 1, Full: []int32{1}, Window: []int32{2}}}}
}

// TestOneStepAhead: each step is queued before the token of the one before it is read, and its mask
// made after; the text is that of steps that wait.
func TestOneStepAhead(t *testing.T) {
	const steps = 8
	eng := tinyEngine(t, driver.CUDA)
	vocab := eng.Spec().Vocab
	without := func(token int32) []uint64 { // the rule of this grammar: no token twice in a row
		m := only(vocab)
		for i := range m {
			m[i] = ^uint64(0)
		}
		m[token/64] &^= 1 << (token % 64)
		return m
	}
	choice := func(position int, mask []uint64) []engine.SamplingParams {
		return []engine.SamplingParams{{Draw: engine.Draw{Temperature: 1, TopP: 1, Seed: 11,
			Position: int64(position)}, Mask: mask, Logprobs: -1}}
	}
	var waiting []int32
	token := int32(5)
	for i := range steps {
		var chosen [1]engine.SampledToken
		hosttest.Check(t, errors.Join(eng.Queue(t.Context(), decode(token, i), nil),
			eng.Sample(choice(i+1, without(token))), eng.Wait(chosen[:])))
		token = chosen[0].ID
		waiting = append(waiting, token)
	}
	var ahead []int32
	hosttest.Check(t, errors.Join(eng.Queue(t.Context(), decode(5, 0), nil),
		eng.Sample(choice(1, without(5)))))
	for i := 1; i <= steps; i++ {
		var chosen [1]engine.SampledToken
		if i < steps {
			hosttest.Check(t, eng.Queue(t.Context(), decode(0, i), []int32{0}))
		}
		hosttest.Check(t, eng.Wait(chosen[:]))
		ahead = append(ahead, chosen[0].ID)
		if i < steps {
			hosttest.Check(t, eng.Sample(choice(i+1, without(chosen[0].ID))))
		}
	}
	if !slices.Equal(waiting, ahead) || slices.Max(waiting) == slices.Min(waiting) {
		t.Errorf("%v ahead, %v waiting", ahead, waiting)
	}
}

func TestSamplingRefusals(t *testing.T) {
	eng := tinyEngine(t, driver.CUDA)
	if !eng.Caps().Samples {
		t.Error("a GPU does not sample")
	}
	one := []engine.SamplingParams{{Draw: engine.Draw{TopP: 1}, Logprobs: -1}}
	if eng.Sample(one) == nil || eng.Wait(make([]engine.SampledToken, 1)) == nil {
		t.Error("a sample of nothing: accepted")
	}
	if eng.Queue(t.Context(), next(), []int32{0}) == nil {
		t.Error("a token of a sample that was not: accepted")
	}
	hosttest.Check(t, eng.Queue(t.Context(), next(), nil))
	for what, choices := range map[string][]engine.SamplingParams{
		"none": nil, "two": {{}, {}},
		"a token beyond the vocabulary": {{Edits: []engine.Edit{{ID: 96}}}},
	} {
		if eng.Sample(choices) == nil {
			t.Errorf("%s for a step with one row of logits: accepted", what)
		}
	}
	for range 2 {
		hosttest.Check(t, errors.Join(eng.Queue(t.Context(), next(), nil), eng.Sample(one)))
	}
	hosttest.Check(t, eng.Queue(t.Context(), next(), nil))
	if eng.Sample(one) == nil {
		t.Error("a third sample under way: accepted")
	}
	for range 2 {
		if err := eng.Wait(make([]engine.SampledToken, 1)); err != nil {
			t.Error(err)
		}
	}
}

// waitingDevice hides that its steps choose tokens.
type waitingDevice struct{ engine.Device }

func (d waitingDevice) Compile(p *engine.Program) (engine.Step, error) {
	s, err := d.Device.Compile(p)
	return struct{ engine.Step }{s}, err
}

// TestNoSampling: a device that does not choose tokens says so.
func TestNoSampling(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(waitingDevice{dev}, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 1}))(t)
	defer eng.Close()
	if err := eng.Queue(t.Context(), next(), nil); !errors.Is(err, engine.ErrNoSampling) {
		t.Errorf("%v", err)
	}
}

package device

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// The card's choice of tokens is compared with the host's sampler: the same tokens and rivals from
// the same logits. What must stay true: the rows of a step are chosen in different ways; if the
// card chooses otherwise, the host samples instead.

// startVocab is a small vocabulary, tried at a start in a moment; the self-test has the real one.
const startVocab = 1000

var startRows, allRows = []int{1, 5}, []int{1, 2, 5, 16, 33, 64}

// logprobBound is how far a logprob may be from the host's, which sums in another order.
const logprobBound = 1e-4

// ProveSampling compares choices of a vocabulary on the card with the host's, and disables choosing
// on the card if they differ.
func (d *Device) ProveSampling(ctx context.Context, vocab int) (Proof, error) {
	p, err := d.proveSampling(ctx, vocab, allRows)
	if err == nil && !p.OK {
		d.Disable(Sampling)
	}
	return p, err
}

func (d *Device) proveSampling(ctx context.Context, vocab int, steps []int) (p Proof, err error) {
	p = Proof{Variant: Sampling, Bound: logprobBound}
	most := slices.Max(steps)
	s := &step{dev: d, p: &engine.Program{Rows: most, Spec: models.Spec{Vocab: vocab},
		Settings: engine.Settings{MaxNumBatchedTokens: most}}}
	defer func() {
		if s.sampler != nil {
			err = errors.Join(err, s.sampler.leave())
		}
		if s.logits != nil {
			err = errors.Join(err, s.logits.leave())
		}
	}()
	if s.logits, err = d.shareMemory(logitsMemory, 4*int64(most)*int64(vocab)); err != nil {
		return p, err
	}
	if err := s.joinSampler(); err != nil {
		return p, err
	}
	random := rand.New(rand.NewPCG(5, 5))
	logits := make([]float32, most*vocab)
	for i := range logits {
		logits[i] = float32(4 * random.NormFloat64())
	}
	for round, rows := range steps {
		for _, logprobs := range []bool{false, true} { // they take other ways back to the host
			if err := ctx.Err(); err != nil {
				return p, err
			}
			choices := make([]engine.SamplingParams, rows)
			for row := range choices {
				choices[row] = proofChoice(random, vocab, row+round, logprobs)
			}
			if err := s.holdToHost(&p, logits[:rows*vocab], choices); err != nil {
				return p, withVariants(fmt.Errorf("choose tokens: %w", err), Sampling)
			}
		}
	}
	p.OK = p.Why == ""
	return p, nil
}

// proofChoice is one of the ways to choose, each of which the numbers from n on reach.
func proofChoice(random *rand.Rand, vocab, n int, logprobs bool) engine.SamplingParams {
	c := engine.SamplingParams{Logprobs: -1, Draw: engine.Draw{Temperature: 1, TopP: 1,
		Seed: random.Uint64(), Position: int64(n)}}
	switch n % 8 {
	case 0:
		c.Temperature = 0
	case 1:
		c.Temperature = 1.7
	case 2:
		c.TopK = 40
	case 3:
		c.TopP = 0.8
	case 4:
		c.MinP = 0.05
	case 5:
		c.Temperature, c.TopK, c.TopP, c.MinP = 0.7, 50, 0.95, 0.01
	}
	if n%3 == 1 { // penalties and a bias
		for i := range 20 {
			c.Edits = append(c.Edits, engine.Edit{ID: int32(i * (vocab - 1) / 19), Repetition: 1.3,
				Penalty: 0.5, Bias: float32(i % 4)})
		}
	}
	if n%4 == 2 {
		c.Mask = make([]uint64, (vocab+63)/64)
		for i := range c.Mask {
			c.Mask[i] = random.Uint64() & random.Uint64()
		}
		c.Mask[len(c.Mask)-1] &= 1<<((vocab-1)%64) - 1 // no token beyond the vocabulary
	}
	if logprobs {
		c.Logprobs = n % (mostRivals + 1)
	}
	return c
}

// holdToHost chooses on the card and on the host, and notes differences in p.
func (s *step) holdToHost(p *Proof, logits []float32, choices []engine.SamplingParams) error {
	if err := s.logits.Write(0, engine.Bytes(logits)); err != nil { // edits change it
		return err
	}
	got, err := s.chooseNow(choices)
	if err != nil {
		return err
	}
	for row, c := range choices {
		want, err := sample.Row(logits[row*s.p.Spec.Vocab:][:s.p.Spec.Vocab], c)
		if err != nil {
			return fmt.Errorf("on the host: %w", err)
		}
		diff := math.Abs(float64(got[row].Logprob) - float64(want.Logprob))
		same := got[row].ID == want.ID && len(got[row].Top) == len(want.Top)
		for i := 0; i < len(want.Top) && same; i++ {
			same = got[row].Top[i].ID == want.Top[i].ID
			diff = max(diff, math.Abs(float64(got[row].Top[i].Logprob)-
				float64(want.Top[i].Logprob)))
		}
		if p.Error = max(p.Error, diff); p.Why == "" && (!same || !(diff <= p.Bound)) {
			p.Why = fmt.Sprintf("row %d of %d, vocabulary %d: token %d, the host's is %d (%+v), "+
				"logprobs off by %.2g", row, len(choices), s.p.Spec.Vocab, got[row].ID, want.ID,
				c.Draw, diff)
		}
	}
	return nil
}

func (s *step) chooseNow(choices []engine.SamplingParams) ([]engine.SampledToken, error) {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	slot := &s.sampler.slots[0]
	if err := s.choose(slot, choices); err != nil {
		return nil, errors.Join(err, s.dev.stream.Synchronize())
	}
	list := make([]engine.SampledToken, len(choices))
	return list, slot.wait(list)
}

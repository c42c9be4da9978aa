package bench

// What the memory plan can expect: the bytes of a step, which the plan knows, at the rates at which
// the operations move theirs in an excerpt of the model. The excerpt is two layers, one of each
// kind of attention, of random weights and of the same widths, with an eighth of the vocabulary:
// its weights do not fit in caches, and it can be made for a model that is not here.
//
// What must stay true: a prediction is made between the steps that it is set beside, since other
// work on the machine changes both, and it sees nothing of these steps but their shape.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

const (
	excerptLayers = 2
	excerptVocab  = 8 // this part of the vocabulary
	// how often an excerpt's step is timed in a round of decoding
	excerptSteps = 32
)

func excerptOf(s models.Spec) models.Spec {
	s.Layers = min(s.Layers, excerptLayers)
	s.Vocab /= excerptVocab
	return s
}

// openExcerpt has room for the same measurements. Where memory is short nothing is predicted.
func (b *run) openExcerpt() error {
	s := excerptOf(b.ckpt.Spec)
	if _, free := b.on.Memory(); s.WeightBytes() > free {
		b.o.Progress(fmt.Sprintf("nothing is predicted: %.1f GB for an excerpt of the model are "+
			"not free", float64(s.WeightBytes())/1e9))
		return nil
	}
	ckpt, err := checkpoint.Synthetic(s, 2)
	if err != nil {
		return err
	}
	b.excerpt = &run{ctx: b.ctx, o: b.o, on: b.on, gauge: b.gauge, ckpt: ckpt, random: b.random,
		untapped: b.untapped}
	b.excerpt.o.Settings.DenseCache = "" // that of the model
	if err := b.excerpt.open(); err != nil {
		return err
	}
	return b.excerpt.fillCache()
}

func (b *run) closeExcerpt() error {
	small := b.excerpt
	if small == nil {
		return nil
	}
	b.excerpt = nil
	return errors.Join(small.close(), small.ckpt.Close())
}

// stepTimes is how long the operations of a step took, by name, and what they moved.
type stepTimes struct {
	work           engine.Work
	seconds, bytes map[string]float64
}

func (b *run) paceOf(x *engine.Batch) stepTimes {
	timings := b.timed(x)
	chosen := b.expertsRead(x)
	p := stepTimes{b.program.WorkOf(x), map[string]float64{}, map[string]float64{}}
	for i, op := range b.program.Ops {
		name := operationName(op, true)
		p.seconds[name] += float64(timings[i].Nanoseconds) / 1e9
		p.bytes[name] += float64(b.program.BytesWith(op, p.work, chosen))
	}
	return p
}

// evenly is how many experts of a layer some rows choose together where routing is even.
func evenly(s models.Spec, rows int) float64 {
	others := 1 - float64(s.ExpertsPerToken)/float64(s.Experts)
	return float64(s.Experts) * (1 - math.Pow(others, float64(rows)))
}

// of is the seconds of the same step of another program at this pace. Routing is taken as even.
func (p stepTimes) of(program *engine.Program) (seconds float64) {
	s, bytes := program.Spec, map[string]float64{}
	chosen := evenly(s, p.work.Rows)
	for _, op := range program.Ops {
		bytes[operationName(op, true)] += float64(program.BytesWith(op, p.work, chosen))
	}
	for name, n := range bytes {
		seconds += p.seconds[name] * over(n, p.bytes[name])
	}
	return seconds
}

// predict is the seconds that a step is expected to take; 0 where nothing is predicted.
func (b *run) predict(sequences, start, rows int, logits bool) (seconds float64) {
	if b.excerpt == nil {
		return 0
	}
	x := b.excerpt.batch(sequences, start, rows)
	if !logits {
		x.LogitRows = nil
	}
	p := b.excerpt.paceOf(x)
	b.err = cmp.Or(b.err, b.excerpt.err)
	return p.of(b.program)
}

const (
	// what an excerpt needs for one sequence is little: the experts that a token chooses, and less
	// of the vocabulary
	expectVocab = 16
	expectSteps = 7
)

// Expect is how many tokens a second one answer of each model is expected to have at its beginning,
// in about a second and with a few hundred megabytes, without the models: they have to have the
// widths of the first; 0 for those that have not.
func Expect(ctx context.Context, on engine.Backend, list []models.Spec, s engine.Settings) (
	rates []float64, err error) {
	first := list[0]
	small := excerptOf(first)
	small.Experts, small.Vocab = first.ExpertsPerToken, first.Vocab/expectVocab
	ckpt, err := checkpoint.Synthetic(small, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	s.MaxNumBatchedTokens, s.DenseCache = fewSteps, ""
	b := newRun(ctx, on, nil, ckpt, Options{Settings: s, Steps: expectSteps})
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(); err != nil {
		return nil, err
	}
	took := make([][]float64, len(list))
	for i := range expectSteps {
		p := b.paceOf(b.batch(1, firstContext+i, 1))
		if b.err != nil {
			return nil, b.err
		}
		for j, spec := range list {
			program, err := engine.Record(spec, b.eng.Settings(), 1)
			if err != nil {
				return nil, err
			}
			took[j] = append(took[j], p.of(program))
		}
	}
	for j, spec := range list {
		rate := over(1, median(took[j]))
		if spec.Hidden != first.Hidden || spec.Intermediate != first.Intermediate {
			rate = 0
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

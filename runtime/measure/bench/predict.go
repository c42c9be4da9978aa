package bench

// Predicts speed for the memory plan: the bytes of a step, which the plan knows, at the rates of
// the operations in an excerpt of the model. The excerpt is two layers, one of each kind of
// attention, of random weights and of the same widths, with an eighth of the vocabulary: its
// weights do not fit in caches, and it can be made for a model that is not downloaded.
//
// What must stay true: a prediction is made between the steps that it is compared with, since other
// work on the machine changes both, and it uses only the shape of these steps.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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

// openExcerpt loads the excerpt for the same measurements; if memory is short, nothing is
// predicted.
func (b *run) openExcerpt() error {
	s := excerptOf(b.ckpt.Spec)
	if _, free := b.backend.Memory(); s.WeightBytes() > free {
		b.o.Progress(fmt.Sprintf("nothing is predicted: %.1f GB for an excerpt of the model are "+
			"not free", float64(s.WeightBytes())/1e9))
		return nil
	}
	ckpt, err := checkpoint.Synthetic(s, 2)
	if err != nil {
		return err
	}
	b.excerpt = &run{ctx: b.ctx, o: b.o, backend: b.backend, gauge: b.gauge, ckpt: ckpt,
		random: b.random, untapped: b.untapped}
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

// stepTimes are the times of a step's operations, by name, and their bytes.
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

// expectedExperts is how many experts of a layer some rows choose together if routing is even.
func expectedExperts(s models.Spec, rows int) float64 {
	miss := 1 - float64(s.ExpertsPerToken)/float64(s.Experts)
	return float64(s.Experts) * (1 - math.Pow(miss, float64(rows)))
}

// timeOf is the seconds of the same step of another program at this pace. Routing is taken as even.
func (p stepTimes) timeOf(program *engine.Program) (seconds float64) {
	s, bytes := program.Spec, map[string]float64{}
	chosen := expectedExperts(s, p.work.Rows)
	for _, op := range program.Ops {
		bytes[operationName(op, true)] += float64(program.BytesWith(op, p.work, chosen))
	}
	for name, n := range bytes {
		seconds += p.seconds[name] * ratio(n, p.bytes[name])
	}
	return seconds
}

// predict is the expected seconds of a step; 0 without an excerpt.
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
	return p.timeOf(b.program)
}

const (
	// an excerpt needs little for one sequence: the experts that a token chooses, and less of the
	// vocabulary
	expectVocab = 16
	expectSteps = 7
)

// Expect is the expected tokens a second of one answer of each model at its beginning, measured in
// about a second and with a few hundred megabytes, without the models. All must have the widths of
// the first; 0 for the others.
func Expect(ctx context.Context, backend engine.Backend, list []models.Spec, s engine.Settings) (
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
	b := newRun(ctx, backend, nil, ckpt, Options{Settings: s, Steps: expectSteps})
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
			took[j] = append(took[j], p.timeOf(program))
		}
	}
	for j, spec := range list {
		rate := ratio(1, slices.Min(took[j])) // others slow a reading, nothing speeds it
		if spec.Hidden != first.Hidden || spec.Intermediate != first.Intermediate {
			rate = 0
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

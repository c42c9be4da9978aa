package bench

// What a memory plan can expect before the measurements: from two steps at the start it is known
// which share of plain reads and of plain multiply-adds each class of operation reaches here; a
// step's bytes and products, which the plan knows, then say how long it takes.

import (
	"math"

	"github.com/ossrun/ossrun/runtime/engine"
)

// class are operations that one kernel does.
type class int

const (
	rest class = iota
	attention
	dense
	experts
	classes
)

func classOf(op *engine.Op) class {
	switch op.Kind {
	case engine.Attend:
		return attention
	case engine.Linear, engine.LinearQ8:
		return dense
	case engine.GateUp, engine.Down:
		return experts
	}
	return rest
}

const (
	probed     = 9   // how often a decode step is timed
	probedRows = 128 // of a prompt's step
)

// probe measures the shares: of reads in a step of one sequence behind the longest context, of
// products in a prompt's step.
func (b *run) probe() error {
	deepest := firstContext
	for _, n := range b.o.Contexts {
		deepest = max(deepest, n)
	}
	var reads [classes][]float64
	one := b.batch(1, deepest, 1)
	for range probed {
		seconds, bytes, _, err := b.classTimes(one)
		if err != nil {
			return err
		}
		limit := b.gauge.Bandwidth(b.sample()) // the same kind of average as beside decode's steps
		for c := range classes {
			reads[c] = append(reads[c], over(bytes[c], seconds[c]*limit))
		}
	}
	before, _ := b.peak()
	seconds, _, products, err := b.classTimes(b.batch(1, 0, min(probedRows, b.longest(),
		b.eng.Settings().Rows())))
	if err != nil {
		return err
	}
	after, _ := b.peak()
	for c := range classes {
		b.ofReads[c] = median(reads[c])
		b.ofProducts[c] = over(products[c], seconds[c]*(before+after)/2)
	}
	return nil
}

// longest is the longest prompt that there are pages for.
func (b *run) longest() int { return b.eng.Settings().Pages / 2 * engine.PageTokens }

// classTimes runs a step and sums what its operations took, moved and multiplied.
func (b *run) classTimes(x *engine.Batch) (seconds, bytes, products [classes]float64, err error) {
	timings, err := b.eng.Measure(b.ctx, x, b.logits)
	if err != nil {
		return seconds, bytes, products, err
	}
	chosen, err := b.expertsRead(len(x.Tokens))
	w := b.program.WorkOf(x)
	for i, op := range b.program.Ops {
		c := classOf(op)
		seconds[c] += float64(timings[i].Nanoseconds) / 1e9
		bytes[c] += float64(b.program.BytesWith(op, w, chosen))
		products[c] += float64(operations(b.program, op, w))
	}
	return seconds, bytes, products, err
}

// predict is the tokens a second that a decode step is expected to have where plain reads and
// multiply-adds are as fast as given. Routing is taken as even. Reading and multiplying overlap in
// part, so a class takes the root of the sum of their squares; attention's products are in its
// share of reads, as every token of the cache is multiplied as often in each decode step.
func (b *run) predict(x *engine.Batch, bandwidth, peak float64) float64 {
	s, w := b.ckpt.Spec, b.program.WorkOf(x)
	each := 1 - float64(s.ExpertsPerToken)/float64(s.Experts)
	chosen := float64(s.Experts) * (1 - math.Pow(each, float64(len(x.Tokens))))
	var bytes, products [classes]float64
	for _, op := range b.program.Ops {
		c := classOf(op)
		bytes[c] += float64(b.program.BytesWith(op, w, chosen))
		products[c] += float64(operations(b.program, op, w))
	}
	seconds := 0.0
	for c := range classes {
		reading := over(bytes[c], bandwidth*b.ofReads[c])
		if c == attention {
			products[c] = 0
		}
		seconds += math.Hypot(reading, over(products[c], peak*b.ofProducts[c]))
	}
	return over(float64(len(x.Seqs)), seconds)
}

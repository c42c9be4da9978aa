package bench

// Where the time of a step goes, by kind of operation.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// profiled is how often a step of bench is timed.
const profiled = 3

// measured times every operation of a step some times and adds up those of one name; medians count.
// apart holds full and windowed attention apart. The limits are measured behind each time.
func (b *run) measured(x *engine.Batch, times int, apart bool) (list []Operation,
	experts float64, err error) {
	var limits, peaks []float64
	var order []string
	sums, each := map[string]*Operation{}, map[string][]float64{}
	work := b.program.WorkOf(x)
	for run := range times {
		timings, err := b.eng.Measure(b.ctx, x, b.logits)
		if err != nil {
			return nil, 0, err
		}
		peak, _ := b.peak()
		limits, peaks = append(limits, b.read()), append(peaks, peak)
		if experts, err = b.expertsRead(len(x.Tokens)); err != nil {
			return nil, 0, err
		}
		for i, op := range b.program.Ops {
			name := operationName(op, apart)
			o := sums[name]
			if o == nil {
				o = &Operation{Name: name}
				sums[name] = o
				order = append(order, name)
			}
			if run == 0 {
				o.Bytes += b.program.BytesWith(op, work, experts)
				o.TOPS += float64(operations(b.program, op, work)) // a sum for now, a rate below
			}
			if len(each[name]) == run {
				each[name] = append(each[name], 0)
			}
			each[name][run] += float64(timings[i].Nanoseconds) / 1e6
		}
	}
	whole := 0.0
	for _, name := range order {
		o := sums[name]
		o.Milliseconds = median(each[name])
		o.Least, o.Most = slices.Min(each[name]), slices.Max(each[name])
		whole += o.Milliseconds
	}
	limit, peak := median(limits), median(peaks)
	for _, name := range order {
		o := sums[name]
		if o.Milliseconds > 0 {
			seconds := o.Milliseconds / 1e3
			o.GBPerS = float64(o.Bytes) / seconds / 1e9
			o.OfRead = over(o.GBPerS*1e9, limit)
			o.TOPS = o.TOPS / seconds / 1e12
			o.OfMultiply = over(o.TOPS*1e12, peak)
		} else {
			o.TOPS = 0
		}
		o.Percent = 100 * over(o.Milliseconds, whole)
		list = append(list, *o)
	}
	slices.SortStableFunc(list, func(x, y Operation) int {
		return cmp.Compare(y.Milliseconds, x.Milliseconds)
	})
	return list, experts, nil
}

// operationName is what the operations of all layers that do one thing have in common.
func operationName(op *engine.Op, apart bool) string {
	name := op.Kind.String()
	_, label, inLayer := strings.Cut(op.Label, ".")
	inLayer = inLayer && strings.HasPrefix(op.Label, "layer")
	switch op.Kind {
	case engine.Tap:
		return name
	case engine.Linear, engine.LinearQ8, engine.Norm, engine.Quantize:
		name = op.Label
	}
	if inLayer {
		name = label
	}
	switch {
	case op.Kind == engine.Quantize:
		name = "quantize " + name
	case op.Kind == engine.Attend && apart && op.Window > 0:
		name += " window"
	case op.Kind == engine.Attend && apart:
		name += " full"
	}
	return name
}

// operations are the multiplications and additions of an operation in a step: those of its
// matrices, and of attention's two products over the positions that its rows see.
func operations(p *engine.Program, op *engine.Op, w engine.Work) int64 {
	if op.Kind != engine.Attend {
		return p.Flops(op, w)
	}
	positions := w.Full
	if op.Window > 0 {
		positions = w.Window
	}
	return 4 * positions * int64(p.Spec.Heads*p.Spec.HeadDim)
}

// operationsOf are the multiplications and additions of a matrix product of one layer (or of the
// unembedding) over rows rows.
func operationsOf(s models.Spec, name string, rows, logitRows int) int64 {
	k := int64(s.ExpertsPerToken)
	hidden, inner, heads, kv := int64(s.Hidden), int64(s.Intermediate), int64(s.Heads*s.HeadDim),
		int64(s.KVHeads*s.HeadDim)
	n := int64(0)
	switch name {
	case "qkv":
		n = (heads + 2*kv) * hidden
	case "o":
		n = heads * hidden
	case "router":
		n = int64(s.Experts) * hidden
	case "gate_up":
		n = k * 2 * inner * hidden
	case "down":
		n = k * hidden * inner
	case "unembed":
		return 2 * int64(logitRows) * int64(s.Vocab) * hidden
	}
	return 2 * int64(rows) * n
}

// operationsOfPrompt are those of a prompt of n tokens whose last one gets logits.
func operationsOfPrompt(s models.Spec, n int) (sum int64) {
	for _, name := range []string{"qkv", "o", "router", "gate_up", "down"} {
		sum += int64(s.Layers) * operationsOf(s, name, n, 0)
	}
	return sum + operationsOf(s, "unembed", n, 1)
}

package bench

// Where the time of a step goes, by kind of operation.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// profiled is how often a step is timed; the median of each operation counts.
const profiled = 3

// measured times every operation of a step and adds up those of one name.
func (b *run) measured(x *engine.Batch) ([]Operation, error) {
	var runs [][]engine.Timing
	for range profiled {
		times, err := b.eng.Measure(b.ctx, x, b.logits)
		if err != nil {
			return nil, err
		}
		runs = append(runs, times)
	}
	limit := b.read()
	peak, _ := b.peak()
	experts, err := b.expertsRead(len(x.Tokens))
	if err != nil {
		return nil, err
	}
	bytes := b.eng.OpBytes(x, experts)
	order, sums := []string{}, map[string]*Operation{}
	var whole float64
	for i, t := range runs[0] {
		name := t.Kind.String()
		_, label, inLayer := strings.Cut(t.Label, ".")
		inLayer = inLayer && strings.HasPrefix(t.Label, "layer")
		switch {
		case t.Kind == engine.Tap:
			name = "tap"
		case inLayer:
			name = label
		case t.Kind == engine.Linear, t.Kind == engine.LinearQ8, t.Kind == engine.Norm,
			t.Kind == engine.Quantize:
			name = t.Label
		}
		if t.Kind == engine.Quantize {
			name = "quantize " + name
		}
		var each []float64
		for _, r := range runs {
			each = append(each, float64(r[i].Nanoseconds)/1e6)
		}
		o := sums[name]
		if o == nil {
			o = &Operation{Name: name}
			sums[name] = o
			order = append(order, name)
		}
		o.Milliseconds += median(each)
		o.Bytes += bytes[i]
		// a sum for now, a rate below
		o.TOPS += float64(operationsOf(b.ckpt.Spec, name, len(x.Tokens), len(x.LogitRows)))
		whole += median(each)
	}
	list := make([]Operation, 0, len(order))
	for _, name := range order {
		o := sums[name]
		if o.Milliseconds > 0 {
			seconds := o.Milliseconds / 1e3
			o.GBPerS = float64(o.Bytes) / seconds / 1e9
			o.OfRead = o.GBPerS * 1e9 / limit
			o.TOPS = o.TOPS / seconds / 1e12
			o.OfMultiply = o.TOPS * 1e12 / peak
		}
		o.Percent = 100 * o.Milliseconds / whole
		list = append(list, *o)
	}
	slices.SortStableFunc(list, func(x, y Operation) int {
		return cmp.Compare(y.Milliseconds, x.Milliseconds)
	})
	return list, nil
}

// operationsOf are the multiplications and additions of a matrix product of one layer (or of the
// unembedding) over rows rows; 0 for what is none.
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

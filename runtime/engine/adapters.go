package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
)

// Several models in one program: the checkpoint's, and its adapters, which share all but a few
// tensors with it. An operation on such a tensor is recorded once for each model, for its rows. All
// other operations, the experts above all, run once for the rows of all models.
//
// What must stay true: a row of an adapter gets the bits that an engine of its own would give.

// adapterMark separates a tensor's name from the number of its adapter.
const adapterMark = "@"

// tensor is the checkpoint's name of a weight's tensor.
func (b *Buffer) tensor() string {
	name, _, _ := strings.Cut(b.Name, adapterMark)
	return strings.TrimSuffix(name, q8.Suffix)
}

// split replaces each operation on a tensor that an adapter changes by one for each model.
func (p *Program) split() {
	var ops []*Op
	for _, op := range p.Ops {
		if !slices.ContainsFunc(op.W, p.isAdapted) {
			ops = append(ops, op)
			continue
		}
		if op.Kind == Attend {
			for adapter := range p.Settings.Adapters {
				op.W = append(op.W, p.weightOf(op.W[0], adapter+1))
			}
			ops = append(ops, op)
			continue
		}
		for adapter := range len(p.Settings.Adapters) + 1 {
			part := *op
			part.Split, part.Adapter, part.W = true, adapter, nil
			for _, w := range op.W {
				part.W = append(part.W, p.weightOf(w, adapter))
			}
			ops = append(ops, &part)
		}
	}
	p.Ops = ops
}

func (p *Program) isAdapted(w *Buffer) bool {
	return w != nil && slices.ContainsFunc(p.Settings.Adapters, func(a checkpoint.Adapter) bool {
		return slices.Contains(a.Changed, w.tensor())
	})
}

func (p *Program) weightOf(w *Buffer, adapter int) *Buffer {
	if w == nil || adapter == 0 ||
		!slices.Contains(p.Settings.Adapters[adapter-1].Changed, w.tensor()) {
		return w
	}
	weight := *w
	weight.Name, weight.Adapter = fmt.Sprint(w.Name, adapterMark, adapter), adapter
	return p.add(weight)
}

// AdapterRows fills buffer, [2 x (models+1)], with two lists: the first row of each model in the
// batch, and its first row of logits. The last entry of each is the end.
func (b *Batch) AdapterRows(buffer []int32) (rows, logits []int32) {
	clear(buffer)
	models := len(buffer)/2 - 1
	rows, logits = buffer[:models+1], buffer[models+1:]
	for _, q := range b.Seqs {
		rows[q.Adapter+1] += q.Rows
	}
	for i := range models {
		rows[i+1] += rows[i]
	}
	for _, r := range b.LogitRows {
		logits[1+slices.IndexFunc(rows[1:], func(end int32) bool { return r < end })]++
	}
	for i := range models {
		logits[i+1] += logits[i]
	}
	return rows, logits
}

// checkAdapters refuses a batch whose rows are not in the order of so many models.
func (b *Batch) checkAdapters(models int) error {
	last := int32(0)
	for i, q := range b.Seqs {
		n := q.Adapter
		if n < 0 || int(n) >= models {
			return fmt.Errorf("sequence %d is of tune %d, this engine has %d", i, n, models-1)
		}
		if n < last {
			return fmt.Errorf("sequence %d is of tune %d, behind one of tune %d", i, n, last)
		}
		last = n
	}
	if models > 1 && !slices.IsSorted(b.LogitRows) {
		return fmt.Errorf("rows of several tunes are asked for logits in another order")
	}
	return nil
}

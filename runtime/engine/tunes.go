package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/q8"
)

// Several models in one program: the checkpoint's, and its tunes, which share all but a few of its
// tensors. An operation on such a tensor is recorded once for each model, for that model's rows.
// All other operations, the experts above all, run once for the rows of all models.
//
// What must stay true: a row of a tune gets the bits that it would get from an engine of its own.

// tuneMark separates a tensor's name from the number of its tune.
const tuneMark = "@"

// tensor is the checkpoint's name of a weight's tensor.
func (b *Buffer) tensor() string {
	name, _, _ := strings.Cut(b.Name, tuneMark)
	return strings.TrimSuffix(name, q8.Suffix)
}

// split replaces each operation on a tensor that a tune changes by one for each model.
func (p *Program) split() {
	var ops []*Op
	for _, op := range p.Ops {
		if !slices.ContainsFunc(op.W, p.tuned) {
			ops = append(ops, op)
			continue
		}
		if op.Kind == Attend {
			for tune := range p.Settings.Tunes {
				op.W = append(op.W, p.weightOf(op.W[0], tune+1))
			}
			ops = append(ops, op)
			continue
		}
		for tune := range len(p.Settings.Tunes) + 1 {
			part := *op
			part.Split, part.Tune, part.W = true, tune, nil
			for _, w := range op.W {
				part.W = append(part.W, p.weightOf(w, tune))
			}
			ops = append(ops, &part)
		}
	}
	p.Ops = ops
}

// tuned tells whether any tune changes a weight.
func (p *Program) tuned(w *Buffer) bool {
	for tune := range p.Settings.Tunes {
		if p.weightOf(w, tune+1) != w {
			return true
		}
	}
	return false
}

// weightOf is a tune's own version of a weight.
func (p *Program) weightOf(w *Buffer, tune int) *Buffer {
	if w == nil || tune == 0 || !slices.Contains(p.Settings.Tunes[tune-1], w.tensor()) {
		return w
	}
	weight := *w
	weight.Name, weight.Tune = fmt.Sprint(w.Name, tuneMark, tune), tune
	return p.add(weight)
}

// TuneRows fills buffer, [2 x (models+1)], with two lists: the first row of each model in the
// batch, and its first row of logits. The last entry of each is the end.
func (b *Batch) TuneRows(buffer []int32) (rows, logits []int32) {
	clear(buffer)
	models := len(buffer)/2 - 1
	rows, logits = buffer[:models+1], buffer[models+1:]
	for _, q := range b.Seqs {
		rows[q.Tune+1] += q.Rows
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

// checkTunes refuses a batch whose rows are not in the order of so many models.
func (b *Batch) checkTunes(models int) error {
	last := int32(0)
	for i, q := range b.Seqs {
		if q.Tune < 0 || int(q.Tune) >= models {
			return fmt.Errorf("sequence %d is of tune %d, this engine has %d", i, q.Tune, models-1)
		}
		if q.Tune < last {
			return fmt.Errorf("sequence %d is of tune %d, behind one of tune %d", i, q.Tune, last)
		}
		last = q.Tune
	}
	if models > 1 && !slices.IsSorted(b.LogitRows) {
		return fmt.Errorf("rows of several tunes are asked for logits in another order")
	}
	return nil
}

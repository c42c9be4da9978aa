package engine

import "slices"

// How many bytes each operation moves. Memory traffic limits decode, so benchmarks divide these
// bytes by the times.

// Work is the size of one step, from which bytes and flops are counted.
type Work struct {
	Rows, LogitRows int
	Experts         int // distinct experts a layer reads
	// cache positions read by all rows together, in a full and in a windowed layer
	Full, Window int64

	adapterRows, adapterLogits []int32 // as Batch.AdapterRows gives them
}

func (w Work) forOp(op *Op) Work {
	if op.Split && w.adapterRows != nil {
		w.Rows = int(w.adapterRows[op.Adapter+1] - w.adapterRows[op.Adapter])
		w.LogitRows = int(w.adapterLogits[op.Adapter+1] - w.adapterLogits[op.Adapter])
	}
	return w
}

// WorkOf measures a batch, with the most experts that it can have: routing is not known yet.
func (p *Program) WorkOf(b *Batch) Work {
	w := Work{Rows: len(b.Tokens), LogitRows: len(b.LogitRows)}
	if n := len(p.Settings.Adapters); n > 0 {
		w.adapterRows, w.adapterLogits = b.AdapterRows(make([]int32, 2*(n+2)))
	}
	w.Experts = min(p.Spec.Experts, w.Rows*p.Spec.ExpertsPerToken)
	for _, q := range b.Seqs {
		for i := range q.Rows {
			pos := int(q.Start + i)
			w.Full += int64(pos + 1)
			w.Window += int64(pos + 1 - FirstVisible(pos, p.Spec.Window))
		}
	}
	return w
}

// Bytes is the least that an operation must move: weights, inputs and outputs once.
func (p *Program) Bytes(op *Op, w Work) int64 { return p.BytesWith(op, w, float64(w.Experts)) }

// BytesWith is Bytes with this number of experts read by a layer, instead of the number in w.
func (p *Program) BytesWith(op *Op, w Work, experts float64) int64 {
	var n int64
	w = w.forOp(op)
	for _, b := range slices.Concat(op.Out, op.In) {
		n += p.moved(b, w)
	}
	position := PositionBytes(p.Spec, p.Settings.KVCacheDtype, op.Window > 0)
	switch op.Kind {
	case Embed: // only the tokens' rows
		return n + int64(w.Rows)*int64(op.W[0].Width)*op.W[0].Type.Size()
	case WriteKV:
		n += int64(w.Rows) * position
	case Attend:
		positions := w.Full
		if op.Window > 0 {
			positions = w.Window
		}
		n += positions * position
	case GateUp, Down: // only the experts that were chosen
		for _, b := range op.W {
			n += int64(float64(p.BytesOf(b)/int64(p.Spec.Experts)) * experts)
		}
		return n
	case Linear, LinearQ8:
		if op.Add {
			n += p.moved(op.Out[0], w)
		}
	}
	for _, b := range op.W {
		if b != nil {
			n += p.BytesOf(b)
		}
	}
	return n
}

// moved is how many bytes of a buffer a step uses; operations count the cache themselves.
func (p *Program) moved(b *Buffer, w Work) int64 {
	if b.Home == Cache {
		return 0
	}
	return int64(p.RowsIn(b, w.Rows, w.LogitRows)) * int64(b.Width) * b.Type.Size()
}

// Flops counts an operation's multiplications and additions; 0 without a matrix.
func (p *Program) Flops(op *Op, w Work) int64 {
	y := op.Out[0]
	w = w.forOp(op)
	results := int64(p.RowsIn(y, w.Rows, w.LogitRows)) * int64(y.Width)
	switch op.Kind {
	case Linear, LinearQ8:
		return 2 * results * int64(op.In[0].Width)
	case GateUp:
		return 2 * results * 2 * int64(p.Spec.Hidden)
	case Down:
		return 2 * results * int64(p.Spec.Intermediate)
	}
	return 0
}

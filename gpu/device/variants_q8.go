package device

import (
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Dense weights in 8 bits, as package models/q8 lays them out: the reference kernel, and a variant
// each for few rows and for many.

// linearQ8 is one launch a part, side by side in the result, by any of the kernels.
func (r *recorder) linearQ8(op *engine.Op, by func(live kernels.Pointer, bucket int,
	y kernels.Pointer, x kernels.Activations, w, bias kernels.Pointer, k, n, stride int,
	add bool) kernels.Launch) (list []kernels.Launch) {
	live, bucket := r.rows(op.Out[0])
	y, stride := r.at(op.Out[0]), op.Out[0].Width
	x := kernels.Activations{Q: r.at(op.In[0]), D: r.at(op.In[1])}
	for i := 0; i < len(op.W); i += 2 {
		n := op.PartRows(i / 2)
		list = append(list, by(live, bucket, y, x, r.at(op.W[i]), r.at(op.W[i+1]), op.In[0].Width,
			n, stride, op.Add))
		y += kernels.Pointer(4 * n)
	}
	return list
}

func (r *recorder) decodeLinearQ8(i int) phase {
	op := r.p.Ops[i]
	if op.Kind != engine.LinearQ8 || op.In[0].Width+op.In[0].Width/8 > kernels.MostShared ||
		!r.dev.enabled(DecodeLinearQ8) {
		return phase{}
	}
	return phase{i, i + 1, DecodeLinearQ8, r.linearQ8(op, r.t.DecodeLinearQ8), op.Out}
}

func (r *recorder) prefillLinearQ8(i int) phase {
	op := r.p.Ops[i]
	if op.Kind != engine.LinearQ8 || !r.dev.enabled(PrefillLinearQ8) {
		return phase{}
	}
	return phase{i, i + 1, PrefillLinearQ8, r.linearQ8(op, r.t.PrefillLinearQ8), op.Out}
}

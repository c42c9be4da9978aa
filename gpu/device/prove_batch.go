package device

// The batch that kernel variants are proved on. What must stay true: it has every kind of row that
// a step can have, so that no variant is right only by the shape of its proof.

import (
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// proofBatch has rows of two sequences: one after a context that is cut into several runs, one from
// its start; with many rows also one of a third.
func proofBatch(s models.Spec, rows int, kvType string) (b *engine.Batch, pages int) {
	b = &engine.Batch{}
	pool := kv.NewPool(1<<10, s.Window, engine.WindowPages(kvType))
	first, single := rows/2+1, 0
	if rows > kernels.DecodeRows {
		single = 1
	}
	addSequence(b, pool, s.MaxPosition-first-3, first)
	if rest := rows - first - single; rest > 0 {
		addSequence(b, pool, 0, rest)
	}
	if single > 0 {
		addSequence(b, pool, s.MaxPosition-5, 1)
	}
	for i := range rows {
		b.Tokens = append(b.Tokens, int32(i*37%s.Vocab))
		b.LogitRows = append(b.LogitRows, int32(rows-1-i))
	}
	return b, pool.Peak() // the lowest numbers are taken first
}

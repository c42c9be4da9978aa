package device

// The batch that kernel variants are proved on. What must stay true: it has every kind of row that
// a step can have, so that no variant is right only by the shape of its proof.

import (
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// proofBatch has rows of two sequences: one after a context that is cut into several runs, one from
// its start; with many rows also one of a third. Both kinds of layers have the same pages, each
// layer a part of its own, unless there are twins.
func proofBatch(s models.Spec, rows int, twins bool) (b *engine.Batch, pages int) {
	b = &engine.Batch{}
	var table freshPages
	first := rows/2 + 1
	alone := 0
	if rows > kernels.DecodeRows {
		alone = 1
	}
	for _, q := range []struct{ start, rows int }{{s.MaxPosition - first - 3, first},
		{0, rows - first - alone}, {s.MaxPosition - 5, alone}} {
		if q.rows == 0 {
			continue
		}
		n := (q.start + q.rows + engine.PageTokens - 1) / engine.PageTokens
		full := table.next(n)
		window := full
		if twins {
			window = table.next(n)
		}
		b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(q.start), Rows: int32(q.rows),
			Full: full, Window: window})
	}
	if twins {
		b.Twins = pairUp(b.Seqs, &table, 0)
	}
	for i := range rows {
		b.Tokens = append(b.Tokens, int32(i*37%s.Vocab))
		b.LogitRows = append(b.LogitRows, int32(rows-1-i))
	}
	return b, int(table)
}

// pairUp gives every window page a twin, in at least pool entries; other pages get -1.
func pairUp(seqs []engine.SeqRows, table *freshPages, pool int) []int32 {
	first := int(*table)
	for _, q := range seqs {
		for _, page := range q.Window {
			if page >= 0 {
				table.next(1)
			}
		}
	}
	twins := make([]int32, max(int(*table), pool))
	for i := range twins {
		twins[i] = -1
	}
	for _, q := range seqs {
		for _, page := range q.Window {
			if page >= 0 { // else it was given back
				twins[page] = int32(first)
				first++
			}
		}
	}
	return twins
}

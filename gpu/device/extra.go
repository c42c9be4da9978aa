package device

import (
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Extra is the bytes that a card takes for an engine's steps besides weights, cache and scratch
// (engine.PlanFor): logits, states, buffers between kernels, sampling, also those of first use.
//
// What must stay true: Extra equals the allocated bytes of one engine on cards of this matrix unit
// whose kernels have all their variants.
func Extra(s models.Spec, o engine.Settings, unit kernels.Unit) (int64, error) {
	buckets := engine.Buckets(o.Rows())
	o.Pages = 1 // not looked at
	p, err := engine.Record(s, o, buckets[0])
	if err != nil {
		return 0, err
	}
	o = p.Settings
	heads := kernels.Heads{Query: s.Heads, KV: s.KVHeads, Dim: s.HeadDim}
	var bytes int64
	for _, b := range p.Buffers {
		if b.Home == engine.Weight {
			bytes += kernels.WeightsBehind
		}
	}
	var state, partial, arrived, terms largest
	for _, rows := range buckets {
		arrays := 5 + engine.WindowPages(o.KVCacheDtype)
		bytes += state.grow(4 * int64(4+rows*arrays+engine.TableEntries(s, o, rows)))
		bytes += 2 * 4 * int64(s.HeadDim/2) // frequencies, of the step and of the one that rebuilds
		sums, counts := kernels.ScratchBytes(rows, heads, s.MaxPosition, s.Hidden, s.Vocab,
			o.Deterministic)
		bytes += partial.grow(sums) + arrived.grow(counts)
		bytes += terms.grow(termsBytes(s, o.Compute, rows, unit))
	}
	logits := int64(p.RowsOf(p.Logits()))
	return bytes + logits*int64(s.Vocab)*4 + samplingBytes(int(logits), s.Vocab), nil
}

// largest is memory that steps of all buckets use in turn, the largest first; a smaller one that
// needs more takes new memory, and the larger ones keep theirs.
type largest struct{ bytes int64 }

func (l *largest) grow(bytes int64) int64 {
	if bytes <= l.bytes {
		return 0
	}
	l.bytes = bytes
	return bytes
}

// samplingBytes is the sampling memory for so many rows. It holds the statistics and the top logits
// that logprobs report. Because one sample may be under way while another is waited for, it holds
// twice the parameters, the changes to logits, the masks and the tokens.
func samplingBytes(rows, vocab int) int64 {
	x := sampler{rows: rows, words: (vocab + 63) / 64}
	return int64(rows*(kernels.SampleStateBytes+kernels.LogitStatsBytes+2*4*mostRivals) +
		2*(x.bytes()+4*rows))
}

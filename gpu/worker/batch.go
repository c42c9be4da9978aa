package worker

import (
	"errors"

	"github.com/ossrun/ossrun/runtime/engine"
)

// What a step is and what comes of it, in a slot: the batch, how tokens are chosen, the tokens.

// pagesOf is how many entries of a sequence's block tables a step looks at; the batch was checked.
func pagesOf(q *engine.SeqRows) int {
	return (int(q.Start) + int(q.Rows) + engine.PageTokens - 1) / engine.PageTokens
}

func writeBatch(w *writer, b *engine.Batch) {
	w.ints(b.Tokens)
	w.ints(b.LogitRows)
	rebuild := uint32(0)
	if b.Rebuild {
		rebuild = 1
	}
	w.word(rebuild)
	w.ints(b.Twins)
	w.word(uint32(len(b.Seqs)))
	for i := range b.Seqs {
		q := &b.Seqs[i]
		w.int(q.Start)
		w.int(q.Rows)
		n := pagesOf(q)
		w.ints(q.Full[:min(n, len(q.Full))])
		w.ints(q.Window[:min(n, len(q.Window))])
	}
}

// readBatch fills b, whose memory is used again.
func readBatch(r *reader, b *engine.Batch) {
	b.Tokens = r.ints(b.Tokens[:0])
	b.LogitRows = r.ints(b.LogitRows[:0])
	b.Rebuild = r.word() != 0
	b.Twins = r.ints(b.Twins[:0])
	n := r.count(16)
	for len(b.Seqs) < n {
		b.Seqs = append(b.Seqs, engine.SeqRows{})
	}
	b.Seqs = b.Seqs[:n]
	for i := range b.Seqs {
		q := &b.Seqs[i]
		q.Start, q.Rows = r.int(), r.int()
		q.Full, q.Window = r.ints(q.Full[:0]), r.ints(q.Window[:0])
	}
}

// writeFrom writes where rows take their tokens from; nil is a list of none.
func writeFrom(w *writer, from []int32) { w.ints(from) }

func readFrom(r *reader, rows int) ([]int32, error) {
	from := r.ints(nil)
	if len(from) == 0 {
		return nil, nil
	}
	if len(from) != rows {
		return nil, errors.New("a step says for other rows than its own where their tokens come " +
			"from")
	}
	return from, nil
}

const (
	leastChoice = 44 // bytes of a choice without mask and edits
	editBytes   = 16
)

func writeChoices(w *writer, choices []engine.SamplingParams) {
	w.word(uint32(len(choices)))
	for i := range choices {
		c := &choices[i]
		w.float(c.Temperature)
		w.float(c.TopP)
		w.float(c.MinP)
		w.int(c.TopK)
		w.long(c.Seed)
		w.long(uint64(c.Position))
		w.int(int32(c.Logprobs))
		w.word(uint32(len(c.Edits)))
		for _, e := range c.Edits {
			w.int(e.ID)
			w.float(e.Repetition)
			w.float(e.Less)
			w.float(e.More)
		}
		masked := uint32(0)
		if c.Mask != nil {
			masked = 1
		}
		w.word(masked)
		if masked == 1 {
			w.longs(c.Mask)
		}
	}
}

func readChoices(r *reader) []engine.SamplingParams {
	choices := make([]engine.SamplingParams, r.count(leastChoice))
	for i := range choices {
		c := &choices[i]
		c.Temperature, c.TopP, c.MinP, c.TopK = r.float(), r.float(), r.float(), r.int()
		c.Seed, c.Position, c.Logprobs = r.long(), int64(r.long()), int(r.int())
		for range r.count(editBytes) {
			c.Edits = append(c.Edits, engine.Edit{ID: r.int(), Repetition: r.float(),
				Less: r.float(), More: r.float()})
		}
		if r.word() != 0 {
			c.Mask = r.longs([]uint64{})
		}
	}
	return choices
}

func writeChosen(w *writer, chosen []engine.SampledToken) {
	w.word(uint32(len(chosen)))
	for i := range chosen {
		c := &chosen[i]
		w.int(c.ID)
		w.float(c.Logprob)
		w.word(uint32(len(c.Top)))
		for _, t := range c.Top {
			w.int(t.ID)
			w.float(t.Logprob)
		}
	}
}

func readChosen(r *reader) []engine.SampledToken {
	chosen := make([]engine.SampledToken, r.count(12))
	for i := range chosen {
		c := &chosen[i]
		c.ID, c.Logprob = r.int(), r.float()
		for range r.count(8) {
			c.Top = append(c.Top, engine.TokenLogprob{ID: r.int(), Logprob: r.float()})
		}
	}
	return chosen
}

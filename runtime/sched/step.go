// One step: the granted rows become a Batch, the engine computes it, the sequences whose last row was in it get their
// next token. The three parts are apart so that a device that samples by itself can replace the second and third, and
// the host can prepare a step while the one before it runs.

package sched

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// assemble writes the granted rows to s.batch. The logits of a sequence's last known token are asked for.
func (s *Scheduler) assemble() {
	b := &s.batch
	b.Tokens, b.Seqs, b.LogitRows = b.Tokens[:0], b.Seqs[:0], b.LogitRows[:0]
	s.sampling = s.sampling[:0]
	for _, q := range s.running {
		if q.rows == 0 {
			continue
		}
		b.Tokens = append(b.Tokens, q.tokens[q.computed:q.computed+q.rows]...)
		b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(q.computed), Rows: int32(q.rows), Full: q.table.Full(), Window: q.table.Window()})
		q.logits = -1
		if q.rows == q.left() && len(q.tokens) < q.most {
			q.logits = len(b.LogitRows)
			b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
			s.sampling = append(s.sampling, q)
		}
	}
	if need := len(b.LogitRows) * s.spec.Vocab; need > len(s.logits) {
		rows := min(max(2*len(s.logits)/s.spec.Vocab, len(b.LogitRows)), s.o.MaxSeqs)
		s.logits = make([]float32, rows*s.spec.Vocab)
	}
}

// compute runs the batch and samples. After an error of the engine every running sequence has ended.
func (s *Scheduler) compute() {
	err := s.eng.Step(s.ctx, &s.batch, s.logits[:len(s.batch.LogitRows)*s.spec.Vocab])
	if err != nil {
		if s.ctx.Err() != nil {
			return // closed: the loop ends and says so to everyone
		}
		s.counts.Faults++
		now, fault := time.Now(), &EngineError{err}
		for _, q := range s.running {
			s.finish(q, FinishError, fault, now)
		}
		clear(s.running)
		s.running = s.running[:0]
		return
	}
	s.counts.Steps++
	s.counts.Rows += uint64(len(s.batch.Tokens))
	s.choose()
	s.deliver(time.Now())
}

// serialLogits is up to how many logits one goroutine samples from sooner than several can be woken.
const serialLogits = 1 << 16

// choose samples all sequences that have logits, on every core: a row costs about a millisecond at full vocabulary.
func (s *Scheduler) choose() {
	s.next.Store(0)
	var others sync.WaitGroup
	if len(s.sampling)*s.spec.Vocab > serialLogits {
		for range min(runtime.GOMAXPROCS(0), len(s.sampling)) - 1 {
			others.Go(s.chooser)
		}
	}
	s.chooser()
	others.Wait()
}

// chooseNext takes sequences off s.sampling until there are none left.
func (s *Scheduler) chooseNext() {
	for {
		i := int(s.next.Add(1)) - 1
		if i >= len(s.sampling) {
			return
		}
		q := s.sampling[i]
		q.choose(s.logits[q.logits*s.spec.Vocab : (q.logits+1)*s.spec.Vocab])
	}
}

// deliver moves the sequences on, hands out their tokens, gives back what left the window and ends what is done.
func (s *Scheduler) deliver(now time.Time) {
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool {
		if q.rows == 0 {
			return false
		}
		q.computed += q.rows
		s.pool.Slide(&q.table, q.computed)
		// A forced token counts as sampled once everything before it is computed.
		for q.delivered < q.forced && q.delivered <= q.computed {
			if s.hand(q, Token{ID: q.tokens[q.delivered], Forced: true}, now) {
				return true
			}
		}
		if q.logits < 0 {
			return false
		}
		if q.err != nil {
			s.finish(q, FinishError, q.err, now)
			return true
		}
		q.tokens = append(q.tokens, q.choice.ID)
		q.sampler.Accept(q.choice.ID)
		return s.hand(q, Token{ID: q.choice.ID, Logprob: q.choice.Logprob, Top: q.choice.Top}, now)
	})
}

// hand gives the stream the token at q.delivered and tells whether it was the last.
func (s *Scheduler) hand(q *sequence, t Token, now time.Time) (ended bool) {
	q.delivered++
	q.stream.push(t, now)
	s.counts.GeneratedTokens++
	switch {
	case q.stops(t.ID):
		s.finish(q, FinishStop, nil, now)
	case q.delivered == q.most:
		s.finish(q, FinishLength, nil, now)
	default:
		return false
	}
	return true
}

// finish frees the pages of q and ends its stream. The caller takes it off its queue.
func (s *Scheduler) finish(q *sequence, f Finish, err error, now time.Time) {
	s.pool.Release(&q.table)
	q.stream.end(f, err, now)
	s.ended++
	switch f {
	case FinishStop:
		s.counts.Stopped++
	case FinishLength:
		s.counts.Length++
	case FinishCancelled:
		s.counts.Cancelled++
	case FinishError:
		s.counts.Failed++
		if errors.Is(err, sample.ErrNonFinite) {
			s.counts.NonFinite++
		}
	}
}

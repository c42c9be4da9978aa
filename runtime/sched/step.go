// One step: the granted rows become a Batch, the engine computes it, the sequences whose last row
// was in it get their next token. The parts are apart so that a device that samples by itself can
// replace the second and third.

package sched

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// assemble writes the granted rows to s.batch. The logits of a sequence's last known token are
// asked for.
func (s *Scheduler) assemble() {
	b := &s.batch
	b.Tokens, b.Seqs, b.LogitRows, b.Rebuild = b.Tokens[:0], b.Seqs[:0], b.LogitRows[:0], s.rebuild
	b.Twins = s.pool.Twins()
	s.sampling = s.sampling[:0]
	for _, q := range s.running {
		if q.rows == 0 {
			continue
		}
		b.Tokens = append(b.Tokens, q.tokens[q.computed:q.computed+q.rows]...)
		b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(q.computed), Rows: int32(q.rows),
			Full: q.table.Full(), Window: q.table.Window()})
		q.logits = -1
		if q.rebuildTo == 0 && q.rows == q.left() && len(q.tokens) < q.most {
			q.logits = len(b.LogitRows)
			b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
			s.sampling = append(s.sampling, q)
		}
		q.flying = q.rows
	}
	s.launched = len(s.running)
}

// makeRoom has room for the batch's logits on the host.
func (s *Scheduler) makeRoom() {
	if need := len(s.batch.LogitRows) * s.spec.Vocab; need > len(s.logits) {
		rows := min(max(2*len(s.logits)/s.spec.Vocab, len(s.batch.LogitRows)), s.o.MaxNumSeqs)
		s.logits = make([]float32, rows*s.spec.Vocab)
	}
}

// compute runs the batch, with what is done beside it, and samples. After an error of the engine
// every sequence that was running has ended.
func (s *Scheduler) compute() {
	if s.samplesOnDevice() {
		s.computeOnDevice()
		return
	}
	s.makeRoom()
	if s.o.launch != nil {
		s.o.launch(&s.batch)
	}
	s.begin(true)
	err := s.eng.Step(s.ctx, &s.batch, s.logits[:len(s.batch.LogitRows)*s.spec.Vocab])
	s.join()
	if err != nil {
		if s.ctx.Err() == nil { // else closed: the loop ends and says so to everyone
			s.fault(err)
		}
		return
	}
	s.counts.Steps++
	s.counts.Rows += uint64(len(s.batch.Tokens))
	s.choose()
	s.advance()
}

// fault ends the running sequences after a step that failed; those admitted while it ran wait
// again. What the cache held is not trusted any more.
func (s *Scheduler) fault(err error) {
	s.counts.Faults++
	s.plan = none
	for _, q := range s.running[s.launched:] {
		s.release(q)
	}
	s.waiting = slices.Insert(s.waiting, 0, s.running[s.launched:]...)
	for _, q := range s.running[:s.launched] {
		s.pool.Invalidate(&q.table)
		s.end(q, FinishError, &EngineError{err})
	}
	clear(s.running)
	s.running = s.running[:0]
	s.pool.Forget()
	if s.o.Restart == nil {
		return
	}
	s.begin(false) // a restart takes seconds
	s.publish()
	eng, err := s.o.Restart(err)
	s.join()
	if s.eng = eng; err != nil {
		s.lost = fmt.Errorf("the engine failed and could not be started again: %w", err)
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
	}
}

// serialLogits is up to how many logits one goroutine samples from sooner than several can be
// woken.
const serialLogits = 1 << 16

// choose samples all sequences that have logits: a row costs about a millisecond at full
// vocabulary.
func (s *Scheduler) choose() {
	s.spread(len(s.sampling)*s.spec.Vocab > serialLogits, func(q *sequence) {
		q.choose(s.logits[q.logits*s.spec.Vocab : (q.logits+1)*s.spec.Vocab])
	})
}

// spread does something for each sequence that is sampled in this step, on every core where that is
// wide.
func (s *Scheduler) spread(wide bool, do func(*sequence)) {
	if !wide {
		for _, q := range s.sampling {
			do(q)
		}
		return
	}
	s.next.Store(0)
	work := func() {
		for {
			i := int(s.next.Add(1)) - 1
			if i >= len(s.sampling) {
				return
			}
			do(s.sampling[i])
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.sampling)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// advance moves the sequences on by what the step computed: their pages become findable, those that
// left the window are given back, tokens are noted to be handed out, and what is done ends.
func (s *Scheduler) advance() {
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool {
		if q.flying == 0 {
			return false
		}
		if q.rebuildTo > 0 {
			s.advanceRebuild(q)
			return false
		}
		rows, more := q.rows, len(q.fed) > 0
		ended := s.move(q)
		if more || ended && rows > 0 && s.plan == tight {
			s.plan = none
		}
		return ended
	})
}

// move is advance for one sequence; it tells whether that has ended.
func (s *Scheduler) move(q *sequence) bool {
	s.count(q)
	q.computed += q.flying
	q.flying = 0
	q.seen = max(q.seen, q.computed)
	if q.logits >= 0 && q.err != nil {
		s.pool.Invalidate(&q.table)
		s.end(q, FinishError, q.err)
		return true
	}
	s.pool.Commit(&q.table, q.tokens, q.hashes, q.computed)
	s.pool.Slide(&q.table, q.computed)
	// A forced token counts as sampled once everything before it is computed.
	for q.delivered < q.forced && q.delivered <= q.computed {
		if s.hand(q, forcedToken(q.tokens[q.delivered])) {
			return true
		}
	}
	if q.logits < 0 {
		return false
	}
	q.tokens = append(q.tokens, q.sampled.ID)
	if s.hand(q, Token{SampledToken: q.sampled}) {
		return true
	}
	fed := q.fed
	q.fed = nil
	// what leaves no choice is known at once; the next step computes all of it
	for _, id := range fed {
		q.tokens = append(q.tokens, id)
		q.accept(id)
		if s.hand(q, forcedToken(id)) {
			return true
		}
	}
	return false
}

// advanceRebuild is advance for rows of window layers alone.
func (s *Scheduler) advanceRebuild(q *sequence) {
	s.counts.Rebuilt += uint64(q.flying)
	q.computed += q.flying
	q.flying = 0
	if q.computed < q.rebuildTo {
		s.pool.Slide(&q.table, q.computed)
		return
	}
	s.pool.Rebuilt(&q.table, q.rebuildTo)
	q.rebuildFrom, q.rebuildTo = 0, 0
}

// count adds the rows of q to those that are new and those that are not.
func (s *Scheduler) count(q *sequence) {
	to := q.at()
	again := max(0, min(q.seen, to)-q.computed)
	s.counts.Recomputed += uint64(again)
	s.counts.Prefilled += uint64(max(0, min(q.prompt, to)-q.computed-again))
}

// hand notes the token at q.delivered for the stream and tells whether it was the last.
func (s *Scheduler) hand(q *sequence, t Token) (ended bool) {
	q.delivered++
	s.counts.GeneratedTokens++
	s.out = append(s.out, handout{stream: q.stream, token: t, more: true})
	switch {
	case q.stops(t.ID):
		s.end(q, FinishStop, nil)
	case q.delivered == q.most:
		s.end(q, FinishLength, nil)
	default:
		return false
	}
	return true
}

// end frees the pages of q and notes the end of its stream. The caller takes it off its queue.
func (s *Scheduler) end(q *sequence, f Finish, err error) {
	s.release(q)
	s.out = append(s.out, handout{stream: q.stream, finish: f, err: err})
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

// One step: the granted rows become a Batch, the engine computes it, and each sequence whose last
// known token was in it gets its next token. A device that samples replaces the second and third
// part (device.go).

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

// assemble writes the granted rows to s.batch, grouped by adapter. It asks for the logits of each
// sequence's last known token.
func (s *Scheduler) assemble() {
	s.emptyBatch(s.rebuild)
	s.sampling = s.sampling[:0]
	for adapter := range s.roots {
		for _, q := range s.running {
			if q.rows == 0 || q.adapter != adapter {
				continue
			}
			if q.logitRow = s.addRows(q); q.logitRow >= 0 {
				s.sampling = append(s.sampling, q)
			}
			q.inFlight = q.rows + len(q.draft.tokens)
		}
	}
	s.runningAtLaunch = len(s.running)
}

func (s *Scheduler) emptyBatch(rebuild bool) {
	b := &s.batch
	b.Tokens, b.Seqs, b.LogitRows, b.Rebuild = b.Tokens[:0], b.Seqs[:0], b.LogitRows[:0], rebuild
	b.Twins, b.LogitMask, s.device.from = s.pool.Twins(), nil, s.device.from[:0]
}

// addRows appends the granted rows of q and its draft to the batch. It returns the row of the
// logits from which the next token is sampled, or -1 if q has none; those of the draft follow. A
// token that the running step samples is left open: device.from says where it comes from.
func (s *Scheduler) addRows(q *sequence) (logits int) {
	b, d, pos := &s.batch, &s.device, q.position()
	q.lastStep = s.counts.Steps
	s.askScores(q, pos, len(b.Tokens))
	for i := pos; i < pos+q.rows; i++ {
		if i < len(q.tokens) {
			b.Tokens, d.from = append(b.Tokens, q.tokens[i]), append(d.from, -1)
		} else {
			b.Tokens, d.from = append(b.Tokens, 0), append(d.from, int32(q.logitRow))
		}
	}
	for _, id := range q.draft.tokens {
		b.Tokens, d.from = append(b.Tokens, id), append(d.from, -1)
	}
	b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(pos),
		Rows: int32(q.rows + len(q.draft.tokens)), Prompt: int32(min(max(0, q.prompt-pos), q.rows)),
		Full: q.table.Full(), Window: q.table.Window(),
		Adapter: int32(q.adapter)})
	if q.rebuildTo > 0 || q.rows != q.remaining() || q.knownTokens() >= q.maxTokens {
		return -1
	}
	logits, first := len(b.LogitRows), len(b.Tokens)-len(q.draft.tokens)-1
	for i := first; i < len(b.Tokens); i++ {
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	return logits
}

func (s *Scheduler) growLogits() {
	if need := len(s.batch.LogitRows) * s.spec.Vocab; need > len(s.logits) {
		rows := max(min(2*len(s.logits)/s.spec.Vocab, s.o.MaxNumSeqs), len(s.batch.LogitRows))
		s.logits = nil // a collection need not keep it
		s.logits = make([]float32, rows*s.spec.Vocab)
	}
}

// compute runs the batch, with the work that overlaps it, and samples. After an error of the engine
// every sequence that was running has ended.
func (s *Scheduler) compute() {
	if s.samplesOnDevice() {
		s.computeOnDevice()
		return
	}
	s.growLogits()
	s.skipMaskedLogits()
	began := s.o.now()
	if s.o.launch != nil {
		s.o.launch(&s.batch)
	}
	s.begin(true)
	err := s.eng.Step(s.ctx, &s.batch, s.logits[:len(s.batch.LogitRows)*s.spec.Vocab])
	s.join()
	if err != nil {
		if s.ctx.Err() == nil { // else the scheduler was closed, and the loop ends all requests
			s.failRunning(err)
		}
		return
	}
	s.counts.Steps++
	s.counts.Rows += uint64(len(s.batch.Tokens))
	s.scorePrompts()
	s.choose()
	s.observe(len(s.batch.Tokens), began)
	s.advance()
}

// failRunning ends the running sequences after a failed step. Those admitted during the step wait
// again. The cache is emptied, since its contents may be wrong.
func (s *Scheduler) failRunning(err error) {
	s.counts.Faults++
	s.plan = none
	for _, q := range s.running[s.runningAtLaunch:] {
		s.release(q)
	}
	s.waiting = slices.Insert(s.waiting, 0, s.running[s.runningAtLaunch:]...)
	for _, q := range s.running[:s.runningAtLaunch] {
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
		s.failure = fmt.Errorf("the engine failed and could not be started again: %w", err)
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
	}
}

// serialLogits is the number of logits up to which one goroutine is faster than waking several.
const serialLogits = 1 << 16

// choose samples for all sequences that have logits. A row of the full vocabulary takes about a
// millisecond.
func (s *Scheduler) choose() {
	s.parallel(len(s.sampling)*s.spec.Vocab > serialLogits, func(q *sequence) {
		q.choose(s.logits[q.logitRow*s.spec.Vocab:], s.spec.Vocab)
	})
}

// parallel calls do for each sequence that is sampled in this step, with wide on all cores.
func (s *Scheduler) parallel(wide bool, do func(*sequence)) {
	if !wide {
		for _, q := range s.sampling {
			do(q)
		}
		return
	}
	s.sampleIndex.Store(0)
	work := func() {
		for {
			i := int(s.sampleIndex.Add(1)) - 1
			if i >= len(s.sampling) {
				return
			}
			do(s.sampling[i])
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.sampling)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// advance adds the step's results to the sequences: computed pages enter the prefix cache, pages
// outside the window are given back, tokens are noted for delivery, and finished sequences end.
func (s *Scheduler) advance() {
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool {
		if q.inFlight == 0 {
			return false
		}
		if q.rebuildTo > 0 {
			s.advanceRebuild(q)
			return false
		}
		rows := q.rows
		sampled := q.logitRow >= 0
		done := s.advanceSequence(q)
		if sampled && !done && q.remaining() > 1 || done && rows > 0 && s.plan == tight {
			s.plan = none // tokens were forced, or rows are free
		}
		return done
	})
}

// advanceSequence is advance for one sequence; it tells whether the sequence has ended.
func (s *Scheduler) advanceSequence(q *sequence) bool {
	s.countRows(q)
	accepted := s.settleDraft(q)
	for _, t := range q.newTokens {
		q.tokens = append(q.tokens, t.ID)
	}
	tokens := q.newTokens
	q.newTokens = q.newTokens[:0]
	q.computed += q.inFlight - len(q.draft.tokens) + accepted
	if q.stream.progress && q.computed-q.inFlight < q.prompt && q.err == nil {
		s.out = append(s.out, delivery{stream: q.stream, hasToken: true,
			token: Token{Prefilled: min(q.computed, q.prompt)}})
	}
	q.inFlight, q.draft.tokens = 0, q.draft.tokens[:0]
	q.seen = max(q.seen, q.computed)
	if q.err == nil {
		s.pool.Commit(&q.table, q.tokens, q.hashes, q.computed)
		s.pool.Slide(&q.table, q.computed)
	} else {
		s.pool.Invalidate(&q.table)
	}
	// A forced token is delivered once everything before it is computed, as if it were sampled.
	for q.err == nil && q.delivered < q.forced && q.delivered <= q.computed {
		if s.deliver(q, forcedToken(q.tokens[q.delivered])) {
			return true
		}
	}
	// tokens that were forced after a sampled one are known at once; the next step computes them
	for _, t := range tokens {
		if s.deliver(q, t) {
			return true
		}
	}
	if q.err != nil {
		s.end(q, FinishError, q.err)
	}
	return q.err != nil
}

func (s *Scheduler) advanceRebuild(q *sequence) {
	s.counts.Rebuilt += uint64(q.inFlight)
	q.computed += q.inFlight
	q.inFlight = 0
	if q.computed < q.rebuildTo {
		s.pool.Slide(&q.table, q.computed)
		return
	}
	s.pool.Rebuilt(&q.table, q.rebuildTo)
	q.rebuildFrom, q.rebuildTo = 0, 0
}

// countRows adds the rows of q to the counters of recomputed and of first computed rows.
func (s *Scheduler) countRows(q *sequence) {
	to := q.position()
	recomputed := max(0, min(q.seen, to)-q.computed)
	s.counts.Recomputed += uint64(recomputed)
	s.counts.Prefilled += uint64(max(0, min(q.prompt, to)-q.computed-recomputed))
}

// deliver notes a token for delivery to the stream and tells whether it was the last.
func (s *Scheduler) deliver(q *sequence, t Token) (done bool) {
	q.delivered++
	s.counts.GeneratedTokens++
	s.out = append(s.out, delivery{stream: q.stream, token: t, hasToken: true})
	switch {
	case q.stops(t.ID):
		s.end(q, FinishStop, nil)
	case q.delivered == q.maxTokens:
		s.end(q, FinishLength, nil)
	default:
		return false
	}
	return true
}

// end frees the pages of q and notes the end of its stream. The caller removes q from its queue.
func (s *Scheduler) end(q *sequence, f FinishReason, err error) {
	s.release(q)
	s.out = append(s.out, delivery{stream: q.stream, finish: f, err: err})
	s.endCount++
	if !q.share.Background {
		s.places.Return(q.share.Client, 1)
	}
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

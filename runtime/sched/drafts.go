// Drafts (speculative decoding): a step also computes rows for guesses of a sequence's next tokens,
// made from its text (package draft), and samples after each of them. The first sampled token that
// differs from its guess ends the draft; what was computed behind it is overwritten by the next
// step.
//
// What must stay true:
//   - The text is the same as without drafts: each token is sampled from its own row of logits,
//     under the mask and the penalties of exactly the tokens before it, with the random number of
//     its position.
//   - A guess is in no list of tokens, and no page is hashed, found, swapped out or given back
//     because of it: the index and the window depend only on what is computed and right.
//   - Guesses take only rows and pages that nobody else needs, and never preempt a sequence.

package sched

import (
	"time"

	"github.com/ossrun/ossrun/runtime/draft"
)

// drafting is the state of a sequence's drafts.
type drafting struct {
	prediction []int32
	index      *draft.Index // made for the first draft
	fare       draft.Fare
	tokens     []int32 // guessed behind the last known token, in the next step or the running one
	from       draft.Proposal
	rows       int     // of the step without the draft
	beside     float64 // tokens that the step gives without the draft
}

// addDrafts adds guesses to the planned step, where sequences decode and rows are left. With a
// device that samples there are no drafts: it queues the next step before the tokens of this one
// are known.
func (s *Scheduler) addDrafts() {
	if s.o.Drafts == 0 || s.rebuild || s.eng.Caps().Samples {
		return
	}
	rows, tokens := 0, 0
	for _, q := range s.running {
		if q.scores() {
			return
		}
		if rows += q.rows; q.rows > 0 && q.rows == q.left() {
			tokens++
		}
	}
	room := min(s.o.MaxNumBatchedTokens-rows, s.mostLogits()-tokens)
	expected := float64(tokens)
	for _, q := range s.running {
		if room <= 0 {
			return
		}
		if q.rows != 1 || !q.decodes() {
			continue
		}
		n, more := s.guess(q, min(s.o.Drafts, room, q.maxTokens-len(q.tokens)-2), rows, expected)
		rows, room, expected = rows+n, room-n, expected+more
	}
}

// mostLogits is how many rows of logits the engine can give.
func (s *Scheduler) mostLogits() int {
	if n := s.eng.Settings().MaxLogits; n > 0 {
		return n
	}
	return s.o.MaxNumBatchedTokens
}

// guess drafts at most most tokens for q in a step that has rows rows and is expected to give
// expected tokens. It returns how many it drafted, and how many more tokens are expected of the
// step with them.
func (s *Scheduler) guess(q *sequence, most, rows int, expected float64) (n int, more float64) {
	d := &q.draft
	if most <= 0 {
		return 0, 0
	}
	if s.o.propose != nil {
		d.from = draft.Proposal{Tokens: s.o.propose(q.tokens, most)}
		n = len(d.from.Tokens)
	} else {
		if d.index == nil {
			d.index = draft.NewIndex(d.prediction)
		}
		d.index.Add(q.tokens)
		d.from = d.index.Propose(d.tokens[:0], most)
		n, more = s.gate.Worth(d.from, &d.fare, rows, expected)
	}
	if n > 0 && !s.pool.Reserve(&q.table, q.computed+1+n) {
		n = min(n, q.table.Room()-q.computed-1)
	}
	if n <= 0 {
		return 0, 0
	}
	d.tokens, d.rows, d.beside = d.from.Tokens[:n], rows, expected
	s.counts.Drafts++
	s.counts.DraftTokens += uint64(n)
	return n, more
}

// rate says how many tokens of q's draft were right, and notes it.
func (s *Scheduler) rate(q *sequence) (right int) {
	d := &q.draft
	if len(d.tokens) == 0 {
		return 0
	}
	right = q.right()
	s.counts.AcceptedTokens += uint64(right)
	if s.o.propose == nil {
		s.gate.Settle(d.from.Match, len(d.tokens), right, d.rows, d.beside, &d.fare)
	}
	if d.from.Predicted {
		q.stream.predicted(right, len(d.tokens)-right)
	}
	return right
}

// right is how many of the drafted tokens have come.
func (q *sequence) right() (n int) {
	for n < min(len(q.draft.tokens), len(q.got)) && q.got[n].ID == q.draft.tokens[n] {
		n++
	}
	return n
}

// observe tells the gate how long the step took that began at the time began.
func (s *Scheduler) observe(began time.Time) {
	if s.o.Drafts == 0 || s.batch.Rebuild {
		return
	}
	decode := true
	for _, q := range s.running[:s.launched] {
		decode = decode && (q.inFlight == 0 || q.inFlight == 1+len(q.draft.tokens))
	}
	s.gate.Observe(len(s.batch.Tokens), s.o.now().Sub(began), decode)
}

// predicted counts tokens of the prediction.
func (st *Stream) predicted(accepted, rejected int) {
	st.mu.Lock()
	st.timing.Accepted += accepted
	st.timing.Rejected += rejected
	st.mu.Unlock()
}

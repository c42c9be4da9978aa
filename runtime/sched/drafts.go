// Drafts (speculative decoding): a step also computes rows for guesses of a sequence's next tokens,
// made from its text (package draft), and samples after each of them. The first sampled token that
// differs from its guess ends the draft; rows computed after it are overwritten by the next step.
//
// What must stay true:
//   - The text is the same as without drafts: each token is sampled from its own row of logits,
//     under the mask and the penalties of exactly the tokens before it, with the random number of
//     its position.
//   - A guess is in no list of tokens, and no page is hashed, found, swapped out or given back
//     because of it: the index and the window depend only on computed and right tokens.
//   - Guesses take only spare rows and pages, and never preempt a sequence.

package sched

import (
	"time"

	"github.com/ossrun/ossrun/runtime/sched/draft"
)

// draftState is the state of a sequence's drafts.
type draftState struct {
	prediction []int32
	index      *draft.Index // made for the first draft
	record     draft.Record
	tokens     []int32 // guesses after the last known token, in the next step or the running one
	proposal   draft.Proposal
	rows       int     // of the step without the draft
	baseTokens float64 // tokens that the step gives without the draft
}

// addDrafts adds guesses of sequences that decode to the planned step, if rows are left.
func (s *Scheduler) addDrafts() {
	s.forDrafts(func(q *sequence, most, rows int, tokens float64) (n int, gain float64) {
		n, gain = s.proposeDraft(q, most, rows, tokens)
		if n > 0 && !s.pool.Reserve(&q.table, q.computed+1+n) {
			n = min(n, q.table.Room()-q.computed-1)
		}
		if n <= 0 {
			return 0, 0
		}
		d := &q.draft
		d.tokens, d.rows, d.baseTokens = d.proposal.Tokens[:n], rows, tokens
		s.counts.Drafts++
		s.counts.DraftTokens += uint64(n)
		return n, gain
	})
}

// mayDraft tells, while a step runs, whether the next one may have a draft. It judges by a text
// without the token that the running step samples.
func (s *Scheduler) mayDraft() (may bool) {
	s.forDrafts(func(q *sequence, most, rows int, tokens float64) (int, float64) {
		n, gain := s.proposeDraft(q, most, rows, tokens)
		may = may || n > 0
		return n, gain
	})
	return may
}

// forDrafts calls try for each sequence of the planned step that may have a draft of at most most
// tokens, in a step that has rows rows and is expected to give tokens tokens so far. try returns
// how many it drafted, and how many more tokens are expected of the step with them.
func (s *Scheduler) forDrafts(try func(q *sequence, most, rows int, tokens float64) (int,
	float64)) {
	if s.o.Drafts == 0 || s.rebuild {
		return
	}
	rows, sampled := 0, 0
	for _, q := range s.running {
		if q.scores() {
			return
		}
		if rows += q.rows; q.rows > 0 && q.rows == q.remaining() {
			sampled++
		}
	}
	room := min(s.alikeRows()-rows, s.mostLogits()-sampled)
	tokens := float64(sampled)
	for _, q := range s.running {
		if room <= 0 {
			return
		}
		if q.rows != 1 || !q.decodes() {
			continue
		}
		n, gain := try(q, min(s.o.Drafts, room, q.maxTokens-q.knownTokens()-2), rows, tokens)
		rows, room, tokens = rows+n, room-n, tokens+gain
	}
}

// alikeRows is how many rows a step with drafts may have. A device whose larger steps give a row
// other bits would not give the text that it gives without drafts.
func (s *Scheduler) alikeRows() int {
	if n := s.eng.Caps().Alike; n > 0 && !s.eng.Settings().Deterministic {
		return min(n, s.o.MaxNumBatchedTokens)
	}
	return s.o.MaxNumBatchedTokens
}

// mostLogits is how many rows of logits the engine can give.
func (s *Scheduler) mostLogits() int {
	if n := s.eng.Settings().MaxLogits; n > 0 {
		return n
	}
	return s.o.MaxNumBatchedTokens
}

// proposeDraft proposes at most most tokens after those of q and says how many of them to try, and
// how many more tokens they promise.
func (s *Scheduler) proposeDraft(q *sequence, most, rows int, tokens float64) (n int,
	gain float64) {
	d := &q.draft
	if most <= 0 {
		return 0, 0
	}
	if s.o.propose != nil {
		d.proposal = draft.Proposal{Tokens: s.o.propose(q.tokens, most)}
		return len(d.proposal.Tokens), 0
	}
	if d.index == nil {
		d.index = draft.NewIndex(d.prediction)
	}
	d.index.Add(q.tokens)
	d.proposal = d.index.Propose(d.tokens[:0], most)
	return s.gate.Worth(d.proposal, &d.record, rows, tokens)
}

// settleDraft says how many tokens of q's draft were right, and notes it.
func (s *Scheduler) settleDraft(q *sequence) (right int) {
	d := &q.draft
	if len(d.tokens) == 0 {
		return 0
	}
	right = q.rightDrafts()
	s.counts.AcceptedTokens += uint64(right)
	if s.o.propose == nil {
		s.gate.Settle(d.proposal.Match, len(d.tokens), right, d.rows, d.baseTokens, &d.record)
	}
	if d.proposal.Predicted {
		q.stream.countPrediction(right, len(d.tokens)-right)
	}
	return right
}

// rightDrafts is how many of the drafted tokens were sampled.
func (q *sequence) rightDrafts() (n int) {
	for n < min(len(q.draft.tokens), len(q.newTokens)) && q.newTokens[n].ID == q.draft.tokens[n] {
		n++
	}
	return n
}

// observe tells the gate how long the running step of so many rows took, which began at the time
// began.
func (s *Scheduler) observe(rows int, began time.Time) {
	if s.batch.Rebuild {
		return
	}
	decode := true
	for _, q := range s.running[:s.runningAtLaunch] {
		decode = decode && (q.inFlight == 0 || q.inFlight == 1+len(q.draft.tokens))
	}
	took, tokens := s.o.now().Sub(began), len(s.batch.LogitRows)
	s.gate.Observe(rows, took, decode)
	s.costs.observe(tokens, rows-tokens, took)
}

func (st *Stream) countPrediction(accepted, rejected int) {
	st.mu.Lock()
	st.timing.Accepted += accepted
	st.timing.Rejected += rejected
	st.mu.Unlock()
}

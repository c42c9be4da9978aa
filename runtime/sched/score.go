// The logprobs of a prompt's own tokens.
//
// They need the logits of every row of the prompt, 800 KB each. What must stay true: few of them
// are held at once, so a scored prompt is read in small steps, one such prompt at a time; only the
// best few of each row are kept.

package sched

import (
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
)

// mostScored is how many rows of a prompt are scored in a step.
const mostScored = 16

// scores tells that rows of the prompt are still to be scored.
func (q *sequence) scores() bool { return q.score.enabled && q.position() < q.prompt-1 }

// mostRows bounds the rows that a sequence may get in the next step; scored tells that another
// sequence is scored in that step.
func (s *Scheduler) mostRows(q *sequence, scored *bool) int {
	switch {
	case !q.scores():
		return q.remaining()
	case *scored:
		return 0
	}
	*scored = true
	return min(q.remaining(), max(1, min(mostScored, s.o.MaxNumSeqs-len(s.running)+1)))
}

// askScores asks for the logits of the rows of the prompt that were added to the batch, which begin
// at row first. The last row of a prompt is that of the first sampled token.
func (s *Scheduler) askScores(q *sequence, pos, first int) {
	q.score.from, q.score.row = pos, len(s.batch.LogitRows)
	q.score.count = max(0, min(pos+q.rows, q.prompt-1)-pos)
	if !q.score.enabled || q.rebuildTo > 0 {
		q.score.count = 0
	}
	for i := range q.score.count {
		s.batch.LogitRows = append(s.batch.LogitRows, int32(first+i))
	}
}

// scorePrompts keeps the prompts' logprobs of the step's logits.
func (s *Scheduler) scorePrompts() {
	for _, q := range s.running {
		for i := range q.score.count {
			row := s.logits[(q.score.row+i)*s.spec.Vocab : (q.score.row+i+1)*s.spec.Vocab]
			pos := q.score.from + i + 1
			scored, err := sample.Score(row, q.tokens[pos], q.score.top)
			if err != nil {
				q.err = err
				break
			}
			q.stream.score(pos, scored)
		}
		q.score.count = 0
	}
}

// score keeps the logprob of token at of the prompt.
func (st *Stream) score(pos int, t engine.SampledToken) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for len(st.prompt) <= pos {
		st.prompt = append(st.prompt, engine.SampledToken{})
	}
	st.prompt[pos] = t
}

// Prompt is the prompt's tokens with their logprobs, the first without; complete once a token or
// the end has arrived. nil if Request.ScorePrompt did not ask for it.
func (st *Stream) Prompt() []engine.SampledToken {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.prompt)
}

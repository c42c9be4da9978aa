// A request as the loop sees it. Only the loop's goroutine uses a sequence, except for sampling,
// where several goroutines work on different sequences.

package sched

import (
	"cmp"
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
)

type sequence struct {
	stream     *Stream
	share      *Share
	sampler    *sample.Sampler
	constraint grammar.Constraint // nil: everything is allowed
	stop       []int32
	adapter    int
	inMemory   bool        // see TokenRequest
	pages      *kv.PageLog // may be nil

	tokens    []int32 // prompt, forced, sampled: everything known
	prompt    int     // of tokens
	forced    int     // tokens[prompt:forced] are forced
	delivered int     // tokens[prompt:delivered] are in the stream
	maxTokens int     // prompt included

	table    kv.Table
	root     kv.Hash   // of its pages' names
	hashes   []kv.Hash // of the full pages of tokens, as far as they were needed
	cuts     []int
	computed int    // positions whose keys and values are in the pages
	seen     int    // positions that were ever computed or found in the cache
	rows     int    // granted in the next step
	rests    bool   // others of its client have their turn then
	lastStep uint64 // the last step that it had rows in, or was admitted before

	score struct { // of the prompt, if it is wanted
		enabled     bool
		top         int
		from, count int // tokens whose logits the running step gives, from token from+1 on
		row         int // row of the step's logits for the first of them
	}
	inFlight int // rows in the running step, drafted ones included
	logitRow int // row of that step's logits to sample from, -1 for none; those of drafts follow
	draft    draftState

	// inFlight and logits of the step that is queued after the running one on a device
	next struct{ rows, logits int }

	// While window pages are rebuilt, computed goes from rebuildFrom to rebuildTo; the full layers
	// have everything before rebuildTo. Otherwise both are 0.
	rebuildFrom, rebuildTo int

	allowed     []uint64 // the mask of this step
	narrowMasks int      // how many masks more are expected to be worth waiting for: see narrow
	newTokens   []Token  // of this step: sampled, and forced after them
	err         error
}

// newSequence makes the sequence of a checked request; forced are the tokens that its constraint
// forces at the beginning.
func newSequence(r TokenRequest, forced []int32, spec models.Spec, context int,
	stream *Stream) *sequence {
	q := &sequence{stream: stream, share: cmp.Or(r.Share, &Share{}), constraint: r.Constraint,
		adapter: r.Adapter, inMemory: r.InMemory, pages: r.Pages, prompt: len(r.Prompt),
		delivered: len(r.Prompt), maxTokens: context}
	q.score.enabled, q.score.top = r.ScorePrompt, r.PromptTop
	if r.MaxTokens > 0 {
		q.maxTokens = min(context, q.prompt+r.MaxTokens)
	}
	q.draft.prediction = slices.Clone(r.Prediction)
	q.sampler = sample.New(r.Params, spec.Vocab, r.Prompt)
	q.sampler.HoldStops(r.Stop)
	q.stop = slices.DeleteFunc(slices.Clone(r.Stop),
		func(id int32) bool { return r.Params.IgnoreEOS && slices.Contains(spec.EOS, id) })
	forced = forced[:min(len(forced), q.maxTokens-q.prompt)]
	if index := slices.IndexFunc(forced, q.stops); index >= 0 {
		forced = forced[:index+1]
	}
	q.forced = q.prompt + len(forced)
	for _, id := range forced {
		q.accept(id)
	}
	for _, c := range r.Cuts {
		if c > 0 && c < q.prompt && (len(q.cuts) == 0 || c > q.cuts[len(q.cuts)-1]) {
			q.cuts = append(q.cuts, c)
		}
	}
	q.cuts = append(q.cuts, q.prompt)
	q.tokens = append(append(make([]int32, 0, q.forced+64), r.Prompt...), forced...)
	return q
}

// decodes tells that the sequence needs one row for its next token, prefills that it needs several.
func (q *sequence) decodes() bool  { return q.rebuildTo == 0 && q.remaining() == 1 && !q.last() }
func (q *sequence) prefills() bool { return q.rebuildTo == 0 && q.remaining() > 1 }

func (q *sequence) stops(id int32) bool { return slices.Contains(q.stop, id) }

// position is how many positions will be computed when the running step is over. Between two steps
// it equals computed.
func (q *sequence) position() int { return q.computed + q.inFlight }

// knownTokens is how many tokens there will be when the running step is over, if the draft is
// right. The last one may not be sampled yet.
func (q *sequence) knownTokens() int {
	if q.inFlight > 0 && q.logitRow >= 0 {
		return len(q.tokens) + len(q.draft.tokens) + 1
	}
	return len(q.tokens)
}

// remaining is how many known tokens will not be computed then: one for a sequence that decodes.
func (q *sequence) remaining() int { return q.knownTokens() - q.position() }

// last tells that the sequence will certainly end with the running step.
func (q *sequence) last() bool {
	return q.inFlight > 0 && q.knownTokens() == q.maxTokens && q.position() >= q.maxTokens-1
}

// allow makes the mask of the token that the running step will sample.
func (q *sequence) allow() {
	if q.constraint == nil {
		return
	}
	q.allowed = q.constraint.Mask()
	q.narrowMasks = max(0, q.narrowMasks-1)
	if isNarrow(q.allowed) {
		q.narrowMasks = narrowFor
	}
}

// choose samples the next token from the sequence's row of logits, and one more from each row after
// it for as long as the tokens are those that were drafted.
func (q *sequence) choose(logits []float32, vocab int) {
	for ends := false; !ends && q.err == nil; {
		row := len(q.newTokens)
		if row > 0 {
			if row > len(q.draft.tokens) || q.rightDrafts() < row {
				break
			}
			q.allow()
		}
		var t engine.SampledToken
		t, q.err = q.sampler.Next(logits[row*vocab:(row+1)*vocab], len(q.tokens)+row, q.allowed)
		ends = q.acceptSampled(t)
	}
	q.allowed = nil
}

// acceptSampled accepts a sampled token and the tokens that the constraint forces after it, and
// tells whether the sequence ends with them.
func (q *sequence) acceptSampled(t engine.SampledToken) (ends bool) {
	if q.err != nil {
		return true
	}
	if ends = q.appendToken(Token{SampledToken: t}); ends || q.constraint == nil {
		return ends
	}
	for _, id := range q.constraint.Forced() {
		if q.appendToken(forcedToken(id)) {
			return true
		}
	}
	return false
}

// appendToken accepts one token of this step.
func (q *sequence) appendToken(t Token) (ends bool) {
	q.newTokens = append(q.newTokens, t)
	q.accept(t.ID)
	return q.stops(t.ID) || len(q.tokens)+len(q.newTokens) == q.maxTokens
}

// accept tells the sampler and the constraint about a generated token.
func (q *sequence) accept(id int32) {
	q.sampler.Accept(id)
	if q.constraint != nil {
		q.constraint.Accept(id)
	}
}

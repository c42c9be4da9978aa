// A request as the loop sees it. Only the loop's goroutine touches a sequence, but for sampling,
// where each is touched by one goroutine.

package sched

import (
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
)

type sequence struct {
	stream  *Stream
	sampler *sample.Sampler
	held    grammar.Constraint // nil: everything is allowed
	stop    []int32

	tokens    []int32 // prompt, forced, sampled: everything known
	prompt    int     // of tokens
	forced    int     // tokens[prompt:forced] are forced
	delivered int     // tokens[prompt:delivered] are in the stream
	most      int     // tokens at most

	table    kv.Table
	hashes   []kv.Hash // of the whole pages of tokens; as far as they were needed
	cuts     []int
	computed int // positions whose keys and values are in the pages
	seen     int // positions that were computed or found at any time
	rows     int // granted in the next step
	flying   int // in the step that runs
	logits   int // row of that step's logits to sample from, -1 for none

	// flying and logits of the step that is queued behind the running one on a device
	next struct{ rows, logits int }

	// While the window layers' pages before a hit's end are computed again, computed runs from
	// rebuildFrom to rebuildTo; the full layers have everything below rebuildTo. Else both are 0.
	rebuildFrom, rebuildTo int

	allowed []uint64            // what the mask allows to choose in this step
	sampled engine.SampledToken // of this step
	fed     []int32             // what has to follow the choice
	err     error
}

// newSequence takes a checked request and what its constraint forces first.
func newSequence(r Request, forced []int32, spec models.Spec, context int,
	stream *Stream) *sequence {
	q := &sequence{stream: stream, held: r.Constraint, prompt: len(r.Prompt),
		delivered: len(r.Prompt), most: context}
	if r.MaxTokens > 0 {
		q.most = min(context, q.prompt+r.MaxTokens)
	}
	q.sampler = sample.New(r.Params, spec.Vocab, r.Prompt)
	q.sampler.HoldStops(r.Stop)
	for _, id := range r.Stop {
		if !(r.Params.IgnoreEOS && slices.Contains(spec.EOS, id)) {
			q.stop = append(q.stop, id)
		}
	}
	forced = forced[:min(len(forced), q.most-q.prompt)]
	if at := slices.IndexFunc(forced, q.stops); at >= 0 {
		forced = forced[:at+1]
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

// decodes tells that one row moves it on, prefills that it has more than that before it.
func (q *sequence) decodes() bool  { return q.rebuildTo == 0 && q.left() == 1 && !q.last() }
func (q *sequence) prefills() bool { return q.rebuildTo == 0 && q.left() > 1 }

func (q *sequence) stops(id int32) bool { return slices.Contains(q.stop, id) }

// at is how many positions will be in the pages when the running step is over; between two steps it
// is computed.
func (q *sequence) at() int { return q.computed + q.flying }

// known is how many tokens will be known then, though not which the last one is.
func (q *sequence) known() int {
	if q.flying > 0 && q.logits >= 0 {
		return len(q.tokens) + 1
	}
	return len(q.tokens)
}

// left is how many known tokens will not be computed. One is left to a sequence that decodes.
func (q *sequence) left() int { return q.known() - q.at() }

// last tells that the running step is certainly its last.
func (q *sequence) last() bool { return q.flying > 0 && q.known() == q.most && q.at() >= q.most-1 }

// allow asks for the mask of the token that the running step gives.
func (q *sequence) allow() {
	if q.held != nil {
		q.allowed = q.held.Mask()
	}
}

// choose samples from its row of the step's logits.
func (q *sequence) choose(logits []float32) {
	q.sampled, q.err = q.sampler.Next(logits, len(q.tokens), q.allowed)
	q.allowed, q.fed = nil, nil
	q.follows()
}

// follows takes the choice and asks what has to come after it.
func (q *sequence) follows() {
	if q.err != nil {
		return
	}
	q.accept(q.sampled.ID)
	if q.held != nil && !q.stops(q.sampled.ID) {
		q.fed = q.held.Forced()
	}
}

// accept tells the sampler and the constraint of a generated token.
func (q *sequence) accept(id int32) {
	q.sampler.Accept(id)
	if q.held != nil {
		q.held.Accept(id)
	}
}

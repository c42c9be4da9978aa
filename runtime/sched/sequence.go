// A request as the loop sees it. Only the loop's goroutine touches a sequence, but for sampling, where each is touched
// by one goroutine.

package sched

import (
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
)

type sequence struct {
	stream  *Stream
	sampler *sample.Sampler
	mask    func([]int32) []uint64
	stop    []int32

	tokens    []int32 // prompt, forced, sampled: everything known
	prompt    int     // of tokens
	forced    int     // tokens[prompt:forced] are forced
	delivered int     // tokens[prompt:delivered] are in the stream
	most      int     // tokens at most

	table    kv.Table
	computed int // positions whose keys and values are in the pages
	rows     int // granted in this step
	logits   int // row of the step's logits to sample from, -1 for none

	choice sample.Choice // of this step
	err    error
}

// newSequence takes a checked request.
func newSequence(r Request, spec models.Spec, context int, stream *Stream) *sequence {
	q := &sequence{stream: stream, mask: r.Mask, prompt: len(r.Prompt), delivered: len(r.Prompt), most: context}
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
	forced := r.Forced[:min(len(r.Forced), q.most-q.prompt)]
	if at := slices.IndexFunc(forced, q.stops); at >= 0 {
		forced = forced[:at+1]
	}
	q.forced = q.prompt + len(forced)
	for _, id := range forced {
		q.sampler.Accept(id)
	}
	q.tokens = append(append(make([]int32, 0, q.forced+64), r.Prompt...), forced...)
	return q
}

func (q *sequence) stops(id int32) bool { return slices.Contains(q.stop, id) }

// left is how many known tokens are not computed. One is left to a sequence that decodes.
func (q *sequence) left() int { return len(q.tokens) - q.computed }

// choose samples from its row of the step's logits.
func (q *sequence) choose(logits []float32) {
	var mask []uint64
	if q.mask != nil {
		mask = q.mask(q.tokens[q.prompt:])
	}
	q.choice, q.err = q.sampler.Next(logits, len(q.tokens), mask)
}

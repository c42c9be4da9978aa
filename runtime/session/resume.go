// Continues a turn that an earlier process has begun.
//
// What must stay true: its tokens make the same events and ids again; tokens sampled after them
// follow the same rules, and are those that would have come if the sampling parameters depend on
// seed and position only.

package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sched"
)

// Sampled is the tokens of a turn so far, from which another process can go on: Request.Sampled.
// It is safe for concurrent use. nil: the turn cannot be taken up.
func Sampled(t Turn) []int32 {
	if r, ok := t.(interface{ Sampled() []int32 }); ok {
		return r.Sampled()
	}
	return nil
}

// Sampled is the method that the function Sampled looks for.
func (t *turn) Sampled() []int32 {
	if p := t.taken.Load(); p != nil {
		return *p
	}
	return nil
}

// takeUp adds the sampled tokens to the prompt, and tells whether nothing is left to be sampled.
func (t *turn) takeUp(constraint grammar.Constraint, prompt *[]int32, most *int,
	sampled []int32) (ended bool) {
	for _, id := range sampled {
		constraint.Accept(id) // a token that is illegal now was illegal then
	}
	*prompt = append((*prompt)[:len(*prompt):len(*prompt)], sampled...)
	last := sampled[len(sampled)-1]
	why := FinishStop
	if *most > 0 {
		if *most -= len(sampled); *most <= 0 {
			why = FinishLength
		}
	}
	if why == FinishLength || slices.Contains(t.stopTokens(), last) && !t.req.Params.IgnoreEOS {
		t.stream, t.leave = endedStream(why), func() {}
		return true
	}
	return false
}

// callID is the id of the next call.
func (t *turn) callID() string {
	if t.req.ID == "" {
		return newCallID()
	}
	sum := sha256.Sum256([]byte(t.req.ID + " " + strconv.Itoa(len(t.result.Calls))))
	return "call_" + hex.EncodeToString(sum[:12])
}

// endedStream has no more tokens.
type endedStream Finish

func (e endedStream) Next(context.Context) (sched.Token, bool) { return sched.Token{}, false }
func (e endedStream) Finish() Finish                           { return Finish(e) }
func (e endedStream) Err() error                               { return nil }
func (e endedStream) Timing() sched.Timing                     { return sched.Timing{} }
func (e endedStream) Prompt() []engine.SampledToken            { return nil }

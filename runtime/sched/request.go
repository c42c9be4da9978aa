// What is asked of the scheduler and what comes back.

package sched

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sample"
)

// Request is one sequence to generate. Its slices are copied by Submit.
type Request struct {
	Prompt []int32
	Params sample.Params
	// generated tokens at most, forced ones included; 0: as many as the context holds
	MaxTokens int
	Stop      []int32 // ids that end it; Params.IgnoreEOS takes the model's end tokens out of them
	// Constraint says which tokens may come. What it forces is delivered as if it had been sampled,
	// and fed as input in one step. It is called by one goroutine at a time, those of different
	// requests at the same time; nil allows everything.
	Constraint grammar.Constraint
	// Cuts are lengths of the prompt at which a later prompt is likely to leave this one: after the
	// system and developer messages, after each user message and each tool result, ascending. Pages
	// there are kept longest.
	Cuts []int
}

// Token is one generated token. Forced tokens have no logprobs.
type Token struct {
	engine.SampledToken
	Forced bool
}

func forcedToken(id int32) Token {
	return Token{SampledToken: engine.SampledToken{ID: id}, Forced: true}
}

// Finish says why a stream ended; it is empty while it runs.
type Finish string

const (
	// a stop id was generated; it was delivered as the last Token
	FinishStop      Finish = "stop"
	FinishLength    Finish = "length"    // MaxTokens or the context is used up
	FinishCancelled Finish = "cancelled" // the context given to Submit was cancelled
	FinishError     Finish = "error"     // see Err
)

// ErrQueueFull is returned when as many requests wait as may.
var ErrQueueFull = errors.New("too many requests are waiting")

// ErrClosed ends the requests of a scheduler that is closed, and is returned to new ones.
var ErrClosed = errors.New("the scheduler is closed")

// EngineError ends the requests that were in a step which failed.
type EngineError struct{ Fault error }

func (e *EngineError) Error() string {
	return "the engine failed while this request ran: " + e.Fault.Error() + "; send it again"
}

func (e *EngineError) Unwrap() error { return e.Fault }

// ContextLengthError is a request that can never fit: it needs Asked tokens (its prompt, its forced
// tokens and one to generate), the context holds Max.
type ContextLengthError struct{ Max, Asked int }

func (e *ContextLengthError) Error() string {
	return fmt.Sprintf("the request needs at least %d tokens, the context holds %d", e.Asked, e.Max)
}

// check refuses what cannot be run; forced is what the constraint wants first.
func (r *Request) check(forced []int32, spec models.Spec, context int) error {
	if len(r.Prompt) == 0 {
		return errors.New("the prompt is empty")
	}
	if r.MaxTokens < 0 {
		return fmt.Errorf("max tokens must be 0 or more, got %d", r.MaxTokens)
	}
	for _, ids := range [][]int32{r.Prompt, forced} {
		for _, id := range ids {
			if id < 0 || int(id) >= spec.Vocab {
				return fmt.Errorf("token %d is not in the vocabulary of %d", id, spec.Vocab)
			}
		}
	}
	if err := r.Params.Check(spec.Vocab); err != nil {
		return err
	}
	if asked := len(r.Prompt) + len(forced) + 1; asked > context {
		return &ContextLengthError{Max: context, Asked: asked}
	}
	return nil
}

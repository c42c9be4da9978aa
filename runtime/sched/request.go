// Requests to the scheduler, and their results.

package sched

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/sample"
)

// TokenRequest is one sequence to generate. Its slices are copied by Submit.
type TokenRequest struct {
	Prompt []int32
	Params sample.Params
	// generated tokens at most, forced ones included; 0: as many as the context holds
	MaxTokens int
	Stop      []int32 // ids that end it; with Params.IgnoreEOS the model's end tokens do not
	// Constraint says which tokens may come next; nil allows all. Tokens that it forces are
	// delivered like sampled ones and computed in one step. One constraint is used by one goroutine
	// at a time, constraints of different requests by several.
	Constraint grammar.Constraint
	// Cuts are lengths of the prompt at which a later prompt will probably differ from it, in
	// ascending order: after the system and developer messages, and after each user message and
	// tool result. The pages there are kept longest.
	Cuts []int
	// Adapter is the model of the engine that answers: 0, or one of its adapters, counted from 1.
	Adapter int
	// Salt keeps the pages apart: only requests with the same one share any.
	Salt string
	// InMemory keeps its pages off the disk of Options.Spill. Pages gets the names of those that
	// may be written to it; it may be nil.
	InMemory bool
	Pages    *kv.PageLog
	// Share is the share of the machine it takes part in; nil: one of its own.
	Share *Share
	// Prediction is the predicted answer with preceding context. It changes only the time.
	Prediction []int32
	// ScorePrompt asks for the logprob of each token of the prompt but the first, with PromptTop
	// rivals (Stream.Prompt). The prefix cache is not used then.
	ScorePrompt bool
	PromptTop   int
	// Progress asks for a Token with Prefilled after each step with tokens of the prompt.
	Progress bool
}

// Share is what the sequences of one request have in common: while others wait, they get no more
// room together than those of another request, nor those of a client than another client's.
type Share struct {
	Client string
	// Background sequences run only while no others wait or run, and have no place among those that
	// may wait: their caller bounds them.
	Background bool
}

// Token is one generated token. Forced tokens have no logprobs.
type Token struct {
	engine.SampledToken
	Forced    bool
	Prefilled int // not 0: no token, but how much of the prompt is computed
}

func forcedToken(id int32) Token {
	return Token{SampledToken: engine.SampledToken{ID: id}, Forced: true}
}

// FinishReason says why a stream ended; it is empty while it runs.
type FinishReason string

const (
	// a stop id was generated; it was delivered as the last Token
	FinishStop      FinishReason = "stop"
	FinishLength    FinishReason = "length"    // MaxTokens or the context is used up
	FinishCancelled FinishReason = "cancelled" // the context given to Submit was cancelled
	FinishError     FinishReason = "error"     // see Err
)

// ErrQueueFull is returned when Options.MaxWaiting requests wait, or a client's share of them.
var ErrQueueFull = errors.New("too many requests are waiting")

// ErrClosed ends the requests of a scheduler that is closed, and is returned to new ones.
var ErrClosed = errors.New("the scheduler is closed")

// EngineError ends the requests that were in a failed step.
type EngineError struct{ Fault error }

func (e *EngineError) Error() string {
	return "the engine failed while this request ran: " + e.Fault.Error() + "; send it again"
}

func (e *EngineError) Unwrap() error { return e.Fault }

// ContextLengthError refuses a request that can never fit: it needs Needed tokens (its prompt, its
// forced tokens and one to generate), but the context holds Max.
type ContextLengthError struct{ Max, Needed int }

func (e *ContextLengthError) Error() string {
	return fmt.Sprintf("the request needs at least %d tokens, the context holds %d", e.Needed,
		e.Max)
}

// check refuses requests that cannot run; forced are the tokens that the constraint forces first.
func (r *TokenRequest) check(forced []int32, spec models.Spec, context int) error {
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
	if needed := len(r.Prompt) + len(forced) + 1; needed > context {
		return &ContextLengthError{Max: context, Needed: needed}
	}
	return nil
}

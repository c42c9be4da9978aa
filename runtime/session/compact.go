// Compacting: a conversation that fills its context continues from a summary of itself.

package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sched"
)

const compactInstructions = `Write a summary of this conversation, for yourself: you go on from it, ` +
	`and you will not see the messages above again. Keep what the user asked for and decided, ` +
	`names, numbers, file paths and code that are still needed, what was done and found out, and ` +
	`what is still open. Write nothing else, and do not answer the last message.`

type Summary struct {
	Text    string
	Dropped int // oldest messages that did not fit into the context and were not read
	Usage   Usage
}

// Message is the summary as the first message of the continued conversation.
func (s Summary) Message() Message {
	return User("Summary of our conversation so far:\n\n" + s.Text)
}

// Compact asks the model for a summary of the request's messages, on the prompt that a turn of the
// request has cached: its effort and tools stay, and none can be called. If the messages do not fit
// into the context, the tools and the oldest messages are left out until they do.
func Compact(ctx context.Context, r Runner, req Request) (Summary, error) {
	all := req.Messages
	for dropped := 0; ; dropped += max(1, (len(all)-dropped)/4) {
		if len(all) == 0 || dropped >= len(all) {
			return Summary{}, errors.New("there is no conversation that could be summarised")
		}
		ask := Request{Identity: req.Identity, Date: req.Date, Effort: req.Effort,
			Instructions: req.Instructions, Functions: req.Functions, Strict: req.Strict,
			Texts: req.Texts, Python: req.Python, Browser: req.Browser, Params: req.Params,
			Messages:   append(withoutOrphans(all[dropped:]), User(compactInstructions)),
			ToolChoice: grammar.None, Salt: req.Salt, Share: req.Share, Budget: req.Budget,
			InMemory: req.InMemory, Pages: req.Pages}
		if dropped > 0 { // the messages are in no cached prompt
			ask.Effort, ask.Functions, ask.Strict, ask.Texts = "low", nil, nil, nil
			ask.Python, ask.Browser = false, false
		}
		turn, err := r.Start(ctx, ask)
		if _, long := errors.AsType[*sched.ContextLengthError](err); long {
			continue
		}
		if err != nil {
			return Summary{}, err
		}
		for _, ok := turn.Next(); ok; _, ok = turn.Next() {
		}
		res := turn.Result()
		switch {
		case res.Done.Err != nil:
			return Summary{}, res.Done.Err
		case res.Done.Finish == FinishCancelled:
			return Summary{}, context.Cause(ctx)
		case strings.TrimSpace(res.Answer) == "":
			return Summary{}, fmt.Errorf("the model wrote no summary (%s)", res.Done.Finish)
		}
		return Summary{strings.TrimSpace(res.Answer), dropped, res.Done.Usage}, nil
	}
}

// withoutOrphans leaves out results at the start whose calls were dropped, and returns a new slice.
func withoutOrphans(messages []Message) []Message {
	for len(messages) > 0 && messages[0].Role == harmony.RoleTool {
		messages = messages[1:]
	}
	return append([]Message(nil), messages...)
}

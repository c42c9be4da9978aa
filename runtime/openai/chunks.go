// Answers in the form of chat completions and of completions: the object around the choices, the
// chunks of a stream, and the usage.
//
// What must stay true: all chunks have the same id; a stream always ends in data: [DONE], unless
// the client is gone.

package openai

import (
	"encoding/json"

	"github.com/ossrun/ossrun/runtime/session"
)

type completion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices any    `json:"choices"`
	// vLLM's, where the client asks for ids: of a whole answer, or in the first chunk
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	// of a stream with include_usage: null in all but the last chunk
	Usage any `json:"usage,omitempty"`
}

// chunks is the part of a form that does not depend on what a choice looks like.
type chunks struct {
	*answer
	id     string
	object string // of a chunk
	usage  bool   // the client asked for it at the end of the stream
}

func (c *chunks) send(choice any) {
	c.emit("", c.completion([]any{choice}, c.noUsage()))
}

// noUsage is the usage field of all chunks but the last.
func (c *chunks) noUsage() any {
	if c.usage {
		return json.RawMessage("null")
	}
	return nil
}

func (c *chunks) completion(choices, usage any) completion {
	return completion{ID: c.id, Object: c.object, Created: c.created, Model: c.model,
		Choices: choices, Usage: usage}
}

// beatWith keeps the connection alive. It sends a comment, for proxies, and an empty piece of a
// running choice, for clients whose timer only data resets.
func (c *chunks) beatWith(empty func(choice int) any) {
	c.out.comment("keep-alive")
	for i, d := range c.dones {
		if d == nil {
			c.send(empty(i))
			return
		}
	}
}

func (c *chunks) end(usage session.Usage, f *fault) {
	if f != nil {
		c.emit("", f.body())
	} else if c.usage {
		c.emit("", c.completion([]any{}, c.wireUsage(usage)))
	}
	c.out.line("[DONE]")
}

// tokens are the ids of a choice that has ended, nil if the client has not asked for them.
func (c *chunks) tokens(choice int) []int32 {
	if !c.req.ids || c.turns == nil {
		return nil
	}
	return c.turns[choice].Result().Tokens
}

type chatUsage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	PromptDetails    promptDetails `json:"prompt_tokens_details"`
	OutputDetails    chatDetails   `json:"completion_tokens_details"`
}

type chatDetails struct {
	outputDetails
	// of the prediction, where there is one
	Accepted *int `json:"accepted_prediction_tokens,omitempty"`
	Rejected *int `json:"rejected_prediction_tokens,omitempty"`
}

func (c *chunks) wireUsage(u session.Usage) chatUsage {
	w := wireUsage(u)
	if c.req.predicted {
		w.OutputDetails.Accepted, w.OutputDetails.Rejected = &u.Accepted, &u.Rejected
	}
	return w
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

func wireUsage(u session.Usage) chatUsage {
	return chatUsage{PromptTokens: u.Prompt, CompletionTokens: u.Completion,
		TotalTokens:   u.Prompt + u.Completion,
		PromptDetails: promptDetails{u.Cached},
		OutputDetails: chatDetails{outputDetails: outputDetails{u.Reasoning}}}
}

type outputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

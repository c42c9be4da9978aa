// POST /v1/chat/completions: the answer's objects, field for field as clients decode them, and the
// chunks of a stream, which completions have too.
//
// Reasoning is sent as `reasoning` or, where the server is told so, as `reasoning_content`, never
// as both: the Agents SDK for Python loses it then. What must stay true: all chunks have the same
// id; a stream always ends in data: [DONE], unless the client is gone.

package openai

import (
	"encoding/json"

	"github.com/ossrun/ossrun/runtime/session"
)

type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatReply     `json:"message"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
	TokenIDs     []int32       `json:"token_ids,omitempty"` // vLLM's
	Own          *ownPart      `json:"ossrun,omitempty"`
}

// ownPart is what OpenAI's objects have no place for. Clients that do not know it pass over it.
type ownPart struct {
	Loop string `json:"loop"` // why the turn was ended, see session.ErrLoop
}

// ownPartOf tells of a loop that was ended, nil if there was none.
func ownPartOf(done *session.Done) *ownPart {
	if done.Finish != session.FinishLoop {
		return nil
	}
	return &ownPart{session.ErrLoop.Error()}
}

type chatReply struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	chatThought
	Refusal     *string    `json:"refusal"`
	Annotations []struct{} `json:"annotations"`
	chatCalls
}

// chatThought is reasoning under one of its names.
type chatThought struct {
	Reasoning string `json:"reasoning,omitempty"`
	OtherName string `json:"reasoning_content,omitempty"` // Options.ReasoningContent
}

type chatCalls struct {
	ToolCalls    []chatCall    `json:"tool_calls,omitempty"`
	FunctionCall *chatFunction `json:"function_call,omitempty"` // the deprecated form
}

// chatCall is a call, or a piece of the call with this index in a stream.
type chatCall struct {
	Index    *int          `json:"index,omitempty"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"` // function or custom
	Function *chatFunction `json:"function,omitempty"`
	Custom   *chatCustom   `json:"custom,omitempty"`
}

type chatCustom struct {
	Name  string `json:"name,omitempty"`
	Input string `json:"input"`
}

func callOf(custom bool, name, arguments string) chatCall {
	if custom {
		return chatCall{Custom: &chatCustom{name, arguments}}
	}
	return chatCall{Function: &chatFunction{name, arguments}}
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatDelta struct {
	Index        int           `json:"index"`
	Delta        chatPiece     `json:"delta"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	TokenIDs     []int32       `json:"token_ids,omitempty"` // all of them, in the last chunk
	Own          *ownPart      `json:"ossrun,omitempty"`    // in the last chunk
}

type chatPiece struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	chatThought
	chatCalls
}

type chatLogprobs struct {
	Content []tokenLogprob `json:"content"`
	Refusal []tokenLogprob `json:"refusal"`
}

// tokenLogprob is one token, in chat completions and in responses.
type tokenLogprob struct {
	rivalLog
	Top []rivalLog `json:"top_logprobs"`
}

type rivalLog struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // numbers: encoding/json would make base64 of []byte
}

func wireLogprobs(list []session.TokenLogprob) []tokenLogprob {
	wire := func(l session.TokenLogprob) rivalLog {
		return rivalLog{l.Token, finite(l.Logprob), numbers(l.Bytes)}
	}
	out := make([]tokenLogprob, len(list))
	for i, l := range list {
		out[i] = tokenLogprob{wire(l), make([]rivalLog, len(l.Top))}
		for k, t := range l.Top {
			out[i].Top[k] = wire(t)
		}
	}
	return out
}

func numbers(b []byte) []int {
	out := make([]int, len(b))
	for i, x := range b {
		out[i] = int(x)
	}
	return out
}

// finite keeps JSON writable: a forbidden token has the logprob -Inf, for which OpenAI uses -9999.
func finite(f float32) float32 {
	if f >= -9999 { // false for NaN too
		return f
	}
	return -9999
}

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

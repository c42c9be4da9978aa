// Answers in the form of chat completions and of completions: the object around the choices, the
// chunks of a stream, the usage, and parts that other dialects have too.
//
// What must stay true: all chunks have the same id; a stream always ends in data: [DONE], unless
// the client is gone.

package answer

import (
	"encoding/json"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

type Completion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices any    `json:"choices"`
	// vLLM's, if the client asks for ids: in a full answer, or in the first chunk
	PromptTokenIDs []int32         `json:"prompt_token_ids,omitempty"`
	Metadata       json.RawMessage `json:"metadata,omitempty"` // of a stored one
	// of a stream with include_usage: null in all but the last chunk
	Usage any `json:"usage,omitempty"`
	// llama.cpp's, with return_progress: in chunks before the first token
	Progress *promptProgress `json:"prompt_progress,omitempty"`
	// llama.cpp's, with timings_per_token
	Timings *timings `json:"timings,omitempty"`
}

// timings are llama.cpp's: tokens, milliseconds, and their rates, of the prompt and the answer.
type timings struct {
	CacheN              int     `json:"cache_n"`
	PromptN             int     `json:"prompt_n"`
	PromptMS            float64 `json:"prompt_ms"`
	PromptPerTokenMS    float64 `json:"prompt_per_token_ms"`
	PromptPerSecond     float64 `json:"prompt_per_second"`
	PredictedN          int     `json:"predicted_n"`
	PredictedMS         float64 `json:"predicted_ms"`
	PredictedPerTokenMS float64 `json:"predicted_per_token_ms"`
	PredictedPerSecond  float64 `json:"predicted_per_second"`
}

func timingsOf(c *session.Counts) *timings {
	t := &timings{CacheN: c.Usage.Cached, PromptN: c.Usage.Prompt - c.Usage.Cached,
		PromptMS: c.Timing.Prefill.Seconds() * 1000, PredictedN: c.Usage.Completion,
		PredictedMS: c.Timing.Decode.Seconds() * 1000}
	rates := func(n int, ms float64, perToken, perSecond *float64) {
		if n > 0 && ms > 0 {
			*perToken, *perSecond = ms/float64(n), float64(n)/ms*1000
		}
	}
	rates(t.PromptN, t.PromptMS, &t.PromptPerTokenMS, &t.PromptPerSecond)
	rates(t.PredictedN, t.PredictedMS, &t.PredictedPerTokenMS, &t.PredictedPerSecond)
	return t
}

// promptProgress counts tokens of a prompt; processed ones include those of the cache.
type promptProgress struct {
	Total     int   `json:"total"`
	Cache     int   `json:"cache"`
	Processed int   `json:"processed"`
	Time      int64 `json:"time_ms"`
}

// Chunks is the part of a form that is the same for all kinds of choices.
type Chunks struct {
	*Answer
	ID     string
	Object string // of a chunk
	Usage  bool   // requested for the end of the stream
}

func (c *Chunks) Send(choice any) {
	c.Emit("", c.Completion([]any{choice}, c.NoUsage()))
}

// NoUsage is the usage field of all chunks except the last: null, or the usage so far.
func (c *Chunks) NoUsage() any {
	switch {
	case c.Usage && c.Request.ContinuousUsage && c.counts != nil:
		return c.WireUsage(c.counts.Usage)
	case c.Usage && c.Request.ContinuousUsage && c.Turns != nil: // before the first token
		return c.WireUsage(session.Usage{Prompt: len(c.Turns[0].Result().Prompt)})
	case c.Usage:
		return json.RawMessage("null")
	}
	return nil
}

func (c *Chunks) Completion(choices, usage any) Completion {
	o := Completion{ID: c.ID, Object: c.Object, Created: c.Created, Model: c.Model,
		Choices: choices, Usage: usage}
	if c.Request.Timings && c.counts != nil {
		o.Timings = timingsOf(c.counts)
	}
	return o
}

// SendProgress sends how much of a prompt is computed, with an empty piece of the choice.
func (c *Chunks) SendProgress(choice any, p session.Prefill) {
	chunk := c.Completion([]any{choice}, c.NoUsage())
	chunk.Progress = &promptProgress{p.Total, p.Cached, p.Done, p.Took.Milliseconds()}
	c.Emit("", chunk)
}

// BeatWith keeps the connection alive. It sends a comment, for proxies, and an empty piece of a
// running choice, for clients whose timer is only reset by data.
func (c *Chunks) BeatWith(empty func(choice int) any) {
	c.out.Comment("keep-alive")
	for i, d := range c.Dones {
		if d == nil {
			c.Send(empty(i))
			return
		}
	}
}

func (c *Chunks) End(usage session.Usage, f *fields.Fault) {
	if f != nil {
		c.Emit("", fields.OpenAIFault(f, ""))
	} else if c.Usage {
		c.Emit("", c.Completion([]any{}, c.WireUsage(usage)))
	}
	c.out.line("[DONE]")
}

// Tokens returns the ids of a finished choice, nil if the client did not request them.
func (c *Chunks) Tokens(choice int) []int32 {
	if !c.Request.ShowIDs || c.Turns == nil {
		return nil
	}
	return c.Turns[choice].Result().Tokens
}

// Usage counts tokens in the form of both routes.
type Usage struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	PromptDetails    promptDetails `json:"prompt_tokens_details"`
	OutputDetails    chatDetails   `json:"completion_tokens_details"`
}

type chatDetails struct {
	OutputDetails
	// of the prediction, if there is one
	Accepted *int `json:"accepted_prediction_tokens,omitempty"`
	Rejected *int `json:"rejected_prediction_tokens,omitempty"`
}

// WireUsage is the function WireUsage with the counts of a prediction.
func (c *Chunks) WireUsage(u session.Usage) Usage {
	w := WireUsage(u)
	if c.Request.Predicted {
		w.OutputDetails.Accepted, w.OutputDetails.Rejected = &u.Accepted, &u.Rejected
	}
	return w
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// WireUsage is a session's usage for clients.
func WireUsage(u session.Usage) Usage {
	return Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion,
		TotalTokens:   u.Prompt + u.Completion,
		PromptDetails: promptDetails{u.Cached},
		OutputDetails: chatDetails{OutputDetails: OutputDetails{u.Reasoning}}}
}

// OutputDetails counts the kinds of an answer's tokens.
type OutputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// OwnPart has members that OpenAI's objects lack. Other clients ignore them.
type OwnPart struct {
	Loop string `json:"loop"` // why the turn was ended, see session.ErrLoop
}

// OwnPartOf reports a loop that was ended, nil if there was none.
func OwnPartOf(done *session.Done) *OwnPart {
	if done.Finish != session.FinishLoop {
		return nil
	}
	return &OwnPart{session.ErrLoop.Error()}
}

// TokenLogprob is one token, in chat completions and in responses.
type TokenLogprob struct {
	alternative
	Top []alternative `json:"top_logprobs"`
}

type alternative struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // numbers: encoding/json would make base64 of []byte
}

// WireLogprobs converts logprobs for clients.
func WireLogprobs(list []session.TokenLogprob) []TokenLogprob {
	wire := func(l session.TokenLogprob) alternative {
		return alternative{l.Token, Finite(l.Logprob), byteNumbers(l.Bytes)}
	}
	out := make([]TokenLogprob, len(list))
	for i, l := range list {
		out[i] = TokenLogprob{wire(l), make([]alternative, len(l.Top))}
		for k, t := range l.Top {
			out[i].Top[k] = wire(t)
		}
	}
	return out
}

func byteNumbers(b []byte) []int {
	out := make([]int, len(b))
	for i, x := range b {
		out[i] = int(x)
	}
	return out
}

// Finite keeps JSON valid: a forbidden token has the logprob -Inf, for which OpenAI uses -9999.
func Finite(f float32) float32 {
	if f >= -9999 { // false for NaN too
		return f
	}
	return -9999
}

// OrEmpty is a list that is not null.
func OrEmpty(list []TokenLogprob) *[]TokenLogprob {
	if list == nil {
		list = []TokenLogprob{}
	}
	return &list
}

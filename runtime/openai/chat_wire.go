// POST /v1/chat/completions: the answer's objects, field for field as clients decode them.
//
// Reasoning is sent as `reasoning` or, where the server is told so, as `reasoning_content`, never
// as both: the Agents SDK for Python loses it then.

package openai

import "github.com/ossrun/ossrun/runtime/session"

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

func ownPartOf(done *session.Done) *ownPart {
	if done.Finish != session.FinishLoop {
		return nil
	}
	return &ownPart{session.ErrLoop.Error()}
}

type chatReply struct {
	Role        string     `json:"role"`
	Content     *string    `json:"content"`
	Reasoning   string     `json:"reasoning,omitempty"`
	OtherName   string     `json:"reasoning_content,omitempty"` // Options.ReasoningContent
	Refusal     *string    `json:"refusal"`
	Annotations []struct{} `json:"annotations"`
	ToolCalls   []chatCall `json:"tool_calls,omitempty"`

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

// callOf is a call, or a piece of one.
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
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"`
	OtherName string     `json:"reasoning_content,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`

	FunctionCall *chatFunction `json:"function_call,omitempty"`
}

type chatLogprobs struct {
	Content []tokenLogprob `json:"content"`
	Refusal []tokenLogprob `json:"refusal"`
}

// tokenLogprob is one token, in chat completions and in responses.
type tokenLogprob struct {
	Token   string     `json:"token"`
	Logprob float32    `json:"logprob"`
	Bytes   []int      `json:"bytes"` // numbers: encoding/json would make base64 of []byte
	Top     []rivalLog `json:"top_logprobs"`
}

type rivalLog struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func wireLogprobs(list []session.TokenLogprob) []tokenLogprob {
	out := make([]tokenLogprob, len(list))
	for i, l := range list {
		out[i] = tokenLogprob{Token: l.Token, Logprob: finite(l.Logprob), Bytes: numbers(l.Bytes),
			Top: make([]rivalLog, len(l.Top))}
		for k, t := range l.Top {
			out[i].Top[k] = rivalLog{Token: t.Token, Logprob: finite(t.Logprob),
				Bytes: numbers(t.Bytes)}
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

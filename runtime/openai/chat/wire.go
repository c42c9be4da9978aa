// POST /v1/chat/completions: the answer's objects, field for field as clients decode them.
//
// Reasoning is sent as `reasoning` or, if so configured, as `reasoning_content`, never as both: the
// Agents SDK for Python loses it then.

package chat

import (
	"github.com/ossrun/ossrun/runtime/openai/answer"
)

type chatChoice struct {
	Index        int             `json:"index"`
	Message      chatReply       `json:"message"`
	Logprobs     *chatLogprobs   `json:"logprobs"`
	FinishReason string          `json:"finish_reason"`
	TokenIDs     []int32         `json:"token_ids,omitempty"` // vLLM's
	OwnPart      *answer.OwnPart `json:"ossrun,omitempty"`
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
	Index        int             `json:"index"`
	Delta        chatPiece       `json:"delta"`
	Logprobs     *chatLogprobs   `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	TokenIDs     []int32         `json:"token_ids,omitempty"` // all of them, in the last chunk
	OwnPart      *answer.OwnPart `json:"ossrun,omitempty"`    // in the last chunk
}

type chatPiece struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	chatThought
	chatCalls
}

type chatLogprobs struct {
	Content []answer.TokenLogprob `json:"content"`
	Refusal []answer.TokenLogprob `json:"refusal"`
}

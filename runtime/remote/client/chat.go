// Answers of ports, as far as they are used: their models, chat completions and completions,
// complete or in chunks.
//
// What must stay true: a field that a port leaves out, or sends as null, is the zero value.

package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// Model is an entry of a port's list.
type Model struct {
	ID     string `json:"id"`
	Owner  string `json:"owned_by"`
	Max    int    `json:"max_model_len"`  // ours, vLLM
	Window int    `json:"context_length"` // ours, routers
}

func (c *Client) Models(ctx context.Context) ([]Model, error) {
	var list struct{ Data []Model }
	err := c.Call(ctx, "GET", "/v1/models", nil, &list)
	return list.Data, err
}

// Chunk is an answer, or one event of it.
type Chunk struct {
	Choices []struct {
		Text           string // of completions
		Delta, Message Message
		Finish         string `json:"finish_reason"`
	}
	Usage *Usage
	// llama.cpp's and ossrun's, if it was asked for
	Progress *struct {
		Total, Cache, Processed int
		Time                    int64 `json:"time_ms"`
	} `json:"prompt_progress"`
}

type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	OfPrompt   struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OfCompletion struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// Message is the assistant's, or a chunk's addition to it.
type Message struct {
	Role             string `json:"role"`
	Content          string `json:"content"`
	Refusal          string `json:"refusal,omitempty"` // OpenAI's
	Reasoning        string `json:"reasoning,omitempty"`
	ReasoningContent string `json:"reasoning_content,omitempty"`
	Calls            []Call `json:"tool_calls,omitempty"`
}

// Call is a call of a function, or a chunk's addition to one.
type Call struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Into decodes the data of the next event.
func (s *Stream) Into(v any) error {
	e, err := s.Next()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("an event is not as expected: %w", err)
	}
	return nil
}

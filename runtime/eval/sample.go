// One question to a port: the request, its retries, and the text that comes back.

package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/endpoint"
)

// Sampler asks a port.
type Sampler struct {
	Client      *endpoint.Client
	Model       string
	API         API
	Temperature float64
	MaxTokens   int
}

// API is the route.
type API string

// The routes.
const (
	Responses API = "responses"
	Chat      API = "chat"
)

// Reply is what a model says.
type Reply struct {
	Text                          string
	OutputTokens, ReasoningTokens int
	Seconds                       float64
}

var patience = endpoint.Patience{Tries: 8, Pause: time.Second}

// Sample asks for the answer to a text.
func (s *Sampler) Sample(ctx context.Context, text, effort string) (r Reply, err error) {
	began := time.Now()
	err = patience.Do(ctx, func() (err error) {
		r, err = s.send(ctx, text, effort)
		return err
	})
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

func (s *Sampler) send(ctx context.Context, text, effort string) (r Reply, err error) {
	if s.API == Chat {
		return s.chat(ctx, text, effort)
	}
	body := map[string]any{"model": s.Model, "store": false, "temperature": s.Temperature,
		"max_output_tokens": s.MaxTokens, "reasoning": map[string]string{"effort": effort},
		"input": []map[string]string{{"role": "user", "content": text}}}
	var answer struct {
		Status string
		Error  *struct{ Message string }
		Output []struct {
			Type    string
			Content []struct{ Type, Text string }
		}
		Usage struct {
			OutputTokens int `json:"output_tokens"`
			Details      struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}
	}
	if err := s.Client.Call(ctx, "POST", "/v1/responses", body, &answer); err != nil {
		return r, err
	}
	if answer.Status == "failed" && answer.Error != nil {
		return r, fmt.Errorf("the response failed: %s", answer.Error.Message)
	}
	var b strings.Builder
	for _, item := range answer.Output {
		for _, part := range item.Content {
			if item.Type == "message" && part.Type == "output_text" {
				b.WriteString(part.Text)
			}
		}
	}
	return Reply{Text: b.String(), OutputTokens: answer.Usage.OutputTokens,
		ReasoningTokens: answer.Usage.Details.Reasoning}, nil
}

func (s *Sampler) chat(ctx context.Context, text, effort string) (r Reply, err error) {
	body := map[string]any{"model": s.Model, "temperature": s.Temperature,
		"max_completion_tokens": s.MaxTokens, "reasoning_effort": effort,
		"messages": []map[string]string{{"role": "user", "content": text}}}
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			CompletionTokens int `json:"completion_tokens"`
			Details          struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if err := s.Client.Call(ctx, "POST", "/v1/chat/completions", body, &answer); err != nil {
		return r, err
	}
	if len(answer.Choices) == 0 {
		return r, errors.New("the answer has no choices")
	}
	return Reply{Text: answer.Choices[0].Message.Content,
		OutputTokens:    answer.Usage.CompletionTokens,
		ReasoningTokens: answer.Usage.Details.Reasoning}, nil
}

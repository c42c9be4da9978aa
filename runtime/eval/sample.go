// One question to a port: the request, its retries, and the text that comes back.

package eval

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// Tries is how often a request is sent that finds the server busy, broken or gone.
const Tries = 8

// firstPause doubles from one try to the next, unless the server says how long to wait.
var firstPause = time.Second

// Sample asks for the answer to a text.
func (s *Sampler) Sample(ctx context.Context, text, effort string) (r Reply, err error) {
	began := time.Now()
	defer func() { r.Seconds = time.Since(began).Seconds() }()
	for try := range Tries {
		if r, err = s.send(ctx, text, effort); err == nil || ctx.Err() != nil || !passing(err) {
			break
		}
		pause := firstPause << try
		var refused *endpoint.Error
		if errors.As(err, &refused) && refused.RetryAfter > 0 {
			pause = refused.RetryAfter
		}
		select {
		case <-time.After(min(pause, time.Minute)):
		case <-ctx.Done():
		}
	}
	return r, err
}

// passing tells whether another try may succeed.
func passing(err error) bool {
	var e *endpoint.Error
	if !errors.As(err, &e) {
		return true // the connection
	}
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusRequestTimeout
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

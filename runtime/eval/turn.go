// One turn with tools, over either API, streamed or whole: what came, and what is wrong with it
// whatever the model meant to say.

package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/endpoint"
)

// turn is what an answer holds.
type turn struct {
	text, reasoning string
	calls           []call
	items           []json.RawMessage // to send back: an assistant message, or output items
	cut             bool              // by the limit of tokens, and the server says so
	faults          []string
}

type call struct{ id, name, arguments string }

// marks stand in no text that a client gets: Harmony's own tokens, and what is left of headers that
// were not understood.
var marks = []string{"<|", "|>", "to=functions", "assistantcommentary", "assistantanalysis",
	"commentary to="}

// examine collects what is wrong with a turn in itself.
func (t *turn) examine() {
	for _, part := range []struct{ where, text string }{{"the text", t.text},
		{"the reasoning", t.reasoning}} {
		for _, m := range marks {
			if strings.Contains(part.text, m) {
				t.faults = append(t.faults, "a mark of Harmony in "+part.where)
				break
			}
		}
	}
	for _, c := range t.calls {
		known := slices.ContainsFunc(tools, func(o tool) bool { return o.Name == c.name })
		switch {
		case !known:
			t.faults = append(t.faults, fmt.Sprintf("a call of %q, which was not offered", c.name))
		case t.cut: // a stream cannot take back what it has sent
		case !json.Valid([]byte(c.arguments)):
			t.faults = append(t.faults, "arguments that are not JSON")
		case c.id == "":
			t.faults = append(t.faults, "a call without an id")
		}
	}
	if t.text == "" && len(t.calls) == 0 && !t.cut {
		t.faults = append(t.faults, "neither text nor a call")
	}
}

// take makes a turn: input is a list of messages or of items.
func (s *Sampler) take(ctx context.Context, input []json.RawMessage, stream bool) (*turn, error) {
	t := &turn{}
	var err error
	if s.API == Chat {
		err = s.chatTurn(ctx, t, input, stream)
	} else {
		err = s.responsesTurn(ctx, t, input, stream)
	}
	if err != nil {
		return nil, err
	}
	t.examine()
	return t, nil
}

// message is what chat completions send and take.
type message struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Reasoning string     `json:"reasoning,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	Index    int          `json:"index"`
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (s *Sampler) chatTurn(ctx context.Context, t *turn, input []json.RawMessage,
	stream bool) error {
	var offered []any
	for _, o := range tools {
		offered = append(offered, map[string]any{"type": "function", "function": o})
	}
	body := map[string]any{"model": s.Model, "messages": input, "tools": offered,
		"temperature": s.Temperature, "max_completion_tokens": s.MaxTokens, "stream": stream}
	var m message
	if stream {
		if err := s.chatStream(ctx, body, &m, &t.cut); err != nil {
			return err
		}
	} else {
		var answer struct {
			Choices []struct {
				Message message
				Finish  string `json:"finish_reason"`
			}
		}
		if err := s.Client.Call(ctx, "POST", "/v1/chat/completions", body, &answer); err != nil {
			return err
		}
		if len(answer.Choices) == 0 {
			return errors.New("the answer has no choices")
		}
		m, t.cut = answer.Choices[0].Message, answer.Choices[0].Finish == "length"
	}
	t.text, t.reasoning = m.Content, m.Reasoning
	for _, c := range m.ToolCalls {
		t.calls = append(t.calls, call{c.ID, c.Function.Name, c.Function.Arguments})
	}
	m.Role = "assistant"
	item, err := json.Marshal(m)
	t.items = []json.RawMessage{item}
	return err
}

// chatStream puts the pieces of a streamed message together.
func (s *Sampler) chatStream(ctx context.Context, body any, m *message, cut *bool) error {
	return s.events(ctx, "/v1/chat/completions", body, func(data []byte) error {
		var piece struct {
			Choices []struct {
				Delta  message
				Finish string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal(data, &piece); err != nil {
			return fmt.Errorf("an event is not as expected: %w", err)
		}
		for _, choice := range piece.Choices {
			*cut = *cut || choice.Finish == "length"
			m.Content += choice.Delta.Content
			m.Reasoning += choice.Delta.Reasoning
			for _, c := range choice.Delta.ToolCalls {
				if c.Index < 0 || c.Index > len(m.ToolCalls) {
					return fmt.Errorf("call %d comes before call %d", c.Index, len(m.ToolCalls))
				}
				if c.Index == len(m.ToolCalls) {
					m.ToolCalls = append(m.ToolCalls, c)
					continue
				}
				m.ToolCalls[c.Index].Function.Arguments += c.Function.Arguments
			}
		}
		return nil
	})
}

func (s *Sampler) events(ctx context.Context, path string, body any,
	take func([]byte) error) error {
	stream, err := s.Client.Stream(ctx, path, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = take(e.Data)
		}
		if err != nil {
			return err
		}
	}
}

// response is what the Responses API sends.
type response struct {
	Status string
	Error  *struct{ Message string }
	Output []json.RawMessage
}

// item is one of its output.
type item struct {
	Type      string
	Content   []struct{ Type, Text string }
	CallID    string `json:"call_id"`
	Name      string
	Arguments string
}

func (s *Sampler) responsesTurn(ctx context.Context, t *turn, input []json.RawMessage,
	stream bool) error {
	var offered []any
	for _, o := range tools {
		offered = append(offered, map[string]any{"type": "function", "name": o.Name,
			"description": o.Description, "parameters": o.Parameters, "strict": false})
	}
	body := map[string]any{"model": s.Model, "input": input, "tools": offered, "store": false,
		"temperature": s.Temperature, "max_output_tokens": s.MaxTokens, "stream": stream}
	var r response
	streamed := map[string]string{}
	if stream {
		if err := s.responsesStream(ctx, body, &r, streamed); err != nil {
			return err
		}
	} else if err := s.Client.Call(ctx, "POST", "/v1/responses", body, &r); err != nil {
		return err
	}
	if r.Status == "failed" && r.Error != nil {
		return fmt.Errorf("the response failed: %s", r.Error.Message)
	}
	whole := map[string]string{}
	for _, raw := range r.Output {
		var i item
		if err := json.Unmarshal(raw, &i); err != nil {
			return fmt.Errorf("an item is not as expected: %w", err)
		}
		for _, part := range i.Content {
			switch part.Type {
			case "output_text":
				t.text += part.Text
			case "reasoning_text":
				t.reasoning += part.Text
			}
		}
		if i.Type == "function_call" {
			t.calls = append(t.calls, call{i.CallID, i.Name, i.Arguments})
			whole["response.function_call_arguments.delta"] += i.Arguments
		}
	}
	whole["response.output_text.delta"] = t.text
	whole["response.reasoning_text.delta"] = t.reasoning
	if stream {
		for _, kind := range slices.Sorted(maps.Keys(whole)) {
			if streamed[kind] != whole[kind] {
				t.faults = append(t.faults, kind+" events that do not make up the final object")
			}
		}
	}
	t.items, t.cut = r.Output, r.Status == "incomplete"
	return nil
}

// responsesStream returns the last event's response, and what the deltas of each kind make.
func (s *Sampler) responsesStream(ctx context.Context, body any, r *response,
	streamed map[string]string) error {
	ended := false
	err := s.events(ctx, "/v1/responses", body, func(data []byte) error {
		var e struct {
			Type, Delta string
			Response    response
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("an event is not as expected: %w", err)
		}
		streamed[e.Type] += e.Delta
		switch e.Type {
		case "response.completed", "response.incomplete", "response.failed":
			*r, ended = e.Response, true
		}
		return nil
	})
	if err == nil && !ended {
		err = errors.New("the stream ended without the response's end")
	}
	return err
}

// firstInput is a task's.
func (s *Sampler) firstInput(text string) []json.RawMessage {
	b, _ := json.Marshal(map[string]string{"role": "user", "content": text})
	return []json.RawMessage{b}
}

// results are what the tools give back, as the API wants it.
func (s *Sampler) results(t *turn) (list []json.RawMessage) {
	for _, c := range t.calls {
		text := "{}"
		for _, o := range tools {
			if o.Name == c.name {
				text = o.result
			}
		}
		m := map[string]string{"role": "tool", "tool_call_id": c.id, "content": text}
		if s.API != Chat {
			m = map[string]string{"type": "function_call_output", "call_id": c.id, "output": text}
		}
		b, _ := json.Marshal(m)
		list = append(list, b)
	}
	return list
}

// refused tells whether an error is the server's no to a request.
func refused(err error) bool {
	var e *endpoint.Error
	return errors.As(err, &e)
}

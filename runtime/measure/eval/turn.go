// One turn over either API, streamed or not: the answer, and its faults independent of the model.

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

	"github.com/ossrun/ossrun/runtime/remote/client"
)

type turn struct {
	text, reasoning string
	calls           []client.Call
	items           []json.RawMessage // to send back: an assistant message, or output items
	cut             bool              // by the limit of tokens, and the server says so
	faults          []string
	used            usage
}

type usage struct{ output, reasoning int }

// marks are in no correct text: Harmony's tokens, and the remains of broken headers.
var marks = []string{"<|", "|>", "to=functions", "assistantcommentary", "assistantanalysis",
	"commentary to="}

// examine collects the faults of a turn in itself.
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
		name := c.Function.Name
		ok := slices.ContainsFunc(cases().Tools, func(o tool) bool { return o.Name == name })
		switch {
		case !ok:
			t.faults = append(t.faults, fmt.Sprintf("a call of %q, which was not offered", name))
		case t.cut: // a stream cannot take back sent text
		case !json.Valid([]byte(c.Function.Arguments)):
			t.faults = append(t.faults, "arguments that are not JSON")
		case c.ID == "":
			t.faults = append(t.faults, "a call without an id")
		}
	}
	if t.text == "" && len(t.calls) == 0 && !t.cut {
		t.faults = append(t.faults, "neither text nor a call")
	}
}

// Sampler asks a port.
type Sampler struct {
	Client      *client.Client
	Model       string
	API         API
	Temperature float64
	MaxTokens   int
}

type API string

// The routes.
const (
	Responses API = "responses"
	Chat      API = "chat"
)

// take makes a turn with tools: input is a list of messages or of items.
func (s *Sampler) take(ctx context.Context, input []json.RawMessage, stream bool) (*turn, error) {
	t, err := s.request(ctx, input, "", stream)
	if err != nil {
		return nil, err
	}
	t.examine()
	return t, nil
}

// request asks for a turn: at an effort, or without one with the tools.
func (s *Sampler) request(ctx context.Context, input []json.RawMessage, effort string,
	stream bool) (*turn, error) {
	t, body := &turn{}, map[string]any{"model": s.Model, "temperature": s.Temperature}
	chat := s.API == Chat
	switch {
	case effort == "":
		body["stream"], body["tools"] = stream, s.offered()
	case chat:
		body["reasoning_effort"] = effort
	default:
		body["reasoning"] = map[string]string{"effort": effort}
	}
	if chat {
		body["messages"], body["max_completion_tokens"] = input, s.MaxTokens
		return t, s.chat(ctx, t, body, stream)
	}
	body["input"], body["max_output_tokens"], body["store"] = input, s.MaxTokens, false
	return t, s.responses(ctx, t, body, stream)
}

func (s *Sampler) offered() (list []any) {
	for _, o := range cases().Tools {
		form := map[string]any{"name": o.Name, "description": o.Description,
			"parameters": o.Parameters}
		if s.API == Chat {
			form = map[string]any{"function": form}
		} else {
			form["strict"] = false
		}
		form["type"] = "function"
		list = append(list, form)
	}
	return list
}

func (s *Sampler) chat(ctx context.Context, t *turn, body any, stream bool) error {
	const path = "/v1/chat/completions"
	var m client.Message
	var chunk client.Chunk
	if stream {
		if err := events(ctx, s.Client, path, body, func(piece *client.Chunk) error {
			return add(&m, piece, &t.cut)
		}); err != nil {
			return err
		}
	} else if err := s.Client.Call(ctx, "POST", path, body, &chunk); err != nil {
		return err
	} else if len(chunk.Choices) == 0 {
		return errors.New("the answer has no choices")
	} else {
		m, t.cut = chunk.Choices[0].Message, chunk.Choices[0].Finish == "length"
		if u := chunk.Usage; u != nil {
			t.used = usage{u.Completion, u.OfCompletion.Reasoning}
		}
	}
	t.text, t.reasoning, t.calls = m.Content, m.Reasoning, m.Calls
	m.Role = "assistant"
	item, err := json.Marshal(m)
	t.items = []json.RawMessage{item}
	return err
}

func add(m *client.Message, piece *client.Chunk, cut *bool) error {
	for _, choice := range piece.Choices {
		*cut = *cut || choice.Finish == "length"
		m.Content += choice.Delta.Content
		m.Reasoning += choice.Delta.Reasoning
		for _, c := range choice.Delta.Calls {
			index := 0
			if c.Index != nil {
				index = *c.Index
			}
			switch n := len(m.Calls); {
			case index < 0 || index > n:
				return fmt.Errorf("call %d comes before call %d", index, n)
			case index == n:
				m.Calls = append(m.Calls, c)
			default:
				m.Calls[index].Function.Arguments += c.Function.Arguments
			}
		}
	}
	return nil
}

func events[E any](ctx context.Context, c *client.Client, path string, body any,
	take func(*E) error) error {
	stream, err := c.Stream(ctx, path, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		var e E
		if err = stream.Into(&e); err == nil {
			err = take(&e)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

type response struct {
	Status string
	Error  *struct{ Message string }
	Output []json.RawMessage
	Usage  struct {
		Tokens  int `json:"output_tokens"`
		Details struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

func (s *Sampler) responses(ctx context.Context, t *turn, body any, stream bool) error {
	var r response
	streamed := map[string]string{} // the text of each kind of delta
	if err := s.response(ctx, body, stream, &r, streamed); err != nil {
		return err
	}
	if r.Status == "failed" && r.Error != nil {
		return fmt.Errorf("the response failed: %s", r.Error.Message)
	}
	texts := map[string]string{}
	for _, raw := range r.Output {
		var i struct {
			Type    string
			Content []struct{ Type, Text string }
			CallID  string `json:"call_id"`
			client.Function
		}
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
			t.calls = append(t.calls, client.Call{ID: i.CallID, Function: i.Function})
			texts["response.function_call_arguments.delta"] += i.Arguments
		}
	}
	texts["response.output_text.delta"] = t.text
	texts["response.reasoning_text.delta"] = t.reasoning
	if stream {
		for _, kind := range slices.Sorted(maps.Keys(texts)) {
			if streamed[kind] != texts[kind] {
				t.faults = append(t.faults, kind+" events that do not make up the final object")
			}
		}
	}
	t.items, t.cut = r.Output, r.Status == "incomplete"
	t.used = usage{r.Usage.Tokens, r.Usage.Details.Reasoning}
	return nil
}

func (s *Sampler) response(ctx context.Context, body any, stream bool, r *response,
	streamed map[string]string) error {
	const path = "/v1/responses"
	if !stream {
		return s.Client.Call(ctx, "POST", path, body, r)
	}
	done := false
	type event struct {
		Type, Delta string
		Response    response
	}
	err := events(ctx, s.Client, path, body, func(e *event) error {
		streamed[e.Type] += e.Delta
		switch e.Type {
		case "response.completed", "response.incomplete", "response.failed":
			*r, done = e.Response, true
		}
		return nil
	})
	if err == nil && !done {
		err = errors.New("the stream ended without the response's end")
	}
	return err
}

func firstInput(text string) []json.RawMessage {
	b, _ := json.Marshal(map[string]string{"role": "user", "content": text})
	return []json.RawMessage{b}
}

// results are the tools' results in the API's form.
func (s *Sampler) results(t *turn) (list []json.RawMessage) {
	for _, c := range t.calls {
		text := "{}"
		for _, o := range cases().Tools {
			if o.Name == c.Function.Name {
				text = string(o.Result)
			}
		}
		m := map[string]string{"role": "tool", "tool_call_id": c.ID, "content": text}
		if s.API != Chat {
			m = map[string]string{"type": "function_call_output", "call_id": c.ID, "output": text}
		}
		b, _ := json.Marshal(m)
		list = append(list, b)
	}
	return list
}

func refused(err error) bool {
	_, no := errors.AsType[*client.Error](err)
	return no
}

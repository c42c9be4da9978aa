// One request: its body, and what its answer is timed by.

package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/endpoint"
)

func (b Backend) body(r Request, o *Options) (path string, body map[string]any) {
	body = map[string]any{"model": o.Model, "max_tokens": r.OutputTokens, "stream": !o.Whole}
	if !o.Whole {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	if o.IgnoreEOS {
		body["ignore_eos"] = true
	}
	switch b {
	case Chat:
		path = "/v1/chat/completions"
		body["messages"] = []map[string]string{{"role": "user", "content": r.Prompt}}
		body["max_completion_tokens"] = r.OutputTokens
		delete(body, "max_tokens")
	default:
		path = "/v1/completions"
		body["prompt"] = r.Prompt
	}
	maps.Copy(body, o.Extra)
	return path, body
}

// chunk is what is read of an answer, or of one event of it, of either route.
type chunk struct {
	Choices []struct {
		Text    string
		Delta   said
		Message said
	}
	Usage *struct {
		Completion int `json:"completion_tokens"`
	}
}

type said struct {
	Content          string
	Reasoning        string
	ReasoningContent string            `json:"reasoning_content"`
	ToolCalls        []json.RawMessage `json:"tool_calls"`
}

// add appends the piece's text to the answer and tells whether it has anything of the model: an
// event that only opens a message has nothing.
func (c *chunk) add(text []byte) ([]byte, bool) {
	before, calls := len(text), 0
	for _, choice := range c.Choices {
		text = append(text, choice.Text...)
		for _, s := range []said{choice.Delta, choice.Message} {
			text = append(text, s.Reasoning...)
			text = append(text, s.ReasoningContent...)
			text = append(text, s.Content...)
			calls += len(s.ToolCalls)
		}
	}
	return text, len(text) > before || calls > 0
}

func send(ctx context.Context, c *endpoint.Client, r Request, o *Options) Outcome {
	path, body := o.Backend.body(r, o)
	out := Outcome{InputTokens: r.InputTokens, OutputTokens: -1, Sent: time.Now()}
	if o.Whole {
		out.whole(ctx, c, path, body)
	} else {
		out.stream(ctx, c, path, body, r.OutputTokens)
	}
	if out.Err == nil && out.OutputTokens < 0 { // a server without usage
		out.OutputTokens = len(token.Get().Encode(nil, out.Text))
	}
	return out
}

func (o *Outcome) whole(ctx context.Context, c *endpoint.Client, path string, body any) {
	var answer chunk
	o.Err = c.Call(ctx, "POST", path, body, &answer)
	o.Latency = time.Since(o.Sent)
	o.TTFT = o.Latency
	text, _ := answer.add(nil)
	o.Text = string(text)
	o.count(&answer)
}

func (o *Outcome) stream(ctx context.Context, c *endpoint.Client, path string, body any,
	expected int) {
	s, err := c.Stream(ctx, path, body)
	if err != nil {
		o.Err = err
		return
	}
	defer s.Close()
	var text []byte
	o.Gaps = make([]time.Duration, 0, min(expected, 1<<16))
	last, end := o.Sent, o.Sent
	for {
		e, err := s.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				o.Err = err
			}
			break
		}
		now := time.Now()
		var piece chunk
		if err := json.Unmarshal(e.Data, &piece); err != nil {
			o.Err = fmt.Errorf("an event of the stream is not as expected: %w", err)
			return
		}
		o.count(&piece)
		if len(piece.Choices) > 0 { // the one that says why it ended, too
			end = now
		}
		var news bool
		if text, news = piece.add(text); !news {
			continue
		}
		if o.TTFT == 0 {
			o.TTFT = now.Sub(o.Sent)
		} else {
			o.Gaps = append(o.Gaps, now.Sub(last))
		}
		last = now
	}
	o.Latency, o.Text = end.Sub(o.Sent), string(text)
	if o.Err == nil && o.TTFT == 0 {
		o.Err = errors.New("the stream ended without a token")
	}
}

func (o *Outcome) count(c *chunk) {
	if c.Usage != nil {
		o.OutputTokens = c.Usage.Completion
	}
}

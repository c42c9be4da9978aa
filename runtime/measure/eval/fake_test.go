package eval

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/remote/client"
)

func TestMain(m *testing.M) {
	patience.Pause = time.Millisecond
	goleak.VerifyTestMain(m)
}

// scripted is a server that answers by rules, over both APIs.
type scripted struct {
	// reply answers a text at an effort
	reply func(text, effort string) string
	// spoil changes what the tools' answers hold
	spoil func(m *client.Message)
	// busy is how many requests get 503 first
	busy int

	mu   sync.Mutex
	seen int
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen++
	busy := s.seen <= s.busy
	s.mu.Unlock()
	if busy {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"message":"loading"}}`)
		return
	}
	var body struct {
		Stream    bool
		Tools     []json.RawMessage
		Messages  []json.RawMessage
		Input     []json.RawMessage
		Reasoning struct{ Effort string }
		Effort    string `json:"reasoning_effort"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	chat := strings.HasSuffix(r.URL.Path, "/chat/completions")
	input := append(body.Messages, body.Input...)
	var first struct{ Content string }
	_ = json.Unmarshal(input[0], &first)
	m := client.Message{Role: "assistant", Reasoning: "I think."}
	switch {
	case len(body.Tools) == 0:
		m.Content = s.reply(first.Content, body.Reasoning.Effort+body.Effort)
	case len(input) == 1:
		for _, k := range cases().Tasks {
			if k.Text == first.Content {
				arguments, _ := json.Marshal(k.Expected)
				if k.Tool == "create_event" && k.Expected["title"] == nil {
					arguments = append([]byte(`{"title":"x",`), arguments[1:]...)
				}
				m.Calls = []client.Call{{ID: "call_1", Type: "function",
					Function: client.Function{Name: k.Tool, Arguments: string(arguments)}}}
			}
		}
	default:
		m.Content = "Done."
	}
	if s.spoil != nil {
		s.spoil(&m)
	}
	switch {
	case m.Role == "refuse":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"no"}}`)
	case chat:
		writeChat(w, &m, body.Stream)
	default:
		writeResponse(w, &m, body.Stream)
	}
}

func writeChat(w http.ResponseWriter, m *client.Message, stream bool) {
	if !stream {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": m}},
			"usage": map[string]any{"completion_tokens": 7,
				"completion_tokens_details": map[string]int{"reasoning_tokens": 3}}})
		_, _ = w.Write(b)
		return
	}
	send := func(delta any) {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": delta}}})
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	send(map[string]string{"role": "assistant", "reasoning": m.Reasoning})
	for i, c := range m.Calls {
		half := len(c.Function.Arguments) / 2
		rest := client.Call{Index: &i,
			Function: client.Function{Arguments: c.Function.Arguments[half:]}}
		c.Index, c.Function.Arguments = &i, c.Function.Arguments[:half]
		send(map[string]any{"tool_calls": []client.Call{c}})
		send(map[string]any{"tool_calls": []client.Call{rest}})
	}
	send(map[string]string{"content": m.Content})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func writeResponse(w http.ResponseWriter, m *client.Message, stream bool) {
	output := []any{map[string]any{"type": "reasoning", "id": "rs_1", "content": []any{
		map[string]string{"type": "reasoning_text", "text": m.Reasoning}}}}
	type delta struct{ kind, text string }
	deltas := []delta{{"response.reasoning_text.delta", m.Reasoning}}
	for _, c := range m.Calls {
		output = append(output, map[string]string{"type": "function_call", "call_id": c.ID,
			"name": c.Function.Name, "arguments": c.Function.Arguments})
		deltas = append(deltas, delta{"response.function_call_arguments.delta",
			c.Function.Arguments})
	}
	if m.Content != "" {
		output = append(output, map[string]any{"type": "message", "role": "assistant",
			"content": []any{map[string]string{"type": "output_text", "text": m.Content}}})
		deltas = append(deltas, delta{"response.output_text.delta", m.Content})
	}
	whole := map[string]any{"status": "completed", "output": output, "usage": map[string]any{
		"output_tokens": 7, "output_tokens_details": map[string]int{"reasoning_tokens": 3}}}
	if !stream {
		b, _ := json.Marshal(whole)
		_, _ = w.Write(b)
		return
	}
	for _, d := range deltas {
		b, _ := json.Marshal(map[string]string{"type": d.kind, "delta": d.text})
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", d.kind, b)
	}
	b, _ := json.Marshal(map[string]any{"type": "response.completed", "response": whole})
	fmt.Fprintf(w, "event: response.completed\ndata: %s\n\n", b)
}

// sampler asks the server.
func (s *scripted) sampler(t *testing.T, api API) Sampler {
	t.Helper()
	srv := httptest.NewServer(s)
	c, err := client.New(srv.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); srv.Close() })
	return Sampler{Client: c, Model: "m", API: api, MaxTokens: 100}
}

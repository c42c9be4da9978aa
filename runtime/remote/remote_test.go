package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A standIn answers as one kind of server does. answers are the streams of its turns, a data line
// an event; "-" ends the connection there.
type standIn struct {
	t       *testing.T
	models  string
	others  map[string]string // bodies of other paths
	refuses func(body map[string]any) (status int, said string)
	answers [][]string
	bodies  []map[string]any
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		fmt.Fprint(w, s.models)
		return
	}
	if body, ok := s.others[r.URL.Path]; ok {
		fmt.Fprint(w, body)
		return
	}
	if r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Error(err)
	}
	if s.refuses != nil {
		if status, said := s.refuses(body); status != 0 {
			w.WriteHeader(status)
			fmt.Fprint(w, said)
			return
		}
	}
	s.bodies = append(s.bodies, body)
	lines := s.answers[0]
	s.answers = s.answers[1:]
	for _, line := range lines {
		switch line {
		case "-":
			panic(http.ErrAbortHandler)
		case "...":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", line)
		w.(http.Flusher).Flush()
	}
}

// open starts the stand-in and returns its model, and the messages to the user.
func (s *standIn) open(t *testing.T) (*Model, *[]string) {
	t.Helper()
	s.t = t
	server := httptest.NewServer(s)
	var told []string
	p, err := Open(t.Context(), server.URL, "", func(line string) { told = append(told, line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); server.Close() })
	m, err := p.Get(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return m, &told
}

// cell is python that knows one answer.
type cell struct{ ran []string }

func (*cell) Offer(r *session.Request)   { r.Python, r.Browser = true, true }
func (*cell) Runs(recipient string) bool { return recipient == "python" }
func (*cell) Close() error               { return nil }
func (c *cell) Run(_ context.Context, call session.Call, _ func(string)) (session.ToolResult,
	error) {
	c.ran = append(c.ran, call.Arguments)
	return session.ToolResult{Text: "391"}, nil
}

func ask(t *testing.T, m *Model, tools ...session.Tool) (events string, r session.Result) {
	t.Helper()
	req := session.Request{Messages: []session.Message{session.User("17 times 23?")},
		Effort: "low", Instructions: "Be brief.", Params: sample.Defaults(), Progress: true}
	turn, err := session.StartWithTools(t.Context(), m, req, tools, session.ToolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		switch e := e.(type) {
		case session.Prefill:
			fmt.Fprintf(&b, "%d/%d", e.Done, e.Total)
		case session.Reasoning:
			b.WriteString("?" + e.Text)
		case session.Answer:
			b.WriteString("!" + e.Text)
		case session.CallStart:
			b.WriteString("(" + e.Recipient)
		case session.CallArguments:
			b.WriteString(" " + e.Text)
		case session.CallEnd:
			b.WriteString(")")
		case session.Done:
			b.WriteString("." + string(e.Finish))
		}
	}
	return b.String(), turn.Result()
}

// Four kinds of servers call a tool and answer, each in its own words.
func TestServers(t *testing.T) {
	for name, c := range map[string]struct {
		server  standIn
		context int
		field   string // of the reasoning that is sent back
		events  string
	}{
		"ossrun": {standIn{models: `{"data":[{"id":"gpt-oss-20b","max_model_len":8192}]}`,
			answers: [][]string{{
				`{"choices":[{"index":0,"delta":{"role":"assistant","reasoning":"Compute"}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"python","arguments":""}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"code\": \"print(17"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":" * 23)\"}"}}]}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9}}`, `[DONE]`}, {
				`{"choices":[{"delta":{"content":"It is"}}]}`, `{"choices":[{"delta":{"content":" 391."}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":48}}}`,
				`[DONE]`}}}, 8192, "reasoning",
			"?Compute(python print(17 * 23))!It is! 391..stop"},
		"vllm": {standIn{models: `{"data":[{"id":"other"},{"id":"openai/gpt-oss-120b","max_model_len":131072}]}`,
			answers: [][]string{{
				`{"choices":[{"delta":{"reasoning_content":"Compute","content":null}}]}`,
				`{"choices":[{"delta":{"content":"Let me see."}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"python","arguments":"{\"code\":\"17*23\"}"}}]}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9}}`, `[DONE]`}, {
				`{"choices":[{"delta":{"content":"391"},"finish_reason":"stop"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":74,"completion_tokens":4}}`, `[DONE]`}}},
			131072, "reasoning_content", "?Compute!Let me see.(python 17*23)!391.stop"},
		"llama.cpp": {standIn{models: `{"data":[{"id":"gpt-oss","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
			others: map[string]string{"/props": `{"default_generation_settings":{"n_ctx":4096}}`},
			answers: [][]string{{
				`{"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":50,"cache":2,"processed":40,"time_ms":9}}`,
				`{"choices":[{"delta":{"reasoning_content":"Compute"}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"python","arguments":"{\"code\":"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"17*23\"}"}}]}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":50,"completion_tokens":9},"timings":{}}`,
				`[DONE]`}, {`{"choices":[{"delta":{"content":"391"}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":74,"completion_tokens":4}}`,
				`[DONE]`}}}, 4096, "reasoning_content", "40/50?Compute(python 17*23)!391.stop"},
		"ollama": {standIn{models: `{"data":[{"id":"gpt-oss:20b","owned_by":"library"}]}`,
			others: map[string]string{"/api/show": `{"parameters":"temperature 1\nnum_ctx 16384",` +
				`"model_info":{"gptoss.context_length":131072}}`},
			answers: [][]string{{
				`{"choices":[{"delta":{"role":"assistant","content":"","reasoning":"Compute"}}]}`,
				`{"choices":[{"delta":{"content":"","tool_calls":[{"id":"c1","index":0,"type":"function","function":{"name":"python","arguments":"{\"code\":\"17*23\"}"}}]}}]}`,
				`{"choices":[{"delta":{"content":""},"finish_reason":"tool_calls"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9}}`, `[DONE]`}, {
				`{"choices":[{"delta":{"content":"391"}}]}`,
				`{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":74,"completion_tokens":4}}`, `[DONE]`}}},
			16384, "reasoning", "?Compute(python 17*23)!391.stop"},
	} {
		t.Run(name, func(t *testing.T) {
			m, told := c.server.open(t)
			if m.ContextLength() != c.context {
				t.Errorf("a context of %d, want %d", m.ContextLength(), c.context)
			}
			python := &cell{}
			events, r := ask(t, m, python)
			if events != c.events || len(python.ran) != 1 || len(*told) != 0 {
				t.Errorf("%q, want %q; python ran %q, the person was told %q", events, c.events,
					python.ran, *told)
			}
			if u := r.Done.Usage; u.Completion != 13 || u.Prompt < 120 {
				t.Errorf("usage %+v", u)
			}
			if strings.Contains(r.Answer, "Let me see") {
				t.Errorf("a word before a call is in the answer: %q", r.Answer)
			}
			sent := c.server.bodies[1]["messages"].([]any)
			text, _ := json.Marshal(sent)
			call := sent[2].(map[string]any)
			if len(sent) != 4 || call[c.field] != "Compute" ||
				!strings.Contains(string(text), `"tool_call_id":"c1"`) ||
				!strings.Contains(string(text), `"name":"python"`) {
				t.Errorf("sent back: %s", text)
			}
			if asked := c.server.bodies[0]["return_progress"] == true; asked != (name == "llama.cpp") {
				t.Errorf("it is asked for its progress: %v", asked)
			}
			tools, _ := json.Marshal(c.server.bodies[0]["tools"])
			for _, name := range []string{"python", "browser_search", "browser_open", "browser_find"} {
				if !strings.Contains(string(tools), `"name":"`+name+`"`) {
					t.Errorf("%s is not offered: %s", name, tools)
				}
			}
		})
	}
}

var plain = []string{`{"choices":[{"delta":{"content":"391"},"finish_reason":"stop"}]}`, `[DONE]`}

// What a port refuses is left out from then on, and told once.
func TestWhatAPortLacks(t *testing.T) {
	s := &standIn{models: `{"data":[{"id":"m"}]}`, answers: [][]string{plain, plain},
		refuses: func(body map[string]any) (int, string) {
			for _, name := range []string{"reasoning_effort", "seed", "stream_options"} {
				if _, ok := body[name]; ok {
					return 400, `{"error":{"message":"Unsupported parameter: '` + name + `'"}}`
				}
			}
			if _, ok := body["tools"]; ok {
				return 400, `{"error":{"message":"m does not support tools"}}`
			}
			return 0, ""
		}}
	m, told := s.open(t)
	for range 2 {
		if events, _ := ask(t, m, &cell{}); events != "!391.stop" {
			t.Errorf("%q", events)
		}
	}
	if all := strings.Join(*told, "\n"); len(*told) != 4 || !strings.Contains(all, "/effort changes") ||
		!strings.Contains(all, "no tools here") || !strings.Contains(all, "does not report token counts") {
		t.Errorf("told %q", *told)
	}
	if m.ContextLength() != 0 {
		t.Errorf("a context of %d from nowhere", m.ContextLength())
	}
}

// Ollama 0.17.4 refuses an effort that a model does not know in three ways.
func TestOllamaRefusesAnEffort(t *testing.T) {
	for _, text := range []string{`think value \"medium\" is not supported for this model`,
		`\"llama3.2\" does not support thinking`,
		`invalid reasoning value: 'minimal' (must be \"high\", \"medium\", \"low\", or \"none\")`} {
		s := &standIn{models: `{"data":[{"id":"m"}]}`, answers: [][]string{plain},
			refuses: func(body map[string]any) (int, string) {
				if _, ok := body["reasoning_effort"]; !ok {
					return 0, ""
				}
				return 400, `{"error":{"message":"` + text + `","type":"api_error"}}`
			}}
		m, told := s.open(t)
		if events, _ := ask(t, m); events != "!391.stop" || len(*told) == 0 ||
			!strings.Contains((*told)[0], "/effort changes nothing") {
			t.Errorf("%s: %q, told %q", text, events, *told)
		}
	}
}

func TestRefusals(t *testing.T) {
	s := &standIn{models: `{"data":[{"id":"m","max_model_len":100}]}`,
		refuses: func(map[string]any) (int, string) {
			return 400, `{"error":{"message":"This model's maximum context length is 100 tokens."}}`
		}}
	m, _ := s.open(t)
	_, err := m.Start(t.Context(), session.Request{})
	var full *sched.ContextLengthError
	if !errors.As(err, &full) || !strings.Contains(err.Error(), "maximum context length") {
		t.Errorf("too long: %v", err)
	}
	s.refuses = func(map[string]any) (int, string) { return 401, `{"error":"no key"}` }
	if _, err = m.Start(t.Context(), session.Request{}); err == nil ||
		!strings.Contains(err.Error(), "401: no key") {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := m.port.Get(t.Context(), "absent"); !errors.Is(err, session.ErrUnknownModel) {
		t.Errorf("an absent model: %v", err)
	}
	if _, err := Open(t.Context(), "http://127.0.0.1:1", "", nil); err == nil ||
		!strings.Contains(err.Error(), "http://127.0.0.1:1 cannot be used: connection refused") {
		t.Errorf("nobody there: %v", err)
	}
}

// A turn ends in one Done, however the port ends, and keeps its text.
func TestEnds(t *testing.T) {
	half := `{"choices":[{"delta":{"content":"half"}}]}`
	for want, lines := range map[string][]string{
		"!half.error":   {half, "-"},
		"!half.length":  {half, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, "[DONE]"},
		"!half!x.error": {half, `{"choices":[{"delta":{"content":"x"}}]}`, `{"error":{"message":"out of memory"}}`},
		".error":        {`no json`},
		"!half.stop":    {half, `{"choices":[]}`, "[DONE]"},
	} {
		s := &standIn{models: `{"data":[{"id":"m"}]}`, answers: [][]string{lines}}
		m, _ := s.open(t)
		events, r := ask(t, m)
		why := map[string]string{
			"!half.error":   "the connection closed before the answer was complete",
			"!half!x.error": "the server reported an error: out of memory",
			".error":        "the server's answer cannot be read: ",
		}[want]
		if err := r.Done.Err; (err != nil) != (why != "") || err != nil && !strings.HasPrefix(
			err.Error(), why) {
			t.Errorf("%q ends with %q", want, err)
		}
		if events != want || strings.Contains(want, "half") && len(r.Messages) != 1 {
			t.Errorf("%q, want %q; messages %v", events, want, r.Messages)
		}
	}
	s := &standIn{models: `{"data":[{"id":"m"}]}`, answers: [][]string{{half, "..."}}}
	m, _ := s.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	turn, err := m.Start(ctx, session.Request{})
	if err != nil {
		t.Fatal(err)
	}
	turn.Next()
	cancel()
	if e, _ := turn.Next(); e.(session.Done).Finish != session.FinishCancelled {
		t.Errorf("a cancelled turn ends in %+v", e)
	}
	if _, more := turn.Next(); more || len(turn.Result().Messages) != 1 {
		t.Errorf("after the end: %v, %v", more, turn.Result().Messages)
	}
}

// Whatever a port sends, a turn ends in one Done, and its calls that ended are in its result.
func FuzzTurn(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":" +
		"{\"name\":\"python\",\"arguments\":\"{}\"}},{\"function\":{\"name\":\"b\"}}]}," +
		"\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\",\"content\":\"b\"}}]}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1},{\"index\":9}]}}]}\n\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := &Port{report: func(string) {}}
		stream := client.NewStream(io.NopCloser(bytes.NewReader(sent)))
		turn := &turn{ctx: t.Context(), port: p, stream: stream, began: time.Now()}
		dones, starts, ends := 0, 0, 0
		for e, ok := turn.Next(); ok; e, ok = turn.Next() {
			switch e.(type) {
			case session.Done:
				dones++
			case session.CallStart:
				starts++
			case session.CallEnd:
				ends++
			}
		}
		r := turn.Result()
		if dones != 1 || ends > starts || ends != len(r.Calls) {
			t.Fatalf("%d ends of the turn, %d calls begun, %d ended, %d in the result", dones,
				starts, ends, len(r.Calls))
		}
		if r.Done.Finish == session.FinishToolCalls && len(r.Calls) == 0 {
			t.Fatal("it ended in calls and has none")
		}
	})
}

// A scripted model for the port's tests: it says what the test tells it to and remembers what it
// was asked.

package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script decides what a turn says.
type script func(r session.Request) ([]session.Event, error)

type fakeRunner struct {
	script  script
	stats   sched.Stats
	relaxed []string       // what the session says of every turn at its start
	result  session.Result // what every turn starts from
	sampled []int32        // what every turn says it has sampled

	mu       sync.Mutex
	requests []session.Request
	running  int
}

func (f *fakeRunner) ID() string { return "gpt-oss-20b" }

func (f *fakeRunner) ContextLength() int { return 4096 }

func (f *fakeRunner) Device() string { return "a script" }

func (f *fakeRunner) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	events, err := f.script(r)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	f.running++
	result := f.result
	result.Relaxed = f.relaxed
	return &fakeTurn{ctx: ctx, runner: f, events: events, result: result}, nil
}

func (f *fakeRunner) now() sched.Stats { return f.stats }

// last is the request of the newest turn.
func (f *fakeRunner) last(t *testing.T) session.Request {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		t.Fatal("no turn was started")
	}
	return f.requests[len(f.requests)-1]
}

func (f *fakeRunner) active() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

// pause is a place in the script where the model thinks until the channel is closed.
type pause struct {
	session.Event
	until <-chan struct{}
}

type fakeTurn struct {
	ctx    context.Context
	runner *fakeRunner
	events []session.Event
	result session.Result
	ended  bool
}

func (t *fakeTurn) Next() (session.Event, bool) {
	for {
		if t.ended {
			return nil, false
		}
		if t.ctx.Err() != nil {
			return t.end(session.Done{Finish: session.FinishCancelled,
				Usage: session.Usage{Prompt: usage.Prompt}}), true
		}
		e := t.events[0]
		t.events = t.events[1:]
		switch e := e.(type) {
		case pause:
			select {
			case <-e.until:
			case <-t.ctx.Done():
			}
			continue
		case session.Done:
			return t.end(e), true
		case session.Reasoning:
			t.result.Reasoning += e.Text
		case session.Commentary:
			t.result.Commentary += e.Text
		case session.Answer:
			t.result.Answer += e.Text
		case session.CallStart:
			t.result.Calls = append(t.result.Calls, session.Call{ID: e.ID, Name: e.Name,
				Recipient: e.Recipient})
		case session.CallEnd:
			t.result.Calls[e.Index].Arguments = e.Arguments
		}
		return e, true
	}
}

func (t *fakeTurn) end(d session.Done) session.Event {
	t.ended = true
	if t.result.Reasoning != "" {
		t.result.Messages = append(t.result.Messages,
			session.AssistantReasoning(t.result.Reasoning))
	}
	for _, c := range t.result.Calls {
		m := session.FunctionCall(c.ID, c.Name, c.Arguments)
		if c.Recipient != "" {
			m.Recipient = c.Recipient
		}
		t.result.Messages = append(t.result.Messages, m)
	}
	if t.result.Answer != "" {
		t.result.Messages = append(t.result.Messages, session.AssistantAnswer(t.result.Answer))
	}
	t.runner.mu.Lock()
	t.runner.running--
	t.runner.mu.Unlock()
	t.result.Done = d
	return d
}

func (t *fakeTurn) Result() session.Result { return t.result }
func (t *fakeTurn) Sampled() []int32       { return t.runner.sampled }

var usage = session.Usage{Prompt: 40, Cached: 8, Completion: 12, Reasoning: 5}

func done(f session.Finish) session.Event {
	return session.Done{Finish: f, Usage: usage, Timing: sched.Timing{TTFT: 20 * time.Millisecond,
		Decode: 110 * time.Millisecond}}
}

// answers says text after a thought.
func answers(text string) script {
	return func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Reasoning{Text: "They ask. "},
			session.Reasoning{Text: "I answer."}, session.Answer{Text: text},
			done(session.FinishStop)}, nil
	}
}

// calls makes one call of name.
func calls(name, arguments string) script {
	return func(session.Request) ([]session.Event, error) {
		return callEvents(name, arguments),
			nil
	}
}

func callEvents(name, arguments string) []session.Event {
	half := len(arguments) / 2
	return []session.Event{session.Reasoning{Text: "A tool knows."}, session.CallStart{ID: "call_1",
		Name: name, Recipient: "functions." + name},
		session.CallArguments{Text: arguments[:half]},
		session.CallArguments{Text: arguments[half:]}, session.CallEnd{Arguments: arguments},
		done(session.FinishToolCalls)}
}

// agent calls the first function it is offered until a tool has answered, then answers.
func agent(r session.Request) ([]session.Event, error) {
	if len(r.Functions) > 0 && (len(r.Messages) == 0 ||
		r.Messages[len(r.Messages)-1].Role != harmony.RoleTool) {
		return callEvents(r.Functions[0].Name, `{"city": "Paris"}`), nil
	}
	return answers("Done. The repository has a README.md and main.py.")(r)
}

func fails(err error) script {
	return func(session.Request) ([]session.Event, error) { return nil, err }
}

// server is a port over a scripted model.
func server(t *testing.T, s script, change ...func(*Options)) (*httptest.Server, *fakeRunner) {
	t.Helper()
	f := &fakeRunner{script: s}
	o := Options{Models: single(f, f.now, "gpt-oss:20b", "openai/gpt-oss-20b"), Version: "1.2.3"}
	for _, c := range change {
		c(&o)
	}
	handler := newChecked(t, o)
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.Close()
		handler.Close()
		http.DefaultClient.CloseIdleConnections()
		if n := f.active(); n != 0 {
			t.Errorf("%d turns were not followed to their end", n)
		}
	})
	return srv, f
}

// readUntil reads a stream, calls then when mark has come n times, and reads on to the end.
func readUntil(t *testing.T, url, body, mark string, n int, then func()) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		k, err := resp.Body.Read(buf)
		all.Write(buf[:k])
		if then != nil && strings.Count(all.String(), mark) >= n {
			then()
			then = nil
		}
		if err == io.EOF && then == nil {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
	}
}

type reply struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// post sends a body and wants 200.
func post(t *testing.T, srv *httptest.Server, path, body string) reply {
	t.Helper()
	r := ask(t, "POST", srv.URL+path, body)
	if r.status != 200 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	return r
}

// event is one server-sent event.
type event struct {
	name string
	data string
	json map[string]any // nil for [DONE]
}

// events reads a stream strictly: every block is one data line, an optional event line before it,
// or a comment.
func events(t *testing.T, body string) []event {
	t.Helper()
	list, err := parseEvents(body)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func parseEvents(body string) ([]event, error) {
	if !strings.HasSuffix(body, "\n\n") {
		return nil, fmt.Errorf("the stream does not end in an empty line: %q",
			body[max(0, len(body)-80):])
	}
	var list []event
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ": ") && !strings.Contains(block, "\n") {
			continue
		}
		var e event
		rest := block
		if after, ok := strings.CutPrefix(rest, "event: "); ok {
			e.name, rest, _ = strings.Cut(after, "\n")
		}
		data, ok := strings.CutPrefix(rest, "data: ")
		if !ok || strings.Contains(data, "\n") {
			return nil, fmt.Errorf("not an event: %q", block)
		}
		if e.data = data; data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &e.json); err != nil {
				return nil, fmt.Errorf("%q: %w", data, err)
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// object decodes a JSON object.
func decode(t *testing.T, body string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// at follows keys and indexes into decoded JSON.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p < 0 {
				p += len(l)
			}
			if p < 0 || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// history shows the messages of a request in one line each.
func history(r session.Request) string {
	var lines []string
	for _, m := range r.Messages {
		s := string(m.Role)
		if m.Name != "" {
			s += " " + m.Name
		}
		if m.Channel != "" {
			s += " <" + m.Channel + ">"
		}
		if m.Recipient != "" {
			s += " to " + m.Recipient
		}
		if m.CallID != "" {
			s += " #" + m.CallID
		}
		text := m.Text()
		if m.Role == harmony.RoleDeveloper && len(m.Content) == 1 &&
			m.Content[0].Developer != nil && m.Content[0].Developer.Instructions != nil {
			text = *m.Content[0].Developer.Instructions
		}
		lines = append(lines, s+": "+text)
	}
	return strings.Join(lines, "\n")
}

// singleModel is the source of a server with one model, known under its own name and some others.
type singleModel struct {
	session.Runner
	stats   func() sched.Stats
	aliases []string
}

func single(r session.Runner, stats func() sched.Stats, aliases ...string) session.Models {
	return &singleModel{r, stats, aliases}
}

func (s *singleModel) List() []session.ModelInfo {
	return []session.ModelInfo{{ID: s.ID(), Aliases: s.aliases, ContextLength: s.ContextLength(),
		Created: 1754352000}}
}

func (s *singleModel) Get(_ context.Context, name string) (session.Runner, error) {
	for _, n := range append(s.aliases, "", s.ID()) {
		if strings.EqualFold(name, n) {
			return s.Runner, nil
		}
	}
	return nil, fmt.Errorf("%w %q", session.ErrUnknownModel, name)
}

func (s *singleModel) Stats() map[string]sched.Stats {
	return map[string]sched.Stats{s.ID(): s.stats()}
}

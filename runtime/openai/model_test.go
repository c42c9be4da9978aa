// A scripted model for the port's tests: it says what the test tells it to and remembers what it
// was asked.

package openai

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

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

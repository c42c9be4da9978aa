// Package sessiontest has the model of all tests that read a session's events: it plays what a test
// prescribes, and records what it was asked.
//
// A script is a list of events for each request. Between them a turn can wait (Pause), do something
// (Do), and hang until it is cancelled (nil). A script may also refuse a turn with an error.
package sessiontest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// Script returns the events of a turn. One that ends without Done hangs.
type Script func(r session.Request) ([]session.Event, error)

// Model is a session.Runner that plays its script or turns.
type Model struct {
	Name      string // "" is gpt-oss-20b
	Hardware  string // Device; "" is "a script"
	Context   int    // its length; 0 is 4096, which is easily exceeded
	Script    Script
	Turns     [][]session.Event // without a Script: one for each request
	Refuse    error             // while it is set, instead of the next turn
	Stats     sched.Stats
	Relaxed   []string       // Result.Relaxed of every turn at its start
	Result    session.Result // the initial result of every turn
	Sampled   []int32        // Turn.Sampled of every turn
	Cancelled session.Usage  // of turns that are cancelled; by default Usage without its answer

	Mu       sync.Mutex
	Requests []session.Request // of started turns
	Shares   []*sched.Share    // of Requests, which are compared without them
	running  int
}

func (f *Model) ID() string         { return cmp.Or(f.Name, "gpt-oss-20b") }
func (f *Model) ContextLength() int { return cmp.Or(f.Context, 4096) }
func (f *Model) Device() string     { return cmp.Or(f.Hardware, "a script") }

// Start begins a turn of the script.
func (f *Model) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	script := f.Script
	if script == nil {
		script = f.next
	}
	events, err := script(r)
	if err != nil {
		return nil, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Shares = append(f.Shares, r.Share)
	r.Share = nil
	f.Requests = append(f.Requests, r)
	f.running++
	result := f.Result
	result.Relaxed = f.Relaxed
	return &turn{ctx: ctx, model: f, events: events, result: result}, nil
}

// next is the script of the turns.
func (f *Model) next(session.Request) ([]session.Event, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	switch {
	case f.Refuse != nil:
		return nil, f.Refuse
	case len(f.Turns) == 0:
		return nil, errors.New("the script has ended")
	}
	events := f.Turns[0]
	f.Turns = f.Turns[1:]
	return events, nil
}

// Now returns the scheduler's counters.
func (f *Model) Now() sched.Stats { return f.Stats }

// Last is the request of the newest turn.
func (f *Model) Last(t *testing.T) session.Request {
	t.Helper()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.Requests) == 0 {
		t.Fatal("no turn was started")
	}
	return f.Requests[len(f.Requests)-1]
}

// Active is how many turns have not ended.
func (f *Model) Active() int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.running
}

// Pause is a place in the script where the model waits until the channel is closed, or its turn is
// cancelled.
type Pause struct {
	session.Event
	Until <-chan struct{}
}

// Do is a place where the turn calls a function.
type Do struct {
	session.Event
	Call func()
}

type turn struct {
	ctx    context.Context
	model  *Model
	events []session.Event
	result session.Result
	done   bool
}

func (t *turn) Next() (session.Event, bool) {
	for !t.done {
		if t.ctx.Err() != nil {
			return t.end(session.Done{Finish: session.FinishCancelled,
				Usage: cmp.Or(t.model.Cancelled, session.Usage{Prompt: Usage.Prompt})}), true
		}
		var e session.Event
		if len(t.events) > 0 {
			e, t.events = t.events[0], t.events[1:]
		}
		switch e := e.(type) {
		case nil:
			<-t.ctx.Done()
			continue
		case Pause:
			select {
			case <-e.Until:
			case <-t.ctx.Done():
			}
			continue
		case Do:
			e.Call()
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
	return nil, false
}

func (t *turn) end(d session.Done) session.Event {
	t.done = true
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
	t.model.Mu.Lock()
	t.model.running--
	t.model.Mu.Unlock()
	t.result.Done = d
	return d
}

func (t *turn) Result() session.Result { return t.result }
func (t *turn) Sampled() []int32       { return t.model.Sampled }

// Usage is the usage of every complete turn.
var Usage = session.Usage{Prompt: 40, Cached: 8, Completion: 12, Reasoning: 5}

// Done ends a turn.
func Done(f session.Finish) session.Event {
	return session.Done{Finish: f, Usage: Usage, Timing: sched.Timing{TTFT: 20 * time.Millisecond,
		Decode: 110 * time.Millisecond}}
}

// Answers yields reasoning and text.
func Answers(text string) Script {
	return func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Reasoning{Text: "They ask. "},
			session.Reasoning{Text: "I answer."}, session.Answer{Text: text},
			Done(session.FinishStop)}, nil
	}
}

// Calls makes one call of name.
func Calls(name, arguments string) Script {
	return func(session.Request) ([]session.Event, error) {
		return CallEvents(name, arguments), nil
	}
}

// CallEvents yields reasoning and a call.
func CallEvents(name, arguments string) []session.Event {
	return append([]session.Event{session.Reasoning{Text: "A tool knows."}}, Call("call_1",
		"functions."+name, arguments)...)
}

// Call is a call of a tool, whose arguments are streamed in two pieces, at the end of a turn.
func Call(id, recipient, arguments string) []session.Event {
	half := len(arguments) / 2
	return []session.Event{session.CallStart{ID: id, Recipient: recipient,
		Name: strings.TrimPrefix(recipient, "functions.")},
		session.CallArguments{Text: arguments[:half]},
		session.CallArguments{Text: arguments[half:]}, session.CallEnd{Arguments: arguments},
		Done(session.FinishToolCalls)}
}

// Agent calls the first offered function until a tool has answered, then answers.
func Agent(r session.Request) ([]session.Event, error) {
	if len(r.Functions) > 0 && (len(r.Messages) == 0 ||
		r.Messages[len(r.Messages)-1].Role != harmony.RoleTool) {
		return CallEvents(r.Functions[0].Name, `{"city": "Paris"}`), nil
	}
	return Answers("Done. The repository has a README.md and main.py.")(r)
}

// Ends says nothing.
func Ends(session.Request) ([]session.Event, error) {
	return []session.Event{Done(session.FinishStop)}, nil
}

// Fails starts no turn.
func Fails(err error) Script {
	return func(session.Request) ([]session.Event, error) { return nil, err }
}

// History shows the messages of a request in one line each.
func History(r session.Request) string {
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

type singleModel struct {
	session.Runner
	stats   func() sched.Stats
	aliases []string
}

// Single has one model, known under its own name and some others.
func Single(r session.Runner, stats func() sched.Stats, aliases ...string) session.Models {
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

// Summarises answers "ok", and text if a summary is requested.
func Summarises(text string) Script {
	return func(r session.Request) ([]session.Event, error) {
		if strings.HasPrefix(r.Messages[len(r.Messages)-1].Text(), "Write a summary") {
			return []session.Event{session.Answer{Text: text}, Done(session.FinishStop)},
				nil
		}
		return Answers("ok")(r)
	}
}

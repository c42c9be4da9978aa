package chat

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// A script is a Runner that says what it was told to. A step without an event waits until the turn
// is cancelled.
type script struct {
	mu       sync.Mutex
	turns    [][]session.Event // one list for each Start
	refuse   error
	requests []session.Request
}

func (s *script) ID() string         { return "gpt-oss-20b" }
func (s *script) Device() string     { return "cpu" }
func (s *script) ContextLength() int { return 131072 }

func (s *script) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if s.refuse != nil {
		return nil, s.refuse
	}
	if len(s.turns) == 0 {
		return nil, errors.New("the script has ended")
	}
	t := &scriptTurn{ctx: ctx, steps: s.turns[0]}
	s.turns = s.turns[1:]
	return t, nil
}

type scriptTurn struct {
	ctx    context.Context
	steps  []session.Event
	over   bool
	result session.Result
}

func (t *scriptTurn) Next() (session.Event, bool) {
	if t.over {
		return nil, false
	}
	var e session.Event
	if len(t.steps) > 0 {
		e, t.steps = t.steps[0], t.steps[1:]
	}
	if e == nil {
		<-t.ctx.Done()
		e = session.Done{Finish: session.FinishCancelled, Usage: session.Usage{Prompt: 80,
			Completion: 20}}
	}
	switch e := e.(type) {
	case session.Answer:
		t.result.Answer += e.Text
	case session.Reasoning:
		t.result.Reasoning += e.Text
	case session.CallStart:
		t.result.Calls = append(t.result.Calls, session.Call{ID: e.ID, Name: e.Name,
			Recipient: e.Recipient})
	case session.CallEnd:
		t.result.Calls[len(t.result.Calls)-1].Arguments = e.Arguments
	case session.Done:
		t.over = true
		t.result.Done = e
		if t.result.Answer != "" {
			t.result.Messages = append(t.result.Messages, session.AssistantAnswer(t.result.Answer))
		}
	}
	return e, true
}

func (t *scriptTurn) Result() session.Result { return t.result }
func (t *scriptTurn) Sampled() []int32       { return nil }

// words cuts text into events of about a token.
func words(text string, event func(string) session.Event) []session.Event {
	var all []session.Event
	for _, w := range strings.SplitAfter(text, " ") {
		all = append(all, event(w))
	}
	return all
}

func reasoning(text string) []session.Event {
	return words(text, func(s string) session.Event { return session.Reasoning{Text: s} })
}

func answering(text string) []session.Event {
	return words(text, func(s string) session.Event { return session.Answer{Text: s} })
}

// stopped is the end of a turn that ended by itself.
func stopped(prompt, completion int) session.Event {
	return session.Done{
		Finish: session.FinishStop, Usage: session.Usage{Prompt: prompt, Completion: completion},
		Timing: sched.Timing{Decode: time.Duration(completion-1) * 50 * time.Millisecond},
	}
}

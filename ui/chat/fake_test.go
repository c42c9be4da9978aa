package chat

import (
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// script is a model that plays one of these turns for each request.
func script(turns ...[]session.Event) *sessiontest.Model {
	return &sessiontest.Model{Hardware: "cpu", Context: 131072, Turns: turns,
		Cancelled: session.Usage{Prompt: 80, Completion: 20}}
}

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

// fine is a turn that answers.
func fine(text string) []session.Event {
	return append(answering(text), stopped(9, 2))
}

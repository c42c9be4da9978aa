// Calls and their results in a conversation that a client sends.
//
// What must stay true: the model never reads a result that answers nothing, nor a user who speaks
// while a call still waits for its result; OpenAI and Anthropic refuse both.

package openai

import (
	"slices"
	"strings"
)

// callLedger holds the ids of the calls so far.
type callLedger struct {
	called []string
	open   []string // not answered yet
}

func (l *callLedger) call(id string) {
	l.called, l.open = append(l.called, id), append(l.open, id)
}

// answer tells whether the id is that of an earlier call.
func (l *callLedger) answer(id string) bool {
	l.open = slices.DeleteFunc(l.open, func(open string) bool { return open == id })
	return slices.Contains(l.called, id)
}

// waiting is why a user cannot speak yet, "" if all calls have their results.
func (l *callLedger) waiting() string {
	if len(l.open) == 0 {
		return ""
	}
	return "each call must be followed by its result: none was found for " +
		strings.Join(l.open, ", ")
}

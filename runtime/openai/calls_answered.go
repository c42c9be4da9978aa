// Calls and their results in a conversation that a client sends.
//
// What must stay true: the model never reads a result that answers nothing, nor a user who speaks
// while a call still waits for its result; OpenAI and Anthropic refuse both. In responses a result
// may come after the user has spoken, but it must come.

package openai

import "strings"

// callLedger holds the calls so far.
type callLedger struct {
	called []string
	open   map[string]bool // ids of calls: whether they wait for a result
	waits  int             // how many calls wait
	spoken int             // how many calls came before the user's last word
	told   bool            // the complaint that a call waits was made

	function, path string // the last deprecated function_call, and its id
}

func (l *callLedger) call(id string) {
	if l.open == nil {
		l.open = map[string]bool{}
	}
	if !l.open[id] {
		l.waits++
	}
	l.called, l.open[id] = append(l.called, id), true
}

// answer tells whether the id is that of an earlier call.
func (l *callLedger) answer(id string) bool {
	open, ok := l.open[id]
	if open {
		l.open[id] = false
		l.waits--
	}
	return ok
}

// unanswered are those of the calls that wait for their results.
func (l *callLedger) unanswered(calls []string) (ids []string) {
	if l.waits == 0 {
		return nil
	}
	for _, id := range calls {
		if l.open[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// waiting says why a user cannot speak yet, "" if all calls have their results. It says so once.
func (l *callLedger) waiting() string {
	if l.told {
		return ""
	}
	ids := l.unanswered(l.called)
	if len(ids) == 0 {
		return ""
	}
	l.told = true
	return "each call must be followed by its result: none was found for " +
		strings.Join(ids, ", ")
}

// userSpeaks says that the calls so far must have their results in the end, for overdue.
func (l *callLedger) userSpeaks() { l.spoken = len(l.called) }

// overdue complains, in OpenAI's words, about a call that has no result although the user has
// spoken since.
func (l *callLedger) overdue() *fault {
	ids := l.unanswered(l.called[:l.spoken])
	if len(ids) == 0 {
		return nil
	}
	return invalid("input", "No tool output found for function call %s.", ids[0])
}

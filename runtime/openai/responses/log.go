// The events of a response, stored so that a stream can be followed late or from its middle.
//
// Every stored response has one. Deltas of one text are stored as one run. What must stay true: all
// readers of a response get the same events under the same sequence numbers, from any time and
// position.

package responses

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/openai/answer"
)

// eventLog is safe for concurrent use.
type eventLog struct {
	mu         sync.Mutex
	entries    []loggedEvent
	done       bool
	storedOnly bool          // events are hidden until they are stored
	stored     int           // the sequence number of the last stored event
	changed    chan struct{} // closed at the next change
}

// loggedEvent is one event, or a run of deltas.
type loggedEvent struct {
	Kind  string
	Last  int             // the sequence number of the last event in it
	Event json.RawMessage `json:",omitempty"`
	Run   *deltaRun       `json:",omitempty"`
}

type deltaRun struct {
	ItemID       string
	OutputIndex  int
	ContentIndex *int
	SummaryIndex *int `json:",omitempty"`
	Logprobs     bool // the events have an empty list of them
	Text         []byte
	Ends         []int // of each delta in Text
}

func newEventLog() *eventLog { return &eventLog{changed: make(chan struct{})} }

func (l *eventLog) add(e *streamEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wake()
	if e.Delta == nil || e.Logprobs != nil && len(*e.Logprobs) > 0 {
		l.entries = append(l.entries, newLoggedEvent(e))
		return
	}
	if n := len(l.entries); n > 0 && l.entries[n-1].Run != nil && l.entries[n-1].Kind == e.Type &&
		l.entries[n-1].Run.ItemID == e.ItemID && l.entries[n-1].Last == e.Sequence-1 {
		l.entries[n-1].Last = e.Sequence
	} else {
		l.entries = append(l.entries, loggedEvent{Kind: e.Type, Last: e.Sequence,
			Run: &deltaRun{ItemID: e.ItemID, OutputIndex: *e.OutputIndex,
				ContentIndex: e.ContentIndex, SummaryIndex: e.SummaryIndex,
				Logprobs: e.Logprobs != nil}})
	}
	run := l.entries[len(l.entries)-1].Run
	run.Text = append(run.Text, *e.Delta...)
	run.Ends = append(run.Ends, len(run.Text))
}

// withEvent returns a copy of the log with the event added. Readers do not see the event yet.
func (l *eventLog) withEvent(e *streamEvent) *eventLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &eventLog{entries: append(slices.Clip(l.entries), newLoggedEvent(e))}
}

func newLoggedEvent(e *streamEvent) loggedEvent {
	body, _ := answer.Marshal(e) // our own types cannot fail
	return loggedEvent{Kind: e.Type, Last: e.Sequence, Event: body}
}

// reopen returns a stored log that can grow again.
func (l *eventLog) reopen() *eventLog {
	return &eventLog{entries: l.entries, changed: make(chan struct{}), storedOnly: true,
		stored: l.last()}
}

func (l *eventLog) lastStored() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored
}

// hideUnstored hides events until they are stored.
func (l *eventLog) hideUnstored() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.storedOnly, l.stored = true, -1
}

// release shows the events up to sequence number n, which are stored now.
func (l *eventLog) release(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > l.stored {
		l.stored = n
		l.wake()
	}
}

func (l *eventLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = true
	l.wake()
}

func (l *eventLog) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// eventsAtOnce bounds the events that a slow reader gets at a time.
const eventsAtOnce = 512

// eventsAfter returns the first events whose sequence number is greater than n. more is closed at
// the next event; nil after the last.
func (l *eventLog) eventsAfter(n int) (list []sentEvent, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, _ := slices.BinarySearchFunc(l.entries, n+1,
		func(e loggedEvent, n int) int { return e.Last - n })
	for _, e := range l.entries[first:] {
		list = e.appendFrom(list, n)
		if l.storedOnly && !l.done {
			for len(list) > 0 && list[len(list)-1].sequence > l.stored {
				list = list[:len(list)-1]
			}
		}
		if len(list) >= eventsAtOnce {
			return list, closedChannel
		}
	}
	if !l.done {
		more = l.changed
	}
	return list, more
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

type sentEvent struct {
	kind     string
	sequence int
	body     any
}

// appendFrom appends the event, or the part of a run after sequence number n, up to eventsAtOnce.
func (e loggedEvent) appendFrom(list []sentEvent, n int) []sentEvent {
	if e.Run == nil {
		return append(list, sentEvent{e.Kind, e.Last, e.Event})
	}
	first := e.Last - len(e.Run.Ends) + 1 // deltas have consecutive numbers
	for i := max(n+1-first, 0); i < len(e.Run.Ends) && len(list) < eventsAtOnce; i++ {
		begin := 0
		if i > 0 {
			begin = e.Run.Ends[i-1]
		}
		text := string(e.Run.Text[begin:e.Run.Ends[i]])
		event := &streamEvent{Type: e.Kind, Sequence: first + i, ItemID: e.Run.ItemID,
			OutputIndex: &e.Run.OutputIndex, ContentIndex: e.Run.ContentIndex,
			SummaryIndex: e.Run.SummaryIndex, Delta: &text}
		if e.Run.Logprobs {
			event.Logprobs = answer.OrEmpty(nil)
		}
		list = append(list, sentEvent{e.Kind, first + i, event})
	}
	return list
}

// MarshalJSON is for the store.
func (l *eventLog) MarshalJSON() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return answer.Marshal(l.entries)
}

// UnmarshalJSON makes a log that has ended.
func (l *eventLog) UnmarshalJSON(b []byte) error {
	l.done = true
	return json.Unmarshal(b, &l.entries)
}

func (l *eventLog) last() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return -1
	}
	return l.entries[len(l.entries)-1].Last
}

// The events of a response, kept so that a stream can be followed late, again, or from its middle.
//
// Every stored response has one; that of a background response is followed while it grows. Deltas
// that continue one text are kept as one run. What must stay true: an event's sequence number is
// the same for everybody who reads it; who reads from number N on gets every character behind N
// once.

package openai

import (
	"encoding/json"
	"slices"
	"sync"
)

// eventLog is safe for concurrent use.
type eventLog struct {
	mu      sync.Mutex
	entries []loggedEvent
	ended   bool
	changed chan struct{} // closed at the next change
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
	Logprobs     bool // the events have an empty list of them
	Text         []byte
	Ends         []int // of each delta in Text
}

func newEventLog() *eventLog { return &eventLog{changed: make(chan struct{})} }

func (l *eventLog) add(e *streamEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wake()
	logged := loggedEvent{Kind: e.Type, Last: e.Sequence}
	if e.Delta == nil || e.Logprobs != nil && len(*e.Logprobs) > 0 {
		logged.Event, _ = marshal(e) // of our own types, which can be encoded
		l.entries = append(l.entries, logged)
		return
	}
	if n := len(l.entries); n > 0 && l.entries[n-1].Run != nil && l.entries[n-1].Kind == e.Type &&
		l.entries[n-1].Run.ItemID == e.ItemID && l.entries[n-1].Last == e.Sequence-1 {
		l.entries[n-1].Last = e.Sequence
	} else {
		logged.Run = &deltaRun{ItemID: e.ItemID, OutputIndex: *e.OutputIndex,
			ContentIndex: e.ContentIndex, Logprobs: e.Logprobs != nil}
		l.entries = append(l.entries, logged)
	}
	run := l.entries[len(l.entries)-1].Run
	run.Text = append(run.Text, *e.Delta...)
	run.Ends = append(run.Ends, len(run.Text))
}

// end says that no more events come.
func (l *eventLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

func (l *eventLog) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// after returns the events whose sequence number is greater than n. Deltas of one run come as one
// event with the number of the last. more is closed when there is something new; nil if nothing
// will come.
func (l *eventLog) after(n int) (list []sentEvent, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.entries) {
		if e.Last <= n {
			break
		}
		list = append(list, e.from(n))
	}
	slices.Reverse(list)
	if !l.ended {
		more = l.changed
	}
	return list, more
}

// sentEvent is an event as a stream sends it.
type sentEvent struct {
	kind     string
	sequence int
	body     any
}

// from is the event, or what a run has after sequence number n.
func (e loggedEvent) from(n int) sentEvent {
	if e.Run == nil {
		return sentEvent{e.Kind, e.Last, e.Event}
	}
	begin := 0
	if first := e.Last - len(e.Run.Ends) + 1; n >= first { // deltas have consecutive numbers
		begin = e.Run.Ends[n-first]
	}
	text := string(e.Run.Text[begin:])
	event := &streamEvent{Type: e.Kind, Sequence: e.Last, ItemID: e.Run.ItemID,
		OutputIndex: &e.Run.OutputIndex, ContentIndex: e.Run.ContentIndex, Delta: &text}
	if e.Run.Logprobs {
		event.Logprobs = orEmpty(nil)
	}
	return sentEvent{e.Kind, e.Last, event}
}

// MarshalJSON is for the store.
func (l *eventLog) MarshalJSON() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return marshal(l.entries)
}

// UnmarshalJSON makes a log that has ended.
func (l *eventLog) UnmarshalJSON(b []byte) error {
	l.ended = true
	return json.Unmarshal(b, &l.entries)
}

// last is the sequence number of the last event, -1 if there is none.
func (l *eventLog) last() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return -1
	}
	return l.entries[len(l.entries)-1].Last
}

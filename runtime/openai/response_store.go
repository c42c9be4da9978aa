// The responses that previous_response_id, GET and DELETE find, as records of the session's store.
//
// A response holds the conversation that led to it by itself, so a forgotten or deleted ancestor
// breaks nothing. A background response is stored while it runs, with the time until which it
// counts as running: whoever finds it later knows that its process has ended.

package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// storedResponse is the value of a record; the response's id is its key, and the ids of its items
// find it too.
type storedResponse struct {
	Body  json.RawMessage            // what GET answers
	Items map[string]json.RawMessage // output items by id, for item_reference
	Input []json.RawMessage          `json:",omitempty"` // items before the answer, oldest first
	Talk  conversation               // everything up to the answer, included
	Log   *eventLog                  `json:",omitempty"`
	// Until is the latest time of the next update in the store, for a response that runs; zero: it
	// has ended
	Until time.Time `json:",omitzero"`
	// of a response that runs: what another process needs to go on with it
	Request json.RawMessage `json:",omitempty"`
	Tokens  []int32         `json:",omitempty"`
}

// takenUp is how long a response whose process has ended waits for another process.
const takenUp = 10 * time.Minute

func putResponse(s session.Store, id string, r storedResponse) error {
	value, err := marshal(r)
	if err == nil {
		s.Put(session.Record{Kind: session.KindResponse, Key: id,
			Also: slices.Collect(maps.Keys(r.Items)), Value: value})
	}
	return err
}

// getResponse finds a response by its id. One whose process has ended while it ran has failed.
func getResponse(s session.Store, id string) (r storedResponse, ok bool) {
	record, ok := s.Get(session.KindResponse, id)
	ok = ok && record.Key == id && json.Unmarshal(record.Value, &r) == nil
	until := r.Until
	if len(r.Tokens) > 0 {
		until = until.Add(takenUp)
	}
	if ok && r.running() && time.Now().After(until) {
		r.lost()
	}
	return r, ok
}

func (r *storedResponse) running() bool { return !r.Until.IsZero() }

// lost makes a response that ran in a process that is gone a failed one.
func (r *storedResponse) lost() {
	r.Until, r.Request, r.Tokens = time.Time{}, nil, nil
	var body map[string]json.RawMessage
	if json.Unmarshal(r.Body, &body) != nil {
		return
	}
	body["status"] = json.RawMessage(`"failed"`)
	body["error"], _ = marshal(responseError{Code: kindServer,
		Message: "the server ended while it wrote this response; send the request again"})
	var output []map[string]json.RawMessage
	if json.Unmarshal(body["output"], &output) == nil && len(output) > 0 {
		last := output[len(output)-1] // nobody goes on with it
		if string(last["status"]) == `"in_progress"` {
			last["status"] = json.RawMessage(`"incomplete"`)
			body["output"], _ = marshal(output)
		}
	}
	r.Body, _ = marshal(body)
	if r.Log != nil {
		event, _ := marshal(map[string]any{"type": "response.failed",
			"sequence_number": r.Log.last() + 1, "response": r.Body})
		r.Log.entries = append(r.Log.entries, loggedEvent{Kind: "response.failed",
			Last: r.Log.last() + 1, Event: event})
	}
}

func (r *storedResponse) background() bool {
	var body struct{ Background bool }
	_ = json.Unmarshal(r.Body, &body) // our own
	return body.Background
}

// output is the items of the answer.
func (r *storedResponse) output() []json.RawMessage {
	var body struct{ Output []json.RawMessage }
	_ = json.Unmarshal(r.Body, &body) // our own
	return body.Output
}

// getItem finds an output item of any stored response.
func getItem(s session.Store, id string) (json.RawMessage, bool) {
	var r storedResponse
	record, ok := s.Get(session.KindResponse, id)
	if !ok || json.Unmarshal(record.Value, &r) != nil {
		return nil, false
	}
	item, ok := r.Items[id]
	return item, ok
}

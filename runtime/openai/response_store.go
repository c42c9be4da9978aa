// The responses that previous_response_id, GET and DELETE find, as records of the session's store.
//
// A response holds the conversation that led to it by itself, so a forgotten or deleted ancestor
// breaks nothing.

package openai

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/ossrun/ossrun/runtime/session"
)

// storedResponse is the value of a record; the response's id is its key, and the ids of its items
// find it too.
type storedResponse struct {
	Body  json.RawMessage            // what GET answers
	Items map[string]json.RawMessage // output items by id, for item_reference
	Talk  conversation               // everything up to the answer, included
}

func putResponse(s session.Store, id string, r storedResponse) error {
	value, err := marshal(r)
	if err == nil {
		s.Put(session.Record{Kind: session.KindResponse, Key: id,
			Also: slices.Collect(maps.Keys(r.Items)), Value: value})
	}
	return err
}

// getResponse finds a response by its id.
func getResponse(s session.Store, id string) (r storedResponse, ok bool) {
	record, ok := s.Get(session.KindResponse, id)
	ok = ok && record.Key == id && json.Unmarshal(record.Value, &r) == nil
	return r, ok
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

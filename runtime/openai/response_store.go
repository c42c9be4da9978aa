// The responses that previous_response_id, GET and DELETE find.
//
// They live in memory, the least recently used go first, and a count and a number of bytes bound them, so a server that
// runs for weeks does not grow. A response holds the conversation that led to it by itself (sharing the texts), so a
// forgotten or deleted ancestor breaks nothing.

package openai

import (
	"container/list"
	"encoding/json"
	"sync"
)

const (
	maxStored      = 4096
	maxStoredBytes = 256 << 20
)

type storedResponse struct {
	id    string
	body  json.RawMessage            // what GET answers
	items map[string]json.RawMessage // output items by id, for item_reference
	talk  conversation               // everything up to the answer, included
	bytes int
}

type responseStore struct {
	mu       sync.Mutex
	maxCount int
	maxBytes int
	bytes    int
	order    *list.List // of *storedResponse, most recently used in front
	byID     map[string]*list.Element
	byItem   map[string]*list.Element
}

func newResponseStore(maxCount, maxBytes int) *responseStore {
	return &responseStore{maxCount: maxCount, maxBytes: maxBytes, order: list.New(),
		byID: map[string]*list.Element{}, byItem: map[string]*list.Element{}}
}

func (s *responseStore) put(r *storedResponse) {
	r.bytes = len(r.body)
	for _, item := range r.items {
		r.bytes += len(item)
	}
	for _, m := range r.talk.messages { // shared with other responses, and counted in each: the bound errs on the safe side
		r.bytes += len(m.Text())
	}
	if r.bytes > s.maxBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.order.PushFront(r)
	s.byID[r.id] = e
	for id := range r.items {
		s.byItem[id] = e
	}
	s.bytes += r.bytes
	for s.bytes > s.maxBytes || s.order.Len() > s.maxCount {
		s.drop(s.order.Back())
	}
}

func (s *responseStore) get(id string) (*storedResponse, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[id]
	if !ok {
		return nil, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*storedResponse), true
}

// item finds an output item of any stored response.
func (s *responseStore) item(id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byItem[id]
	if !ok {
		return nil, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*storedResponse).items[id], true
}

func (s *responseStore) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[id]
	if ok {
		s.drop(e)
	}
	return ok
}

func (s *responseStore) drop(e *list.Element) {
	r := s.order.Remove(e).(*storedResponse)
	delete(s.byID, r.id)
	for id := range r.items {
		delete(s.byItem, id)
	}
	s.bytes -= r.bytes
}

// The responses that previous_response_id, GET and DELETE find.
//
// They live in memory, the least recently used go first, and a count, a number of bytes and an age bound them, so a server
// that runs for weeks does not grow. A response holds the conversation that led to it by itself (sharing the texts), so a
// forgotten or deleted ancestor breaks nothing. Where there is a folder, a journal in it brings them back after a restart.

package openai

import (
	"container/list"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/session/journal"
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
	at    time.Time                  // when it was last used
	bytes int
}

// Responses is safe for concurrent use.
type Responses struct {
	mu       sync.Mutex
	maxCount int
	maxBytes int
	ttl      time.Duration
	now      func() time.Time
	bytes    int
	order    *list.List // of *storedResponse, most recently used in front
	byID     map[string]*list.Element
	byItem   map[string]*list.Element
	log      *journal.Journal // nil: in memory alone
}

// NewResponses keeps responses in memory for ttl after they were last used.
func NewResponses(ttl time.Duration) *Responses { return newResponses(maxStored, maxStoredBytes, ttl) }

func newResponses(maxCount, maxBytes int, ttl time.Duration) *Responses {
	return &Responses{maxCount: maxCount, maxBytes: maxBytes, ttl: ttl, now: time.Now, order: list.New(),
		byID: map[string]*list.Element{}, byItem: map[string]*list.Element{}}
}

// OpenResponses is NewResponses with a journal in folder, which is made if it is not there. The error wraps store.ErrLocked where
// another process has the folder.
func OpenResponses(folder string, ttl time.Duration) (*Responses, error) {
	s := NewResponses(ttl)
	var err error
	if s.log, err = journal.Open(filepath.Join(folder, "responses.log"), s.take, s.records); err != nil {
		return nil, fmt.Errorf("the stored responses of earlier: %w", err)
	}
	return s, nil
}

// Close ends the journal. What is stored later is in memory alone.
func (s *Responses) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// put stores a response, on disk too where there is a journal.
func (s *Responses) put(r *storedResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.at = s.now()
	if s.add(r) && s.log != nil {
		s.log.Append(r.record(), s.records)
	}
}

// add takes r in and drops what is too much or too old. s.mu is held, or nobody else has s yet.
func (s *Responses) add(r *storedResponse) bool {
	r.bytes = len(r.body)
	for _, item := range r.items {
		r.bytes += len(item)
	}
	for _, m := range r.talk.messages { // shared with other responses, and counted in each: the bound errs on the safe side
		r.bytes += len(m.Text())
	}
	if r.bytes > s.maxBytes {
		return false
	}
	if e, ok := s.byID[r.id]; ok {
		s.drop(e)
	}
	e := s.order.PushFront(r)
	s.byID[r.id] = e
	for id := range r.items {
		s.byItem[id] = e
	}
	s.bytes += r.bytes
	for s.bytes > s.maxBytes || s.order.Len() > s.maxCount {
		s.drop(s.order.Back())
	}
	for e := s.order.Back(); e != nil && s.old(e); e = s.order.Back() {
		s.drop(e)
	}
	return true
}

func (s *Responses) old(e *list.Element) bool {
	return s.now().Sub(e.Value.(*storedResponse).at) > s.ttl
}

// use is what e holds, nil where it is too old.
func (s *Responses) use(e *list.Element) *storedResponse {
	if s.old(e) {
		s.drop(e)
		return nil
	}
	s.order.MoveToFront(e)
	r := e.Value.(*storedResponse)
	r.at = s.now()
	return r
}

func (s *Responses) get(id string) (*storedResponse, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byID[id]; ok {
		if r := s.use(e); r != nil {
			return r, true
		}
	}
	return nil, false
}

// item finds an output item of any stored response.
func (s *Responses) item(id string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byItem[id]; ok {
		if r := s.use(e); r != nil {
			return r.items[id], true
		}
	}
	return nil, false
}

func (s *Responses) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byID[id]
	if ok {
		s.drop(e)
		if s.log != nil {
			line, _ := json.Marshal(responseRecord{ID: id, Deleted: true}) // a string and a bool
			s.log.Append(line, s.records)
		}
	}
	return ok
}

func (s *Responses) drop(e *list.Element) {
	r := s.order.Remove(e).(*storedResponse)
	delete(s.byID, r.id)
	for id := range r.items {
		delete(s.byItem, id)
	}
	s.bytes -= r.bytes
}

// Stored responses as records of a journal.
//
// What must stay true: what a client has deleted does not come back.

package openai

import (
	"encoding/json"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
)

// responseRecord is a line of the journal.
type responseRecord struct {
	ID       string
	Deleted  bool                       `json:",omitempty"` // by a client, and so are all others of it
	At       time.Time                  `json:",omitzero"`
	Body     json.RawMessage            `json:",omitempty"`
	Items    map[string]json.RawMessage `json:",omitempty"`
	Lead     []string                   `json:",omitempty"`
	Messages []messageRecord            `json:",omitempty"`
}

type messageRecord struct {
	Message harmony.Message
	CallID  string `json:",omitempty"`
}

func (r *storedResponse) record() []byte {
	rec := responseRecord{ID: r.id, At: r.at, Body: r.body, Items: r.items, Lead: r.talk.lead}
	for _, m := range r.talk.messages {
		rec.Messages = append(rec.Messages, messageRecord{m.Message, m.CallID})
	}
	line, err := marshal(rec)
	if err != nil { // a message of an unknown kind: it is remembered while the process runs
		line, _ = json.Marshal(responseRecord{ID: r.id, Deleted: true})
	}
	return line
}

// take takes in a record of an earlier process.
func (s *Responses) take(line []byte) bool {
	var rec responseRecord
	if json.Unmarshal(line, &rec) != nil {
		return false
	}
	if e, ok := s.byID[rec.ID]; ok {
		s.drop(e)
	}
	if age := s.now().Sub(rec.At); rec.Deleted || age < 0 || age > s.ttl {
		return true
	}
	r := &storedResponse{id: rec.ID, at: rec.At, body: rec.Body, items: rec.Items, talk: conversation{lead: rec.Lead}}
	for _, m := range rec.Messages {
		r.talk.messages = append(r.talk.messages, session.Message{Message: m.Message, CallID: m.CallID})
	}
	s.add(r)
	return true
}

// records yields what is stored, oldest first. s.mu is held, or nobody else has s yet.
func (s *Responses) records(yield func([]byte) bool) {
	for e := s.order.Back(); e != nil; e = e.Prev() {
		if !yield(e.Value.(*storedResponse).record()) {
			return
		}
	}
}

// Saved conversations outside the chat: `ossrun sessions` lists, shows, exports and deletes them.

package chat

import (
	"encoding/json"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A Saved is a saved conversation.
type Saved struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Model     string    `json:"model"`
	Began     time.Time `json:"began"`
	Changed   time.Time `json:"changed"`
	Questions int       `json:"questions"`

	record *savedChat
}

func (k *savedChat) summary() Saved {
	s := Saved{ID: k.ID, Name: term.Clean(k.Name), Model: k.Model, Began: k.Began,
		Changed: k.Changed, record: k}
	for _, e := range k.Exchanges {
		if e.Summary == "" {
			s.Questions++
		}
	}
	return s
}

// List returns all conversations of a store, latest first.
func List(store records.Store) []Saved {
	all := []Saved{}
	for _, k := range savedChats(store) {
		all = append(all, k.summary())
	}
	return all
}

// Find finds a saved conversation by its ID, an ID prefix, or its name; "" is the latest.
func Find(store records.Store, name string) (Saved, error) {
	k, err := find(store, name)
	if err != nil {
		return Saved{}, err
	}
	return k.summary(), nil
}

// Markdown is the visible branch, as /export writes it.
func (s Saved) Markdown() string {
	m := &Model{}
	m.rebuild(s.record)
	return m.conversation.document(s.Model, s.record.System)
}

// Document is the conversation with every branch, as /export writes it to a .json file.
func (s Saved) Document() ([]byte, error) { return json.MarshalIndent(s.record, "", "  ") }

// Delete deletes the conversation and its traces in p, unless a chat has it open.
func (p Stores) Delete(s Saved) error { return p.eraseClosed(s.record) }

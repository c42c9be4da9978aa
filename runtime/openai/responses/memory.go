// What a WebSocket connection remembers: its latest responses with store false, for
// previous_response_id.
//
// They are records within the bounds and the client's share of stored ones. What must stay true: no
// disk has them, no other connection finds them, and they are deleted with the connection.

package responses

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/records"
)

// Memory is the memory of one connection. It is safe for concurrent use.
type Memory struct {
	id   string
	mu   sync.Mutex
	ids  [4]string // of responses; "": forgotten
	next int       // place in ids of the next response
}

type memoryKey struct{}

// WithMemory gives the requests of a connection a memory.
func WithMemory(ctx context.Context) (context.Context, *Memory) {
	m := &Memory{id: answer.NewID("ws_")}
	return context.WithValue(ctx, memoryKey{}, m), m
}

func (m *Memory) record(place int) string { return fmt.Sprintf("%s %d", m.id, place) }

// key is the key of a response's record: its id, unless the connection remembers it.
func (m *Memory) key(id string) string {
	if m == nil {
		return id
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if place := slices.Index(m.ids[:], id); place >= 0 {
		id = m.record(place)
	}
	return id
}

// remember replaces the oldest response. One that does not fit is not remembered.
func (m *Memory) remember(store records.Store, id string, r storedResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := answer.Marshal(r)
	if err == nil && store.Put(records.Record{Kind: records.KindResponse, Key: m.record(m.next),
		Value: value, InMemory: true}) == nil {
		m.ids[m.next] = id
		m.next = (m.next + 1) % len(m.ids)
	}
}

// Forget makes a response unknown, as OpenAI does when its continuation fails.
func (m *Memory) Forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if place := slices.Index(m.ids[:], id); place >= 0 {
		m.ids[place] = ""
	}
}

// DeleteMemory ends the memory of a client's connection.
func (p *API) DeleteMemory(client string, m *Memory) {
	_ = p.forOwner(client).store.Change(func(c *records.Change) error { // a failure: they expire
		for place := range m.ids {
			c.Delete(records.KindResponse, m.record(place))
		}
		return nil
	})
}

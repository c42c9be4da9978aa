// Package quota divides limits among clients: places in a queue, bytes in memory, containers.
//
// A single client may hold all of a limit. The room for all clients is a seventh larger, and each
// may hold at most seven times the free rest of it, so n clients get equal parts of about 8/7 of
// the limit without a count of clients. What must stay true: a flood of one client leaves room for
// others; a client that holds nothing is refused last.
package quota

import "sync"

// factor is how many times the free rest a client may hold.
const factor = 7

// Room is the most that all clients together may hold, for a limit of a single client.
func Room(limit int64) int64 { return limit + (limit+factor-1)/factor }

// Shared is a limit that clients share. It is safe for concurrent use.
type Shared struct {
	room int64

	mu       sync.Mutex
	total    int64
	byClient map[string]int64
}

// New makes a limit. The name is for the test that floods all of them (runtime/openai).
func New(_ string, limit int64) *Shared {
	return &Shared{room: Room(limit), byClient: map[string]int64{}}
}

// Take gives a client n more, or nothing if that is more than its share. A client that holds
// nothing gets one as long as there is one.
func (s *Shared) Take(client string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.byClient[client] + n
	if free := s.room - s.total - n; free < 0 || !Fits(has, free) && has > 1 {
		return false
	}
	s.total += n
	s.byClient[client] = has
	return true
}

// Return takes back what a client has taken.
func (s *Shared) Return(client string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= n
	if s.byClient[client] -= n; s.byClient[client] == 0 {
		delete(s.byClient, client)
	}
}

func (s *Shared) Total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Fits tells whether a client may hold so much while the rest is free.
func Fits(holds, free int64) bool { return holds <= factor*free }

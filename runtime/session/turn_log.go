// The memory of sampled turns on disk, so that a tool loop goes on with its reasoning after a restart: one record of a journal
// a turn.

package session

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ossrun/ossrun/runtime/session/journal"
)

type record struct {
	Key       []byte
	At        time.Time
	Arguments string `json:",omitempty"`
	Segments  []recordSegment
}

type recordSegment struct {
	Reasoning bool   `json:",omitempty"`
	Tokens    []byte // ids, varints
}

const logName = "sampled-turns.log"

// OpenMemory is NewMemory with a journal in folder, which is made if it is not there. What an earlier process left in it and is
// not too old is remembered. The error wraps store.ErrLocked where another process has the folder.
func OpenMemory(folder string, maxTokens int, ttl time.Duration) (*Memory, error) {
	m := NewMemory(maxTokens, ttl)
	var err error
	if m.log, err = journal.Open(filepath.Join(folder, logName), m.take, m.records); err != nil {
		return nil, fmt.Errorf("the sampled turns of earlier: %w", err)
	}
	return m, nil
}

// Close ends the journal. What is put later is in memory alone.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.log == nil {
		return nil
	}
	err := m.log.Close()
	m.log = nil
	return err
}

// take takes in a record of an earlier process.
func (m *Memory) take(line []byte) bool {
	r, ok := parseRecord(line)
	if ok {
		if age := m.now().Sub(r.at); age <= m.ttl && age >= 0 {
			m.add(r)
		}
	}
	return ok
}

// records yields what is remembered, oldest first. m.mu is held, or nobody else has m yet.
func (m *Memory) records(yield func([]byte) bool) {
	for e := m.order.Back(); e != nil; e = e.Prev() {
		if !yield(e.Value.(*remembered).record()) {
			return
		}
	}
}

func parseRecord(line []byte) (*remembered, bool) {
	var rec record
	if json.Unmarshal(line, &rec) != nil {
		return nil, false
	}
	r := &remembered{key: string(rec.Key), arguments: rec.Arguments, at: rec.At}
	for _, s := range rec.Segments {
		seg := segment{reasoning: s.Reasoning}
		for b := s.Tokens; len(b) > 0; {
			id, n := binary.Uvarint(b)
			if n <= 0 || id > 1<<30 {
				return nil, false
			}
			seg.tokens = append(seg.tokens, int32(id))
			b = b[n:]
		}
		r.segments = append(r.segments, seg)
	}
	return r, true
}

func (r *remembered) record() []byte {
	rec := record{Key: []byte(r.key), At: r.at, Arguments: r.arguments}
	for _, s := range r.segments {
		seg := recordSegment{Reasoning: s.reasoning}
		for _, id := range s.tokens {
			seg.Tokens = binary.AppendUvarint(seg.Tokens, uint64(id))
		}
		rec.Segments = append(rec.Segments, seg)
	}
	line, _ := json.Marshal(rec) // strings, bytes and a time of this century
	return line
}

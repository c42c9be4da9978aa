// The store for the tokens of sampled turns and for stored responses.
//
// Records are kept in memory and, if there is a folder, also in a journal that a later process
// reads. What must stay true: each kind of record is bounded by count, bytes and age, so a server
// that runs for weeks does not grow; the least recently used record is dropped first; a deleted
// record does not come back; if the disk refuses a record, only the next process misses it.

package session

import (
	"bytes"
	"container/list"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/session/journal"
)

// Store keeps records. It is safe for concurrent use.
type Store interface {
	// Put stores r and replaces an earlier record with the same kind and key.
	Put(r Record)
	// Get finds a record by its key or by one of its other keys, and counts as a use of it.
	Get(kind Kind, key string) (Record, bool)
	// List returns the records of a kind, the most recently used first. It does not count as a use.
	List(kind Kind) []Record
	// Delete removes the record with this key and tells whether there was one.
	Delete(kind Kind, key string) bool
	// Close closes the journal. Records that are put later are kept in memory only.
	Close() error
}

// Kind says what a record is. Keys of different kinds are independent.
type Kind string

const (
	KindTurn     Kind = "turn"     // what the model sampled in a turn
	KindResponse Kind = "response" // an answer of /v1/responses
)

// Record is one entry of a Store.
type Record struct {
	Kind  Kind
	Key   string
	Also  []string        `json:",omitempty"` // further keys
	Value json.RawMessage `json:",omitempty"`
	Used  time.Time       `json:",omitzero"` // the store sets it
}

// Bound limits how much of one kind is kept.
type Bound struct {
	Count int // records; 0: any number
	Bytes int // of all values
}

var bounds = map[Kind]Bound{
	KindTurn:     {Bytes: 24 << 20}, // about four million tokens
	KindResponse: {Bytes: 256 << 20, Count: 4096},
}

// StoreOptions say how much a store keeps, how long, and where.
type StoreOptions struct {
	Folder string         // of the journal, created if missing; "": in memory only
	TTL    time.Duration  // how long a record is kept after it was last used
	Bounds map[Kind]Bound // nil: those of this file
}

// RememberedFor is the default TTL.
const RememberedFor = 24 * time.Hour

const journalName = "kept.log"

type memoryStore struct {
	o   StoreOptions
	now func() time.Time

	mu    sync.Mutex
	order map[Kind]*list.List // of *Record, most recently used first
	bytes map[Kind]int
	byKey map[storeKey]*list.Element
	log   *journal.Journal // nil: in memory only
}

type storeKey struct {
	kind Kind
	key  string
}

// NewStore makes a store in memory with the default TTL.
func NewStore() Store { return newStore(StoreOptions{TTL: RememberedFor}) }

// OpenStore makes a store and reads the journal of an earlier process. If another process uses the
// folder, the error wraps store.ErrLocked of package models/store.
func OpenStore(o StoreOptions) (Store, error) {
	s := newStore(o)
	if o.Folder == "" {
		return s, nil
	}
	var err error
	if s.log, err = journal.Open(filepath.Join(o.Folder, journalName), s.take,
		s.lines); err != nil {
		return nil, fmt.Errorf("read the stored turns and responses: %w", err)
	}
	return s, nil
}

func newStore(o StoreOptions) *memoryStore {
	if o.Bounds == nil {
		o.Bounds = bounds
	}
	s := &memoryStore{o: o, now: time.Now, byKey: map[storeKey]*list.Element{},
		bytes: map[Kind]int{}, order: map[Kind]*list.List{}}
	for kind := range o.Bounds {
		s.order[kind] = list.New()
	}
	return s
}

func (s *memoryStore) Put(r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Used = s.now()
	if s.add(&r) {
		s.write(r)
	}
}

func (s *memoryStore) Get(kind Kind, key string) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[storeKey{kind, key}]
	if !ok {
		return Record{}, false
	}
	r := e.Value.(*Record)
	if s.expired(r) {
		s.drop(e)
		return Record{}, false
	}
	r.Used = s.now()
	s.order[kind].MoveToFront(e)
	return *r, true
}

func (s *memoryStore) List(kind Kind) (records []Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.order[kind].Front(); e != nil && !s.expired(e.Value.(*Record)); e = e.Next() {
		records = append(records, *e.Value.(*Record))
	}
	return records
}

func (s *memoryStore) Delete(kind Kind, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[storeKey{kind, key}]
	if ok = ok && e.Value.(*Record).Key == key; ok {
		s.drop(e)
		s.write(Record{Kind: kind, Key: key})
	}
	return ok
}

func (s *memoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// add adds r and drops records that are too many or too old. The caller holds s.mu, or nobody else
// has s yet.
func (s *memoryStore) add(r *Record) bool {
	bound, order := s.o.Bounds[r.Kind], s.order[r.Kind]
	if order == nil || len(r.Value) > bound.Bytes {
		return false
	}
	if e, ok := s.byKey[storeKey{r.Kind, r.Key}]; ok {
		s.drop(e)
	}
	e := order.PushFront(r)
	for _, key := range append(r.Also, r.Key) {
		s.byKey[storeKey{r.Kind, key}] = e
	}
	s.bytes[r.Kind] += len(r.Value)
	for s.bytes[r.Kind] > bound.Bytes || bound.Count > 0 && order.Len() > bound.Count {
		s.drop(order.Back())
	}
	for e := order.Back(); e != nil && s.expired(e.Value.(*Record)); e = order.Back() {
		s.drop(e)
	}
	return true
}

func (s *memoryStore) drop(e *list.Element) {
	r := e.Value.(*Record)
	s.order[r.Kind].Remove(e)
	for _, key := range append(r.Also, r.Key) {
		if k := (storeKey{r.Kind, key}); s.byKey[k] == e {
			delete(s.byKey, k)
		}
	}
	s.bytes[r.Kind] -= len(r.Value)
}

func (s *memoryStore) expired(r *Record) bool { return s.now().Sub(r.Used) > s.o.TTL }

// write appends r to the journal. A record without a value means that its key was deleted.
func (s *memoryStore) write(r Record) {
	if s.log != nil {
		s.log.Append(line(r), s.lines)
	}
}

// take adds a record from a line of the journal. It returns false if the line is not a record.
func (s *memoryStore) take(text []byte) bool {
	var r Record
	if json.Unmarshal(text, &r) != nil {
		return false
	}
	if e, ok := s.byKey[storeKey{r.Kind, r.Key}]; ok {
		s.drop(e)
	}
	if r.Value != nil && !s.expired(&r) && !r.Used.After(s.now()) {
		s.add(&r)
	}
	return true
}

// lines yields all records as lines of the journal, of each kind the least recently used first. The
// caller holds s.mu, or nobody else has s yet.
func (s *memoryStore) lines(yield func([]byte) bool) {
	for _, order := range s.order {
		for e := order.Back(); e != nil; e = e.Prev() {
			if !yield(line(*e.Value.(*Record))) {
				return
			}
		}
	}
}

func line(r Record) []byte {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // strings, JSON and a time of this century
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

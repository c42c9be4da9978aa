// The store of what must be found again: the tokens of sampled turns and the stored responses.
// Conversations of the chat and responses that run in the background fit the same interface.
//
// The records live in memory and, where there is a folder, in a journal that a later process reads.
// What must stay true: each kind is bounded by a count, by bytes and by age, so a server that runs
// for weeks does not grow; the least recently used record goes first; a deleted record does not
// come back; a disk that refuses a record costs what outlives the process and nothing else.

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
	// Put keeps r in place of an earlier record with its kind and key.
	Put(r Record)
	// Get finds a record by its key or by one of its other keys, and counts as a use of it.
	Get(kind Kind, key string) (Record, bool)
	// List has the records of a kind, the most recently used first. It does not count as a use.
	List(kind Kind) []Record
	// Delete removes the record with this key and tells whether there was one.
	Delete(kind Kind, key string) bool
	// Close ends what is written to disk. Records that are put later are in memory alone.
	Close() error
}

// Kind says what a record is. Keys of different kinds are independent.
type Kind string

const (
	KindTurn     Kind = "turn"     // what the model sampled in a turn
	KindResponse Kind = "response" // an answer of /v1/responses
)

// Record is one thing that is kept.
type Record struct {
	Kind  Kind
	Key   string
	Also  []string        `json:",omitempty"` // other keys that find it
	Value json.RawMessage `json:",omitempty"`
	Used  time.Time       `json:",omitzero"` // the store sets it
}

// Bound is how much of one kind is kept.
type Bound struct {
	Count int // records; 0: any number
	Bytes int // of their values
}

var bounds = map[Kind]Bound{
	KindTurn:     {Bytes: 24 << 20}, // about four million tokens
	KindResponse: {Bytes: 256 << 20, Count: 4096},
}

// StoreOptions say what a store keeps, and where.
type StoreOptions struct {
	Folder string         // for the journal, made if it is not there; "": in memory alone
	TTL    time.Duration  // how long a record is kept after it was last used
	Bounds map[Kind]Bound // nil: those of this file
}

// RememberedFor is how long records are kept after they were last used, where nothing else is said.
const RememberedFor = 24 * time.Hour

const journalName = "kept.log"

type memoryStore struct {
	o   StoreOptions
	now func() time.Time

	mu    sync.Mutex
	order map[Kind]*list.List // of *Record, most recently used first
	bytes map[Kind]int
	byKey map[storeKey]*list.Element
	log   *journal.Journal // nil: in memory alone
}

type storeKey struct {
	kind Kind
	key  string
}

// NewStore keeps records in memory for the usual time.
func NewStore() Store { return newStore(StoreOptions{TTL: RememberedFor}) }

// OpenStore makes a store and reads what an earlier process left in its folder. The error wraps
// store.ErrLocked of package models/store where another process has the folder.
func OpenStore(o StoreOptions) (Store, error) {
	s := newStore(o)
	if o.Folder == "" {
		return s, nil
	}
	var err error
	if s.log, err = journal.Open(filepath.Join(o.Folder, journalName), s.take,
		s.lines); err != nil {
		return nil, fmt.Errorf("read the turns and responses of earlier: %w", err)
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

// add takes r in and drops what is too much or too old. s.mu is held, or nobody else has s yet.
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

// write appends r to the journal; one without a value says that its key was deleted.
func (s *memoryStore) write(r Record) {
	if s.log != nil {
		s.log.Append(line(r), s.lines)
	}
}

// take takes in a line that an earlier process wrote. It returns false where that is none.
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

// lines yields all records as the journal has them, of each kind the least recently used first.
// s.mu is held, or nobody else has s yet.
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

// Package records stores the tokens of sampled turns, stored responses and other records of
// conversations.
//
// There are two: one in memory, and one in a file that several processes use at once and that
// outlives them. What must stay true: each kind of record is bounded by count, bytes and age, so a
// server that runs for weeks does not grow; an owner beyond its share loses its least recently used
// record, never another's; a deleted record does not come back; a record that the disk refuses is
// kept in memory, logged and counted; no other process writes between a change's reads and its
// writes.
package records

import (
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/quota"
)

// Store keeps records. It is safe for concurrent use.
type Store interface {
	// Put stores r and replaces an earlier record with the same kind and key. It fails only with
	// ErrTooLarge and ErrFull.
	Put(r Record) error
	// Get finds a record by its key or by one of its other keys, and counts as a use of it.
	Get(kind Kind, key string) (Record, bool)
	// List returns the records of a kind, most recently used first. It does not count as a use.
	List(kind Kind) []Record
	// Delete removes the record with this key and tells whether it existed. If the disk refuses the
	// deletion it fails, and the record remains.
	Delete(kind Kind, key string) (bool, error)
	// Change writes all that work puts and deletes, or nothing if work fails. No other change is
	// written in between. If the disk refuses the change, its puts are kept in memory; a change
	// that only deletes, or puts a file or batch, fails. work must use the store through c alone.
	Change(work func(c *Change) error) error
	// Unsaved tells why a record would be lost with this process; nil: it is on disk.
	Unsaved(kind Kind, key string) error
	// Refused counts the records that the disk has refused. They stay in memory, and are written
	// after the next successful write, or when the store is closed.
	Refused() int64
	Close() error
}

// Kind is the kind of a record. Keys of different kinds are independent.
type Kind string

const (
	KindTurn         Kind = "turn"         // sampled tokens of a turn
	KindResponse     Kind = "response"     // an answer of /v1/responses
	KindRunning      Kind = "running"      // a response in progress, and its process
	KindConversation Kind = "conversation" // one of /v1/conversations
	KindChat         Kind = "chat"         // a session of ossrun chat
	KindUsage        Kind = "usage"        // a named key's usage of one day
	KindFile         Kind = "file"         // one of /v1/files
	KindContent      Kind = "content"      // of a file or completion; need not be JSON
	KindBatch        Kind = "batch"        // one of /v1/batches
	KindCompletion   Kind = "completion"   // an answer of /v1/chat/completions
)

type Record struct {
	Kind  Kind
	Key   string
	Also  []string // further keys
	Value json.RawMessage
	Used  time.Time // the store sets it
	// InMemory keeps the value off the disk: it is lost with the process.
	InMemory bool
}

// ErrTooLarge is wrapped by the error for a record that exceeds the bound of its kind.
var ErrTooLarge = errors.New("it is too large to be stored")

// ErrFull is wrapped by the error for a record that has no room besides other owners' records.
var ErrFull = errors.New("the records of other clients fill the store")

// ErrDiskFull is why a full disk refuses a change.
var ErrDiskFull = errors.New("the disk is full")

// Change is a transaction of Store.Change.
type Change struct {
	owner     string // whose records it changes
	ownerOnly bool   // other owners' records are hidden
	bounds    map[Kind]Bound
	get       func(Kind, string) (Record, bool)
	ops       []edit
}

// edit is a record that is put or, if gone is set, deleted.
type edit struct {
	Record
	deleted bool
}

// Get finds a record by its key and sees the change's own edits.
func (c *Change) Get(kind Kind, key string) (Record, bool) {
	r, ok := c.find(kind, OwnedKey(c.owner, key))
	ok = ok && (!c.ownerOnly || isOwner(c.owner, r.Key))
	r.Key = key
	return r, ok
}

// find is Get for a key of the store itself.
func (c *Change) find(kind Kind, key string) (Record, bool) {
	for _, o := range slices.Backward(c.ops) {
		if o.Kind == kind && o.Key == key {
			return o.Record, !o.deleted
		}
	}
	r, ok := c.get(kind, key)
	return r, ok && r.Key == key
}

// Put stores r and replaces the record with this key.
func (c *Change) Put(r Record) error {
	if limit := c.bounds[r.Kind].Bytes; len(r.Value) > limit || limit == 0 {
		return fmt.Errorf("%w: it has %d MB, and %d MB is the most", ErrTooLarge,
			(len(r.Value)+999_999)/1e6, limit/1e6)
	}
	c.ops = append(c.ops, edit{Record: toStored(c.owner, r)})
	return nil
}

// Delete removes the record with this key and tells whether it existed.
func (c *Change) Delete(kind Kind, key string) bool {
	_, ok := c.Get(kind, key)
	if ok {
		c.ops = append(c.ops, edit{Record{Kind: kind, Key: OwnedKey(c.owner, key)}, true})
	}
	return ok
}

// put and remove are changes of one record.
func put(s Store, r Record) error {
	return s.Change(func(c *Change) error { return c.Put(r) })
}

func remove(s Store, kind Kind, key string) (ok bool, err error) {
	err = s.Change(func(c *Change) error {
		ok = c.Delete(kind, key)
		return nil
	})
	return ok && err == nil, err
}

// Bound limits the stored records of one kind. An owner alone may have all of it; see quota.
type Bound struct {
	Count   int           // records; 0: any number
	Bytes   int           // of all values
	TTL     time.Duration // since a record was last used; 0: that of the options
	Forever bool          // records never expire
}

// storedFor is how long files, batches and completions are kept, as at OpenAI: who begins a batch
// on a Friday finds it on Monday. Options that keep nothing do not keep these.
const storedFor = 30 * 24 * time.Hour

type amount struct{ records, bytes int }

func (a amount) plus(b amount) amount  { return amount{a.records + b.records, a.bytes + b.bytes} }
func (a amount) minus(b amount) amount { return amount{a.records - b.records, a.bytes - b.bytes} }

// allows tells whether an owner may have so much, where all owners together have total.
func (b Bound) allows(share, total amount) bool {
	fits := func(limit, share, total int) bool {
		return quota.Fits(int64(share), quota.Room(int64(limit))-int64(total))
	}
	return fits(b.Bytes, share.bytes, total.bytes) &&
		(b.Count == 0 || fits(b.Count, share.records, total.records))
}

// full is the error for a record that the bound does not allow its owner.
func full(r Record) error {
	return fmt.Errorf("%w: %d KB do not fit", ErrFull, len(r.Value)/1000+1)
}

var bounds = map[Kind]Bound{
	KindTurn:         {Bytes: 24e6}, // about four million tokens
	KindResponse:     {Bytes: 256e6, Count: 10_000},
	KindRunning:      {Bytes: 4e6},
	KindConversation: {Bytes: 64e6, Count: 10_000},
	KindChat:         {Bytes: 256e6, Forever: true},
	KindUsage:        {Bytes: 16e6, TTL: 400 * 24 * time.Hour},
	KindFile:         {Bytes: 16e6, Count: 10_000, TTL: storedFor},
	KindContent:      {Bytes: 256e6, TTL: storedFor},
	KindBatch:        {Bytes: 16e6, Count: 10_000, TTL: storedFor},
	KindCompletion:   {Bytes: 64e6, Count: 10_000, TTL: storedFor},
}

type Options struct {
	File   string         // created if missing; "": in memory only
	TTL    time.Duration  // how long a record is kept after its last use
	Bounds map[Kind]Bound // nil: the defaults in this file
	Notify func(string)   // receives messages about damage and refusals; may be nil
}

const RememberedFor = 24 * time.Hour

// NewStore makes a store in memory with the default TTL.
func NewStore() Store { return newMemoryStore(Options{TTL: RememberedFor}.withDefaults()) }

// Open opens the store in a file, or one in memory without a file. A damaged file is moved
// aside and its readable records are copied to a new one.
func Open(o Options) (Store, error) {
	if o = o.withDefaults(); o.File == "" {
		return newMemoryStore(o), nil
	}
	return openSteps(o, steps)
}

func (o Options) withDefaults() Options {
	if o.Bounds == nil {
		o.Bounds = bounds
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	return o
}

// oldest is the time before which a record of this kind is too old.
func (o Options) oldest(kind Kind, now time.Time) time.Time {
	b := o.Bounds[kind]
	switch {
	case b.Forever:
		return time.Time{}
	case b.TTL > 0 && (o.TTL > 0 || kind == KindUsage):
		return now.Add(-b.TTL)
	}
	return now.Add(-o.TTL)
}

type memoryStore struct {
	o   Options
	now func() time.Time

	changing sync.Mutex // share while records are written

	mu     sync.Mutex
	order  map[Kind]*list.List // of *Record, most recently used first
	total  map[Kind]amount
	owners map[storeKey]amount // by kind and owner
	byKey  map[storeKey]*list.Element
}

type storeKey struct {
	kind Kind
	key  string
}

func newMemoryStore(o Options) *memoryStore {
	s := &memoryStore{o: o, now: time.Now, byKey: map[storeKey]*list.Element{},
		total: map[Kind]amount{}, owners: map[storeKey]amount{}, order: map[Kind]*list.List{}}
	for kind := range o.Bounds {
		s.order[kind] = list.New()
	}
	return s
}

func (s *memoryStore) Put(r Record) error { return put(s, r) }

func (s *memoryStore) Delete(kind Kind, key string) (bool, error) { return remove(s, kind, key) }

func (s *memoryStore) Change(work func(c *Change) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	c := &Change{bounds: s.o.Bounds, get: s.Get}
	if err := work(c); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range c.ops { // nothing is changed if one cannot be
		share, total := s.amounts(o.Record)
		single := amount{1, len(o.Value)}
		if !o.deleted && !s.o.Bounds[o.Kind].allows(single, total.minus(share).plus(single)) {
			return full(o.Record)
		}
	}
	for _, o := range c.ops {
		if o.deleted {
			s.drop(s.byKey[storeKey{o.Kind, o.Key}])
		} else {
			s.put(o.Record)
		}
	}
	return nil
}

// put is called with s.mu share.
func (s *memoryStore) put(r Record) {
	r.Used = s.now()
	bound, order := s.o.Bounds[r.Kind], s.order[r.Kind]
	s.oldestOf(order)
	if e, ok := s.byKey[storeKey{r.Kind, r.Key}]; ok {
		s.drop(e)
	}
	e := order.PushFront(&r)
	for _, key := range append(r.Also, r.Key) {
		s.byKey[storeKey{r.Kind, key}] = e
	}
	s.count(&r, amount.plus)
	owner, _ := OwnerOf(r.Key)
	for oldest := order.Back(); oldest != nil && !bound.allows(s.amounts(r)); {
		last := oldest
		oldest = oldest.Prev()
		if isOwner(owner, last.Value.(*Record).Key) {
			s.drop(last)
		}
	}
}

// amounts are what a record's owner and what all owners have of its kind.
func (s *memoryStore) amounts(r Record) (share, total amount) {
	owner, _ := OwnerOf(r.Key)
	return s.owners[storeKey{r.Kind, owner}], s.total[r.Kind]
}

// count adds a record to the amounts, or subtracts it.
func (s *memoryStore) count(r *Record, op func(a, b amount) amount) {
	owner, _ := OwnerOf(r.Key)
	key, one := storeKey{r.Kind, owner}, amount{1, len(r.Value)}
	s.total[r.Kind] = op(s.total[r.Kind], one)
	if s.owners[key] = op(s.owners[key], one); s.owners[key].records == 0 {
		delete(s.owners, key)
	}
}

// oldestOf drops expired records of a kind and returns the least recently used one, nil if none
// remains.
func (s *memoryStore) oldestOf(order *list.List) *list.Element {
	e := order.Back()
	for ; e != nil && s.expired(e.Value.(*Record)); e = order.Back() {
		s.drop(e)
	}
	return e
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

// oldest is the least recently used record of any kind.
func (s *memoryStore) oldest() (r Record, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, order := range s.order {
		if e := s.oldestOf(order); e != nil && (!ok || e.Value.(*Record).Used.Before(r.Used)) {
			r, ok = *e.Value.(*Record), true
		}
	}
	return r, ok
}

func (s *memoryStore) Unsaved(Kind, string) error { return errors.New("there is no file for it") }
func (s *memoryStore) Refused() int64             { return 0 }
func (s *memoryStore) Close() error               { return nil }

// drop accepts nil for a missing record.
func (s *memoryStore) drop(e *list.Element) {
	if e == nil {
		return
	}
	r := e.Value.(*Record)
	s.order[r.Kind].Remove(e)
	for _, key := range append(r.Also, r.Key) {
		if k := (storeKey{r.Kind, key}); s.byKey[k] == e {
			delete(s.byKey, k)
		}
	}
	s.count(r, amount.minus)
}

func (s *memoryStore) expired(r *Record) bool {
	return r.Used.Before(s.o.oldest(r.Kind, s.now()))
}

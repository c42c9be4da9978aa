// The store in memory.

package session

import (
	"container/list"
	"sync"
	"time"
)

type memoryStore struct {
	o   StoreOptions
	now func() time.Time

	mu    sync.Mutex
	order map[Kind]*list.List // of *Record, most recently used first
	bytes map[Kind]int
	byKey map[storeKey]*list.Element
}

type storeKey struct {
	kind Kind
	key  string
}

func newMemoryStore(o StoreOptions) *memoryStore {
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
	bound, order := s.o.Bounds[r.Kind], s.order[r.Kind]
	if order == nil || len(r.Value) > bound.Bytes {
		return
	}
	if e, ok := s.byKey[storeKey{r.Kind, r.Key}]; ok {
		s.drop(e)
	}
	e := order.PushFront(&r)
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
	}
	return ok
}

// oldest is the record of any kind that was used least recently.
func (s *memoryStore) oldest() (r Record, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, order := range s.order {
		e := order.Back()
		for e != nil && s.expired(e.Value.(*Record)) {
			s.drop(e)
			e = order.Back()
		}
		if e != nil && (!ok || e.Value.(*Record).Used.Before(r.Used)) {
			r, ok = *e.Value.(*Record), true
		}
	}
	return r, ok
}

func (s *memoryStore) Refused() int64 { return 0 }
func (s *memoryStore) Close() error   { return nil }

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

func (s *memoryStore) expired(r *Record) bool {
	return r.Used.Before(s.o.oldest(r.Kind, s.now()))
}

// Pages that no disk may have: those of sequences whose client asked that nothing be stored, and
// those of a deleted record, which has their names for this.
//
// What must stay true: once Forget has returned, none of the pages is on the disk, and no copy of
// one in a pool or in the host's memory is written to it before another sequence has the page.
// Pages that another record has too are removed as well: they are computed again when needed.

package kv

import (
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/models/store"
)

// MarshalText makes names short in JSON.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.RawStdEncoding.AppendEncode(nil, h[:]), nil
}

func (h *Hash) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.DecodeString(string(text))
	copy(h[:], b)
	return err
}

// PageLog collects the names of the pages that the sequences of a record had. It is safe for
// concurrent use.
type PageLog struct {
	mu    sync.Mutex
	names map[Hash]bool
}

func (l *PageLog) Add(names []Hash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[Hash]bool{}
	}
	for _, h := range names {
		l.names[h] = true
	}
}

func (l *PageLog) Names() []Hash {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.names))
}

func (s *Spill) HasDisk() bool { return s.disk != nil }

// Join makes Forget call forget first, which marks the pages of a pool, until the pool leaves.
func (s *Spill) Join(pool *Pool, forget func([]Hash)) { s.pools.Store(pool, forget) }

func (s *Spill) Leave(pool *Pool) { s.pools.Delete(pool) }

// Forget removes pages from the disk, those on their way to it too.
func (s *Spill) Forget(names []Hash) {
	s.pools.Range(func(_, forget any) bool {
		forget.(func([]Hash))(names)
		return true
	})
	list := pagesOf(names)
	s.disking.Lock()
	defer s.disking.Unlock()
	s.mu.Lock()
	for _, name := range list {
		if e, ok := s.pages[name]; ok {
			e.Value.(*spilledPage).inMemory = true
		}
		delete(s.writing, name)
	}
	s.mu.Unlock() // Put waits for no disk
	if s.disk != nil {
		for _, name := range list {
			s.disk.drop(name)
		}
	}
}

func pagesOf(names []Hash) (list []pageName) {
	for _, h := range names {
		list = append(list, pageName{h, false}, pageName{h, true})
	}
	return list
}

// RemovePages removes pages from a folder in which no Spill of this process has them.
func RemovePages(folder string, names []Hash) error {
	var failed error
	for _, name := range pagesOf(names) {
		failed = errors.Join(failed,
			store.IgnoreMissing(os.Remove(filepath.Join(folder, name.file()))))
	}
	return failed
}

// Withhold marks pages: no disk may have what they hold.
func (p *Pool) Withhold(names []Hash) {
	for _, h := range names {
		if n := p.index[h]; n != nil {
			n.inMemory = true
		}
	}
}

// WithholdTable is Withhold for the pages that the sequence has computed, and for those that it
// will leave.
func (p *Pool) WithholdTable(t *Table) {
	t.inMemory = true
	for n := t.tail; n != nil; n = n.parent {
		n.inMemory = n.inMemory || n.maker == t.id
	}
}

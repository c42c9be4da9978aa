// A second memory for pages that the pool evicts from a device: host memory, then optionally a
// folder on disk.
//
// What must stay true: a page is restored complete or not at all; neither memory grows beyond its
// limit; Put never waits for a disk; deleted.go has what no disk may have. A lost page is computed
// again.

package kv

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
)

// SpillOptions bound a Spill. Both limits are bytes of pages.
type SpillOptions struct {
	HostBytes int64
	Folder    string // "" for none; created if missing
	DiskBytes int64  // of Folder
}

// Spill outlives schedulers: a model that is loaded again finds its pages. Its methods may be
// called from any goroutine.
type Spill struct {
	limit int64
	disk  *folder // nil for none

	mu      sync.Mutex
	bytes   int64
	order   *list.List // of *spilled, most recently used in front
	pages   map[pageName]*list.Element
	writing map[pageName][]byte // on the way to the disk
	queue   chan pageName
	written sync.WaitGroup
	closed  bool
	pools   sync.Map // of func([]Hash), see Join

	disking sync.Mutex // held while the disk changes; locked before mu
}

type pageName struct {
	prefix   Hash
	windowed bool
}

type spilledPage struct {
	name     pageName
	data     []byte
	inMemory bool
}

// queued is how many pages may be on the way to the disk; more are dropped.
const queued = 256

// ErrNotSpilled is returned for a page that is not kept, or no longer.
var ErrNotSpilled = errors.New("the page is not in the spill")

// OpenSpill starts with the pages in the folder.
func OpenSpill(o SpillOptions) (*Spill, error) {
	s := &Spill{limit: o.HostBytes, order: list.New(), pages: map[pageName]*list.Element{},
		writing: map[pageName][]byte{}}
	if o.Folder != "" && o.DiskBytes > 0 {
		var err error
		if s.disk, err = openFolder(o.Folder, o.DiskBytes); err != nil {
			return nil, fmt.Errorf("the folder for KV pages: %w", err)
		}
		s.queue = make(chan pageName, queued)
		s.written.Go(s.write)
	}
	return s, nil
}

// Has tells whether Get would find a page.
func (s *Spill) Has(prefix Hash, windowed bool) bool { return s.Keeps(prefix, windowed, true) }

// Keeps tells whether Put would change nothing.
func (s *Spill) Keeps(prefix Hash, windowed, inMemory bool) bool {
	name := pageName{prefix, windowed}
	s.mu.Lock()
	e, host := s.pages[name]
	host = host && (inMemory || !e.Value.(*spilledPage).inMemory)
	_, writing := s.writing[name]
	s.mu.Unlock()
	return host || writing || s.disk != nil && s.disk.has(name)
}

// Put keeps a copy of a page, inMemory: on no disk.
func (s *Spill) Put(prefix Hash, windowed, inMemory bool, page []byte) {
	name := pageName{prefix, windowed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if e, ok := s.pages[name]; ok {
		p := e.Value.(*spilledPage)
		p.inMemory = p.inMemory && inMemory
		s.order.MoveToFront(e)
		return
	}
	s.pages[name] = s.order.PushFront(&spilledPage{name, append([]byte(nil), page...), inMemory})
	s.bytes += int64(len(page))
	for s.bytes > s.limit {
		s.pushOut()
	}
}

// pushOut drops the least recently used page from host memory, and writes it to the disk if there
// is one that may have it. s.mu is held.
func (s *Spill) pushOut() {
	p := s.order.Remove(s.order.Back()).(*spilledPage)
	delete(s.pages, p.name)
	s.bytes -= int64(len(p.data))
	if s.disk == nil || p.inMemory || s.disk.has(p.name) {
		return
	}
	if _, ok := s.writing[p.name]; ok {
		return
	}
	select {
	case s.queue <- p.name:
		s.writing[p.name] = p.data
	default:
	}
}

// write is the goroutine that fills the disk.
func (s *Spill) write() {
	for name := range s.queue {
		s.disking.Lock()
		s.mu.Lock()
		data, ok := s.writing[name]
		s.mu.Unlock()
		if ok { // not forgotten meanwhile
			_ = s.disk.put(name, data) // if the disk is full, only this page is lost
		}
		s.mu.Lock()
		delete(s.writing, name)
		s.mu.Unlock()
		s.disking.Unlock()
	}
}

// Get fills page, which must be as long as the page given to Put.
func (s *Spill) Get(prefix Hash, windowed bool, page []byte) error {
	name := pageName{prefix, windowed}
	s.mu.Lock()
	data := s.writing[name]
	if e, ok := s.pages[name]; ok {
		s.order.MoveToFront(e)
		data = e.Value.(*spilledPage).data
	}
	s.mu.Unlock()
	switch {
	case data != nil && len(data) == len(page):
		copy(page, data)
		return nil
	case data == nil && s.disk != nil:
		return s.disk.get(name, page)
	}
	return ErrNotSpilled
}

func (s *Spill) Bytes() (host, disk int64) {
	s.mu.Lock()
	host = s.bytes
	s.mu.Unlock()
	if s.disk != nil {
		disk = s.disk.size()
	}
	return host, disk
}

// Close writes as much of host memory to the disk as the disk may take, and frees the memory.
// Schedulers that use the Spill must be closed before.
func (s *Spill) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	if s.disk != nil {
		close(s.queue)
		s.written.Wait()
		s.disking.Lock()
		defer s.disking.Unlock()
		// the most recently used last, so that it stays
		for e := s.order.Back(); e != nil; e = e.Prev() {
			p := e.Value.(*spilledPage)
			if p.inMemory {
				continue
			}
			if err := s.disk.put(p.name, p.data); err != nil {
				return fmt.Errorf("write KV pages: %w", err)
			}
		}
	}
	s.order.Init()
	clear(s.pages)
	s.bytes = 0
	return nil
}

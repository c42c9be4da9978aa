// The prefix cache as the scheduler uses it: whose prefixes may meet, and how pages are copied.

package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// pager is an engine whose pages can be read and written, as engine.Engine's can. Without it parts
// of pages are not shared and pages are not swapped out.
type pager interface {
	PageBytes() int64
	Cache() engine.Region
}

// restorePages is how many pages are brought back between two steps, at most: decodes go on
// meanwhile.
const restorePages = 64

func (s *Scheduler) keepPrefixes() {
	if s.o.NoPrefixCaching {
		return
	}
	s.root = kv.RootOf("ossrun pages 1", s.o.Model)
	keep := kv.Prefixes{Root: s.root, Field: engine.ReceptiveField(s.spec)}
	if _, ok := s.eng.(pager); ok {
		keep.Copy = s.copyPage
		if s.o.Spill != nil {
			keep.Evict = s.swapOut
		}
	}
	s.pool.KeepPrefixes(keep)
}

// copyPage goes through the host; a page is copied once a request at most.
func (s *Scheduler) copyPage(from, to int32) error {
	page := s.room(false)
	e := s.eng.(pager)
	if err := e.Cache().Read(int64(from)*e.PageBytes(), page); err != nil {
		return err
	}
	return e.Cache().Write(int64(to)*e.PageBytes(), page)
}

// room is for the contents of a page, a window page's twin included.
func (s *Scheduler) room(windowed bool) []byte {
	bytes := s.eng.(pager).PageBytes()
	if s.copying == nil {
		s.copying = make([]byte, bytes*int64(s.each))
	}
	if windowed {
		return s.copying
	}
	return s.copying[:bytes]
}

// parts calls do for each page of the pool behind a page and its part of contents.
func (s *Scheduler) parts(page int32, contents []byte, do func(at int64, part []byte) error) error {
	bytes := s.eng.(pager).PageBytes()
	if err := do(int64(page)*bytes, contents[:bytes]); err != nil || int64(len(contents)) == bytes {
		return err
	}
	return do(int64(s.pool.Twins()[page])*bytes, contents[bytes:])
}

// swapOut keeps a page's contents before the page is taken for something else.
func (s *Scheduler) swapOut(prefix kv.Hash, windowed bool, page int32) {
	contents := s.room(windowed)
	if s.o.Spill.Has(prefix, windowed) || s.parts(page, contents,
		s.eng.(pager).Cache().Read) != nil {
		return
	}
	s.o.Spill.Put(prefix, windowed, contents)
	s.counts.SwappedOut++
}

// swapIn is the way back.
func (s *Scheduler) swapIn(prefix kv.Hash, windowed bool, page int32) error {
	contents := s.room(windowed)
	if err := s.o.Spill.Get(prefix, windowed, contents); err != nil {
		return err
	}
	s.counts.SwappedIn++
	return s.parts(page, contents, s.eng.(pager).Cache().Write)
}

// restored brings back pages of q that were swapped out, and tells whether q need not wait for more
// of them. Reading a page is cheaper than computing its tokens wherever there is a Spill: that is
// what the plan gives one for.
func (s *Scheduler) restored(q *sequence) bool {
	if _, ok := s.eng.(pager); !ok || s.o.Spill == nil || s.o.NoPrefixCaching {
		return true
	}
	q.hashes = kv.Hashes(s.root, q.hashes, q.tokens)
	_, more := s.pool.Restore(q.tokens, q.hashes, len(q.tokens)-1, restorePages, s.o.Spill.Has,
		s.swapIn)
	return !more
}

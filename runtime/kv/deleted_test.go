package kv

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// filesOf are the pages of a folder, by their first byte.
func filesOf(t *testing.T, folder string) (numbers []byte) {
	t.Helper()
	for _, e := range hosttest.Must(os.ReadDir(folder))(t) {
		if name, ok := parseFile(e.Name()); ok { // others are being made
			numbers = append(numbers, name.prefix[0])
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// A deleted page is on no disk: wherever it is when it is deleted, and after the Spill has ended.
func TestDeletedPagesGoFromTheDisk(t *testing.T) {
	folder := t.TempDir()
	// the last two of 0 to 5 fit into host memory
	o := SpillOptions{HostBytes: 2000, Folder: folder, DiskBytes: 1 << 20}
	s := open(t, o)
	var told []Hash
	pool := NewPool(1, 1, 1)
	s.Join(pool, func(n []Hash) { told = append(told, n...) })
	for n := range byte(6) {
		s.Put(nameOf(n), n%2 == 0, false, pageOf(n))
	}
	hosttest.Until(t, "four are written", func() bool { return len(filesOf(t, folder)) == 4 })
	s.Forget([]Hash{nameOf(0), nameOf(1), nameOf(5), nameOf(77)})
	if is := filesOf(t, folder); !slices.Equal(is, []byte{2, 3}) {
		t.Errorf("files %d, after 0 and 1 were deleted", is)
	}
	if len(told) != 4 || !holds(t, s, 5, false) || holds(t, s, 1, false) {
		t.Errorf("pools forgot %v", told)
	}
	s.Leave(pool)
	if s.Forget([]Hash{nameOf(8)}); len(told) != 4 {
		t.Error("a pool that has left is still there")
	}
	s.Put(nameOf(5), false, true, pageOf(5)) // by another that stores nothing
	for n := range byte(3) {
		s.Put(nameOf(6+n), false, true, pageOf(6+n)) // the first does not fit
	}
	hosttest.Check(t, s.Close())
	if is := filesOf(t, folder); !slices.Equal(is, []byte{2, 3, 4}) {
		t.Errorf("files %d are left at the end", is)
	}
	// a process without the folder
	hosttest.Check(t, RemovePages(folder, []Hash{nameOf(3), nameOf(9)}))
	if is := filesOf(t, folder); !slices.Equal(is, []byte{2, 4}) {
		t.Errorf("files %d, after 3 was removed", is)
	}
}

// Pages that another sequence has later are written again.
func TestDeletedPagesOfAnotherComeBack(t *testing.T) {
	folder := t.TempDir()
	s := open(t, SpillOptions{HostBytes: 5000, Folder: folder, DiskBytes: 1 << 20})
	s.Put(nameOf(1), false, true, pageOf(1))
	s.Put(nameOf(2), false, false, pageOf(2))
	s.Forget([]Hash{nameOf(2)})
	for n := range byte(3) {
		if s.Keeps(nameOf(n), false, false) || s.Keeps(nameOf(n), false, true) != (n > 0) {
			t.Errorf("page %d: it is kept for a disk", n)
		}
	}
	s.Put(nameOf(2), false, false, pageOf(2))
	hosttest.Check(t, s.Close())
	if is := filesOf(t, folder); !slices.Equal(is, []byte{2}) {
		t.Errorf("files %d", is)
	}
}

// Put waits for no disk while pages are removed from it.
func TestDeletingHoldsUpNoPage(t *testing.T) {
	s := open(t, SpillOptions{HostBytes: 5000, Folder: t.TempDir(), DiskBytes: 1 << 20})
	s.Put(nameOf(1), false, false, pageOf(1))
	s.disk.mu.Lock() // a slow one
	unlock := sync.OnceFunc(s.disk.mu.Unlock)
	defer unlock()
	forgotten := make(chan struct{})
	go func() {
		s.Forget([]Hash{nameOf(1)})
		close(forgotten)
	}()
	hosttest.Until(t, "the page is marked, and others are put", func() bool {
		if !s.mu.TryLock() {
			return false
		}
		defer s.mu.Unlock()
		return s.pages[pageName{nameOf(1), false}].Value.(*spilledPage).inMemory
	})
	unlock()
	<-forgotten
	hosttest.Check(t, s.Close())
}

// However writing and deleting interleave, no deleted page is left.
func TestDeletedWhileWritten(t *testing.T) {
	folder := t.TempDir()
	s := open(t, SpillOptions{HostBytes: 1000, Folder: folder, DiskBytes: 1 << 20})
	var all sync.WaitGroup
	for n := range byte(100) {
		all.Go(func() {
			s.Put(nameOf(n), false, false, pageOf(n))
			s.Put(nameOf(n+100), false, false, pageOf(n+100))
			if s.Forget([]Hash{nameOf(n)}); slices.Contains(filesOf(t, folder), n) {
				t.Errorf("page %d is on the disk", n)
			}
		})
	}
	all.Wait()
	hosttest.Check(t, s.Close())
	for _, n := range filesOf(t, folder) {
		if n < 100 {
			t.Errorf("page %d is on the disk", n)
		}
	}
}

// Sequences that no disk may have keep only pages to themselves that no other has.
func TestPagesThatNoDiskMayHave(t *testing.T) {
	evicted := func(do func(p *Pool, sequence func(inMemory bool, tokens []int32) *Table)) string {
		p := NewPool(64, 40, 1)
		spilled, list := map[pageName]bool{}, []string{}
		p.KeepPrefixes(Prefixes{Root: RootOf("r"), Evict: func(h Hash, windowed, inMemory bool,
			_ int32) {
			spilled[pageName{h, windowed}] = true
			if !windowed && !inMemory {
				list = append(list, string(h[:]))
			}
		}})
		do(p, func(inMemory bool, tokens []int32) *Table {
			table := &Table{}
			table.InMemory(inMemory)
			hashes := Hashes(RootOf("r"), nil, tokens)
			p.Restore(Hash{}, tokens, hashes, len(tokens), 9,
				func(h Hash, windowed bool) bool { return spilled[pageName{h, windowed}] },
				func(Hash, bool, int32) error { return nil })
			p.Adopt(table, tokens, hashes, len(tokens)-1)
			if !p.Reserve(table, len(tokens)) {
				t.Fatal("no pages")
			}
			p.Commit(table, tokens, hashes, len(tokens))
			return table
		})
		p.Flush()
		return strings.Join(slices.Sorted(slices.Values(list)), "")
	}
	long := make([]int32, 4*PageTokens+5)
	for i := range long {
		long[i] = int32(i)
	}
	short := long[:2*PageTokens+3]
	names := func(tokens []int32) string {
		var list []string
		for _, h := range Hashes(RootOf("r"), nil, tokens) {
			list = append(list, string(h[:]))
		}
		return strings.Join(slices.Sorted(slices.Values(list)), "")
	}
	type begin = func(bool, []int32) *Table
	for name, c := range map[string]struct {
		do   func(p *Pool, sequence begin)
		want string
	}{
		"stored":     {func(p *Pool, q begin) { p.Release(q(false, long), long) }, names(long)},
		"not stored": {func(p *Pool, q begin) { p.Release(q(true, long), long) }, ""},
		"not stored, evicted, used twice": {func(p *Pool, q begin) {
			p.Release(q(true, long), long)
			p.Flush()
			p.Release(q(true, long), long)
		}, ""},
		"after one that is stored": {func(p *Pool, q begin) {
			p.Release(q(false, short), short)
			p.Release(q(true, long), long)
		}, names(short)},
		"before one that is stored": {func(p *Pool, q begin) {
			p.Release(q(true, long), long)
			p.Release(q(false, short), short)
		}, names(short)},
		"deleted": {func(p *Pool, q begin) {
			p.Release(q(false, long), long)
			p.Withhold(Hashes(RootOf("r"), nil, long))
		}, ""},
		"cancelled": {func(p *Pool, q begin) {
			p.Release(q(false, short), short)
			table := q(false, long[:3*PageTokens+1])
			p.Reserve(table, len(long))
			p.WithholdTable(table)
			p.Release(table, long) // one page more is whole
		}, names(short)},
		"computed by both": {func(p *Pool, q begin) {
			late := &Table{}
			p.Reserve(late, len(short))
			p.Release(q(true, long), long)
			p.Commit(late, short, nil, len(short))
			p.Release(late, short)
		}, names(short)},
		"with a copy that fails": {func(p *Pool, q begin) {
			p.keep.Copy = func(int32, int32) error { return errors.New("no") }
			other := append(slices.Clone(long[:PageTokens+7]), long[:PageTokens]...)
			p.Release(q(false, other), other)
			p.Release(q(true, long), long)
		}, names(append(slices.Clone(long[:PageTokens+7]), long[:PageTokens]...))},
	} {
		if is := evicted(c.do); is != c.want {
			t.Errorf("%s: %d bytes of names may be on a disk, not %d", name, len(is), len(c.want))
		}
	}
}

func TestNamesInARecord(t *testing.T) {
	var log PageLog
	log.Add([]Hash{{1}, {2}})
	log.Add([]Hash{{1}, {2}, {3}})
	text := hosttest.Must(json.Marshal(struct{ Pages []Hash }{log.Names()}))(t)
	var back struct{ Pages []Hash }
	hosttest.Check(t, json.Unmarshal(text, &back))
	if len(back.Pages) != 3 || !slices.Contains(back.Pages, Hash{3}) || len(text) > 90 {
		t.Errorf("%s", text)
	}
	if err := RemovePages(filepath.Join(t.TempDir(), "none"), back.Pages); err != nil {
		t.Error(err)
	}
}

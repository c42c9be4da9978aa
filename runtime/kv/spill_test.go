package kv

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func pageOf(n byte) []byte { return bytes.Repeat([]byte{n}, 1000) }

func nameOf(n byte) Hash { return Hash{n} }

// open makes a Spill that the test closes.
func open(t *testing.T, o SpillOptions) *Spill {
	t.Helper()
	s := hosttest.Must(OpenSpill(o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func holds(t *testing.T, s *Spill, n byte, windowed bool) bool {
	t.Helper()
	page := make([]byte, 1000)
	err := s.Get(nameOf(n), windowed, page)
	if (err == nil) != s.Has(nameOf(n), windowed) {
		t.Fatalf("page %d: Get says %v, Has %v", n, err, err != nil)
	}
	if err == nil && !bytes.Equal(page, pageOf(n)) {
		t.Fatalf("page %d holds something else", n)
	}
	return err == nil
}

func TestSpillInHostMemoryIsBounded(t *testing.T) {
	s := open(t, SpillOptions{HostBytes: 3000})
	for n := range byte(5) {
		s.Put(nameOf(n), n%2 == 0, false, pageOf(n))
		if n == 2 && !holds(t, s, 0, true) { // used: 1 is older now
			t.Fatal("page 0 is gone")
		}
	}
	for n, want := range []bool{false, false, false, true, true} {
		if n == 0 {
			want = true // 0, 3 and 4 are the last used
		}
		if got := holds(t, s, byte(n), n%2 == 0); got != want {
			t.Errorf("page %d: %v", n, got)
		}
	}
	if holds(t, s, 4, false) {
		t.Error("a window page was taken for a full one")
	}
	if host, disk := s.Bytes(); host != 3000 || disk != 0 {
		t.Errorf("%d %d bytes", host, disk)
	}
	if s.Get(nameOf(4), true, make([]byte, 7)) == nil {
		t.Error("a page of another size was given out")
	}
}

func TestSpillOnDiskOutlivesTheProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "kv")
	o := SpillOptions{HostBytes: 1000, Folder: folder, DiskBytes: 3 * int64(fileHeader+1000)}
	s := open(t, o)
	for n := range byte(6) {
		s.Put(nameOf(n), false, false, pageOf(n))
	}
	hosttest.Check(t, s.Close())
	for range 2 { // closed twice is closed
		hosttest.Check(t, s.Close())
	}
	hosttest.Check(t, os.WriteFile(filepath.Join(folder, "x.part"), pageOf(1), 0o600))
	s = open(t, o)
	for n := range byte(6) {
		if got := holds(t, s, n, false); got != (n >= 3) {
			t.Errorf("page %d: %v", n, got)
		}
	}
	if _, disk := s.Bytes(); disk > o.DiskBytes {
		t.Errorf("%d bytes on disk, %d allowed", disk, o.DiskBytes)
	}
	if _, err := os.Stat(filepath.Join(folder, "x.part")); !os.IsNotExist(err) {
		t.Error("what a killed process left is still there")
	}
	hosttest.Check(t, s.Close())
	// a smaller limit is kept at once
	o.DiskBytes = int64(fileHeader + 1000)
	s = open(t, o)
	if _, disk := s.Bytes(); disk > o.DiskBytes {
		t.Errorf("%d bytes on disk, %d allowed", disk, o.DiskBytes)
	}
}

// Pages of an earlier release are found; those of a later one are no page of ours, nor overwritten.
func TestPagesOfOtherReleases(t *testing.T) {
	folder := t.TempDir()
	hosttest.Check(t, os.CopyFS(folder, os.DirFS("../../testdata/versions/kv-1")))
	newer := filepath.Join(folder, pageName{nameOf(9), false}.file())
	text := append([]byte("osskv2\x00\x00"), pageOf(9)...)
	hosttest.Check(t, os.WriteFile(newer, text, 0o600))
	s := open(t, SpillOptions{Folder: folder, DiskBytes: 1 << 20})
	if !holds(t, s, 7, false) || !holds(t, s, 8, true) {
		t.Error("the earlier release's pages are not there")
	}
	if s.Get(nameOf(9), false, make([]byte, 1000)) == nil {
		t.Error("the later release's page was given out")
	}
	s.Put(nameOf(9), false, false, pageOf(9))
	hosttest.Check(t, s.Close())
	if is, err := os.ReadFile(newer); err != nil || !bytes.Equal(is, text) {
		t.Errorf("the later release's page is another: %v", err)
	}
}

func TestSpillFromManySides(t *testing.T) {
	s := open(t, SpillOptions{HostBytes: 5000, Folder: t.TempDir(), DiskBytes: 20000})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			page := make([]byte, 1000)
			for i := range 200 {
				n := byte((i*7 + g) % 40)
				s.Put(nameOf(n), false, false, pageOf(n))
				if s.Get(nameOf(byte(i%40)), false, page) == nil && !bytes.Equal(page,
					pageOf(byte(i%40))) {
					t.Error("a page holds something else")
				}
			}
		})
	}
	all.Wait()
	s.Close()
	s.Put(nameOf(1), false, false, pageOf(1)) // after Close: nothing
	if host, disk := s.Bytes(); host != 0 || disk > 20000 {
		t.Errorf("%d %d bytes", host, disk)
	}
}

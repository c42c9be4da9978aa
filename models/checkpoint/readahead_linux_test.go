package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/models/mapping"
	"golang.org/x/sys/unix"
)

// TestReadAhead: pages that were dropped are missing, and are there after ReadAhead; then there is
// nothing to read.
func TestReadAhead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, singleFile)
	const size = 40<<20 + 123
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	count := func() (n int64) {
		data, unmap, err := mapping.File(f, size)
		if err != nil {
			t.Fatal(err)
		}
		defer unmap()
		for _, s := range missing(spansOf(f, data, nil, aheadBytes)) {
			n += int64(len(s.data))
		}
		return n
	}
	drop, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer drop.Close()
	if err := drop.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(drop.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	before := count()
	if before == 0 {
		t.Skip("the file system keeps what it is told to drop (tmpfs does)")
	}
	found := Found{Name: "it", Path: folder, Bytes: size}
	if err := found.ReadAhead(t.Context(), size-1, Replaced{}, nil); err != nil ||
		count() != before {
		t.Errorf("weights that do not fit into memory: %v, %d bytes are missing, before %d", err,
			count(), before)
	}
	var last, total int64
	if err := found.ReadAhead(t.Context(), size, Replaced{}, func(d, n int64) {
		last, total = d,
			n
	}); err != nil {
		t.Fatal(err)
	}
	if left := count(); left != 0 || last != before || total != before {
		t.Errorf("%d bytes are missing after it, %d of %d were reported, %d were missing", left,
			last, total, before)
	}
	total = 0
	if err := found.ReadAhead(t.Context(), size, Replaced{},
		func(_, n int64) { total = n }); err != nil || total != 0 {
		t.Errorf("%v, %d bytes are read again", err, total)
	}
}

package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"golang.org/x/sys/unix"
)

// TestReadAhead: dropped pages are missing, and present after ReadAhead; then nothing is left to
// read.
func TestReadAhead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, singleFile)
	const size = 40<<20 + 123
	hosttest.Check(t, os.WriteFile(path, make([]byte, size), 0o644))
	f := hosttest.Must(os.Open(path))(t)
	defer f.Close()
	count := func() (n int64) {
		data, unmap, err := mapping.File(f, size)
		hosttest.Check(t, err)
		defer unmap()
		for _, s := range missing(spansOf(f, data, nil, aheadBytes)) {
			n += int64(len(s.data))
		}
		return n
	}
	drop := hosttest.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer drop.Close()
	hosttest.Check(t, drop.Sync())
	hosttest.Check(t, unix.Fadvise(int(drop.Fd()), 0, 0, unix.FADV_DONTNEED))
	before := count()
	if before == 0 {
		t.Skip("the file system keeps what it is told to drop (tmpfs does)")
	}
	found := Model{Name: "it", Path: folder, Bytes: size}
	if err := found.ReadAhead(t.Context(), size-1, Replaced{}, nil); err != nil ||
		count() != before {
		t.Errorf("weights that do not fit into memory: %v, %d bytes are missing, before %d", err,
			count(), before)
	}
	var last, total int64
	hosttest.Check(t, found.ReadAhead(t.Context(), size, Replaced{}, func(d, n int64) {
		last, total = d,
			n
	}))
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

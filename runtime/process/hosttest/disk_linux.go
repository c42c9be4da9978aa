// A file system of a known size, to fill: in memory, which only root can mount.
//
// What must stay true: it is unmounted when the test ends, whatever the test left on it.

package hosttest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// SmallDisk is a folder with room for 3 MB.
func SmallDisk(t *testing.T) string {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("a file system of a known size cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// Fill leaves no room on a small disk but that of the file it returns.
func Fill(t *testing.T, disk string) (filler string) {
	t.Helper()
	filler = filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	return filler
}

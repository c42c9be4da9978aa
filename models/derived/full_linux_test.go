package derived_test

// A full disk: a small file system in memory, which only root can mount.

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestFullDisk: an error and no file; with room, the file.
func TestFullDisk(t *testing.T) {
	for _, m := range members(t) {
		t.Run(m.name, func(t *testing.T) {
			disk, roomy := t.TempDir(), t.TempDir()
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
				t.Skipf("a file system of a known size cannot be mounted here: %v", err)
			}
			t.Cleanup(func() { hosttest.Check(t, syscall.Unmount(disk, 0)) })
			err := derived.Write(filepath.Join(disk, "file"), func(f *derived.File) error {
				_, err := f.WriteAt(make([]byte, 1<<20), 0)
				return err
			})
			if left, _ := os.ReadDir(disk); !errors.Is(err, syscall.ENOSPC) || len(left) > 0 {
				t.Errorf("%v, %v", err, left)
			}
			err = m.make(disk)
			left, _ := filepath.Glob(filepath.Join(disk, m.folder, m.pattern))
			if err == nil || len(left)+len(m.temps(t, disk)) > 0 {
				t.Errorf("%v, %q, %q", err, left, m.temps(t, disk))
			}
			hosttest.Check(t, syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=1g"))
			hosttest.Check(t, m.make(disk))
			hosttest.Check(t, m.make(roomy))
			_, have := m.one(t, disk)
			if _, want := m.one(t, roomy); !bytes.Equal(have, want) {
				t.Error("the files differ")
			}
		})
	}
}

package hub_test

// A disk that fills up in the middle of a pull: a small file system in memory, which only root can
// mount.

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a file system of a known size cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	r := sample(1 << 20)
	server, client, o := serve(t, r)
	server.Throttle(100_000) // so that there are several reports while it lasts
	o.Root = filepath.Join(disk, "hub")
	// Another program fills the disk after half a megabyte of the pull.
	filler := filepath.Join(disk, "filler")
	var once sync.Once
	o.Progress = func(p hub.Progress) {
		if p.Done > 500_000 {
			once.Do(func() {
				if err := os.WriteFile(filler, make([]byte, 8<<20), 0o644); !errors.Is(err,
					syscall.ENOSPC) {
					t.Errorf("filling the disk gives %v", err)
				}
			})
		}
	}
	_, err := client.Pull(t.Context(), o)
	var space *hub.SpaceError
	if !errors.As(err, &space) || space.Need != 0 {
		t.Fatalf("on a full disk the pull gives %v", err)
	}
	before := server.Sent("")
	hosttest.Check(t, os.Remove(filler))
	o.Progress = nil
	server.Throttle(0)
	hosttest.Must(client.Pull(t.Context(), o))(t)
	whole(t, o, r)
	var total int64
	for _, name := range fetched {
		total += r.Files[name].Size
	}
	if kept := total - (server.Sent("") - before); kept < 400_000 {
		t.Errorf("of %d bytes that were there the second pull used %d", before, kept)
	}
}

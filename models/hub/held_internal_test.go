package hub

// Locks of another program: any process that can read a lock's file can take it.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A writing holder is waited for, and a silent one until LockTimeout.
func TestALockWithoutADownloadIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repo, _ := store.ParseRepo("someone/tune")
		p := &pull{Options: Options{Root: t.TempDir(), Repo: repo},
			client: &Client{LockTimeout: time.Minute}}
		f := File{Path: "model.safetensors", ETag: "etag"}
		lock, err := store.TryLock(store.LockPath(p.Root, repo, f.ETag))
		hosttest.Check(t, err)
		blob := store.BlobPath(p.Root, repo, f.ETag)
		hosttest.Check(t, os.MkdirAll(filepath.Dir(blob), 0o700))
		began, writes := time.Now(), 10
		go func() {
			for i := range writes {
				time.Sleep(50 * time.Second)
				_ = os.WriteFile(blob+foreignSuffix, make([]byte, i+1), 0o600)
			}
		}()
		_, err = p.lock(t.Context(), f, func() {})
		if err == nil || !strings.Contains(err.Error(), "has written nothing for 1m0s: stop it") {
			t.Error(err)
		}
		// it checks four times a second
		least := time.Duration(writes)*50*time.Second + p.client.LockTimeout
		if waited := time.Since(began); waited < least || waited > least+time.Second {
			t.Errorf("it was waited for %v, not %v", waited, least)
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	})
}

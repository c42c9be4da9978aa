package q8

// The copy made in the background: it stops at any piece, leaves no file, and equals a start's
// copy.

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// opened is a checkpoint in the folder root.
func opened(t *testing.T) (found checkpoint.Model, ckpt *checkpoint.Checkpoint, root string) {
	t.Helper()
	root = t.TempDir()
	found = placed(t, filepath.Join(root, "it"))
	ckpt = hosttest.Must(found.Open())(t)
	t.Cleanup(func() { ckpt.Close() })
	return found, ckpt, root
}

// until stops the work with why at the piece of that number.
func until(calls *int, stopAt int, why error) func() error {
	return func() error {
		if *calls++; *calls == stopAt {
			return why
		}
		return nil
	}
}

// TestMake: stopped at any piece, nothing is ready and no file is left; complete, it equals the
// copy in memory.
func TestMake(t *testing.T) {
	found, ckpt, root := opened(t)
	cache := filepath.Join(root, "dense")
	why := errors.New("a turn has begun")
	ended := 0
	for stop := 1; ; stop++ {
		calls := 0
		err := Make(ckpt, cache, until(&calls, stop, why))
		if err == nil {
			break
		}
		left, _ := filepath.Glob(filepath.Join(cache, "*"))
		if !errors.Is(err, why) || Ready(found, cache) != "" || len(left) > 0 {
			t.Fatalf("ended at piece %d: %v, %q", stop, err, left)
		}
		ended++
	}
	if ready := Ready(found, cache); ended < 15 || ready == "" {
		t.Fatalf("%d pieces, %q is ready", ended, ready)
	}
	const name = "lm_head.weight"
	memory, file := open(t, ckpt, ""), open(t, ckpt, cache)
	if !bytes.Equal(memory.Tensor(name), file.Tensor(name)) {
		t.Error("the copy is not what a start makes")
	}
}

// TestMakeTwice: two concurrent ones result in one copy.
func TestMakeTwice(t *testing.T) {
	found, ckpt, root := opened(t)
	cache := filepath.Join(root, "dense")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := Make(ckpt, cache, noPause); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	left, _ := filepath.Glob(filepath.Join(cache, tempPrefix+"*"))
	if got := copies(t, cache); len(got) != 1 || len(left) > 0 || Ready(found, cache) != got[0] {
		t.Errorf("there are %v and %v", got, left)
	}
}

// TestMakeRefused: an unwritable folder is an error without a copy; another process's unfinished
// file stays, a dead one's is removed.
func TestMakeRefused(t *testing.T) {
	_, ckpt, root := opened(t)
	file := filepath.Join(root, "file")
	hosttest.Check(t, os.WriteFile(file, nil, 0o644))
	if err := Make(ckpt, filepath.Join(file, "dense"), noPause); err == nil {
		t.Error("a copy was made inside a file")
	}
	list, size := plan(ckpt.Spec)
	greedy := pace{1, 1 << 40, noPause}
	if _, err := prepare(ckpt, filepath.Join(root, "full"), list, size, greedy); err == nil ||
		!strings.Contains(err.Error(), "free") {
		t.Errorf("a disk without room: %v", err)
	}
	cache := filepath.Join(root, "dense")
	hosttest.Check(t, os.Mkdir(cache, 0o755))
	live, dead := filepath.Join(cache, tempPrefix+"live"), filepath.Join(cache, tempPrefix+"dead")
	for _, path := range []string{live, dead} {
		hosttest.Check(t, os.WriteFile(path, []byte("half"), 0o644))
	}
	mark := hosttest.Must(store.Use(live))(t)
	defer mark.Close()
	hosttest.Check(t, Make(ckpt, cache, noPause))
	if left, _ := filepath.Glob(filepath.Join(cache, tempPrefix+"*")); len(left) != 1 ||
		left[0] != live {
		t.Errorf("of %s and %s there is %v", live, dead, left)
	}
}

// TestCheck: a copy with one changed bit, anywhere, is reported with its block and removed; a valid
// one, one of another release, and a missing one are ignored.
func TestCheck(t *testing.T) {
	found, ckpt, root := opened(t)
	cache := filepath.Join(root, "dense")
	hosttest.Check(t, Make(ckpt, cache, noPause))
	path := Ready(found, cache)
	whole := hosttest.Must(os.ReadFile(path))(t)
	why := errors.New("a turn has begun")
	if err := Check(path, func() error { return why }); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := errors.Join(Check(path, noPause), Check("", noPause)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	_, size := plan(ckpt.Spec)
	for _, at := range []int64{0, size / 2, size - 1, size} {
		bad := bytes.Clone(whole)
		bad[at] ^= 1
		hosttest.Check(t, os.WriteFile(path, bad, 0o644))
		if ready := Ready(found, cache); ready != path {
			t.Fatalf("byte %d: a start looks at weights, %q", at, ready)
		}
		err := Check(path, noPause)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("byte %d: %v", at, err)
		}
		if ready := Ready(found, cache); ready != "" {
			t.Errorf("byte %d: %s is used again", at, ready)
		}
	}
	hosttest.Check(t, Make(ckpt, cache, noPause))
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
		t.Errorf("the copy that is made again is another: %v", err)
	}
	for n := range int64(3*sumBytes + 9) {
		if n < 99 || n%sumBytes < 9 || n%sumBytes > sumBytes-9 {
			if got := withoutSums(withSums(n)); got != n {
				t.Fatalf("%d bytes are %d again", n, got)
			}
		}
	}
}

package q8

// The copy made in the background: it stops at any piece, leaves no file, and equals a start's
// copy.

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
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

// TestMakeRefused: an unwritable folder or too little room is an error without a copy.
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
}

package q8

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// An earlier release's files: the copy of the weights that placed writes, and its record.
const (
	earlierFolder = "../../testdata/versions/q8-4"
	earlierCopy   = "f1acd98e58dd7174023af294466c8f44"
	earlierRecord = "3f5b77c05d60a3a0e676bf7d0859a93b.source"
	// of a version that is no longer read
	olderFolder = "../../testdata/versions/q8-3"
)

// TestEarlierRelease: its copy is that of these weights, and is not recreated; its record is read,
// and would be written identically.
func TestEarlierRelease(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	hosttest.Check(t, os.CopyFS(cache, os.DirFS(earlierFolder)))
	before := hosttest.Must(os.Stat(filepath.Join(cache, earlierCopy+Suffix)))(t)
	start(t, placed(t, filepath.Join(root, "it")), cache)
	after, err := os.Stat(filepath.Join(cache, earlierCopy+Suffix))
	if got := copies(t, cache); err != nil || len(got) != 1 ||
		!after.ModTime().Equal(before.ModTime()) {
		t.Errorf("there are %v, %v", got, err)
	}
	const made = "/tmp/TestZZMake3645354050/001/it/model-0000"
	files := []checkpoint.FileState{
		{Path: made + "0-of-00001.safetensors", Size: 79244, Modified: 1795770102913586789,
			Changed: 1795770102913586789, Device: 65024, Inode: 0xbec732},
		{Path: made + "1-of-00001.safetensors", Size: 78980, Modified: 1795770102913586789,
			Changed: 1795770102913586789, Device: 65024, Inode: 0xbec733}}
	path := filepath.Join(earlierFolder, earlierRecord)
	if name, rest := readRecord(path); name != earlierCopy || rest != describe(files) ||
		filepath.Base(recordPath(earlierFolder, files)) != earlierRecord {
		t.Errorf("its record names %q and says\n%s", name, rest)
	}
}

// TestOlderRelease: a copy of an older version is recreated and removed, with its record.
func TestOlderRelease(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	hosttest.Check(t, os.CopyFS(cache, os.DirFS(olderFolder)))
	found := placed(t, filepath.Join(root, "it"))
	if Ready(found, cache) != "" {
		t.Error("the older copy is ready")
	}
	start(t, found, cache)
	if got := copies(t, cache); len(got) != 1 || filepath.Base(got[0]) != earlierCopy+Suffix {
		t.Errorf("there are %v", got)
	}
}

// TestNewerRelease: two alternating releases have a copy and a record each, and neither touches the
// other's.
func TestNewerRelease(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	found := placed(t, filepath.Join(root, "it"))
	record := recordPath(cache, found.FileStates().Files)
	newer := map[string]string{
		record: "ossrun q8 5\n" + strings.Repeat("cd", 20) + "\nin another form\n",
		filepath.Join(cache, strings.Repeat("cd", 20)+Suffix): "weightsossrun q8 5: 97 matrices, " +
			"7 bytes\n"}
	hosttest.Check(t, os.MkdirAll(cache, 0o755))
	for name, text := range newer {
		hosttest.Check(t, os.WriteFile(name, []byte(text), 0o644))
	}
	first := start(t, found, cache)
	ready := Ready(found, cache)
	if ready == "" || !bytes.Equal(start(t, found, cache), first) || len(copies(t, cache)) != 2 {
		t.Errorf("%q is ready, there are %v", ready, copies(t, cache))
	}
	scribble(t, found)
	start(t, found, cache) // the copy before it goes
	Forget(cache)
	if now := Ready(found, cache); now == "" || now == ready || len(copies(t, cache)) != 2 {
		t.Errorf("%q is ready, there are %v", now, copies(t, cache))
	}
	for name, want := range newer {
		if is, err := os.ReadFile(name); err != nil || string(is) != want {
			t.Errorf("%s is another: %v", name, err)
		}
	}
}

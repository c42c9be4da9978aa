package q8

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
)

// What an earlier release left: the copy of the weights that placed writes, and its record.
const (
	earlierFolder = "../../testdata/versions/q8-3"
	earlierCopy   = "ee5f28ba9bf5839f1178d47eaf8cd734"
	earlierRecord = "0ae6f0d224708c4fd3d622d8cbead349.source"
)

// TestEarlierRelease: its copy is the one that these weights have, and is not made again; its
// record is read, and would be written so.
func TestEarlierRelease(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	if err := os.CopyFS(cache, os.DirFS(earlierFolder)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(cache, earlierCopy+Suffix))
	if err != nil {
		t.Fatal(err)
	}
	start(t, placed(t, filepath.Join(root, "it")), cache)
	after, err := os.Stat(filepath.Join(cache, earlierCopy+Suffix))
	if got := copies(t, cache); err != nil || len(got) != 1 ||
		!after.ModTime().Equal(before.ModTime()) {
		t.Errorf("there are %v, %v", got, err)
	}
	const made = "/tmp/TestZZMake3830948/001/it/model-0000"
	files := []checkpoint.FileState{
		{Path: made + "0-of-00001.safetensors", Size: 79244, Modified: 1795739952981776521,
			Changed: 1795739952981776521, Device: 65024, Inode: 10437125},
		{Path: made + "1-of-00001.safetensors", Size: 78980, Modified: 1795739952981776521,
			Changed: 1795739952981776521, Device: 65024, Inode: 10437126}}
	path := filepath.Join(earlierFolder, earlierRecord)
	if name, rest := readRecord(path); name != earlierCopy || rest != describe(files) ||
		filepath.Base(recordPath(earlierFolder, files)) != earlierRecord {
		t.Errorf("its record names %q and says\n%s", name, rest)
	}
}

// TestNewerRelease: two releases that are used in turns have a copy and a record each, and neither
// touches the other's.
func TestNewerRelease(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	found := placed(t, filepath.Join(root, "it"))
	record := recordPath(cache, found.FileStates().Files)
	newer := map[string]string{
		record: "ossrun q8 4\n" + strings.Repeat("cd", 20) + "\nin another form\n",
		filepath.Join(cache, strings.Repeat("cd", 20)+Suffix): "weightsossrun q8 4: 97 matrices, " +
			"7 bytes\n"}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range newer {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
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

package q8

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// placed writes a small checkpoint and returns it as a start finds it. In this test files count as
// settled at once.
func placed(t *testing.T, folder string) checkpoint.Model {
	t.Helper()
	s := modeltest.Tiny()
	hosttest.Check(t, modeltest.New(s, 2).Write(folder))
	found := hosttest.Must(checkpoint.Resolve(folder))(t)
	if found.FileStates().Files == nil {
		t.Skip("this system does not tell when a file was changed")
	}
	before := checkpoint.Settling
	checkpoint.Settling = -time.Hour
	t.Cleanup(func() { checkpoint.Settling = before })
	return found
}

// start opens a model and its copy as a start does and closes both.
func start(t *testing.T, found checkpoint.Model, cache string) (content []byte) {
	t.Helper()
	ckpt := hosttest.Must(found.Open())(t)
	defer ckpt.Close()
	c := hosttest.Must(Open(ckpt, cache))(t)
	content = bytes.Clone(c.Tensor("lm_head.weight"))
	want := make([]byte, len(content))
	head := hosttest.Must(ckpt.Tensor("lm_head.weight"))(t)
	Quantize(want, head.Data, ckpt.Spec.Vocab, ckpt.Spec.Hidden)
	if !bytes.Equal(content, want) {
		t.Error("the copy is not of these weights")
	}
	hosttest.Check(t, c.Close())
	return content
}

func copies(t *testing.T, cache string) []string {
	t.Helper()
	return hosttest.Must(filepath.Glob(filepath.Join(cache, "*"+Suffix)))(t)
}

// change repeats change until the system reports the file as changed: within one step of its clock
// it cannot.
func change(t *testing.T, found checkpoint.Model, change func()) {
	t.Helper()
	before := found.FileStates()
	for slices.Equal(found.FileStates().Files, before.Files) {
		change()
		if time.Since(before.Seen) > 2*time.Minute {
			t.Fatal("the system does not notice the change")
		}
	}
}

// scribble changes the last weight of the last file, an unembedding's, and hides it as well as a
// program can.
func scribble(t *testing.T, found checkpoint.Model) {
	t.Helper()
	files := found.FileStates().Files
	last := files[len(files)-1]
	data := hosttest.Must(os.ReadFile(last.Path))(t)
	stat := hosttest.Must(os.Stat(last.Path))(t)
	data[len(data)-1] ^= 0x80 // its sign
	change(t, found, func() {
		hosttest.Check(t, os.WriteFile(last.Path, data, 0o644))
		hosttest.Check(t, os.Chtimes(last.Path, stat.ModTime(), stat.ModTime()))
	})
}

// TestReady: a copy is found without its weights once it is made, and no longer once one of the
// weights has changed; then it is recreated and the old one removed.
func TestReady(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	found := placed(t, filepath.Join(root, "it"))
	if got := Ready(found, cache); got != "" {
		t.Errorf("%s is ready before it was made", got)
	}
	first := start(t, found, cache)
	made := copies(t, cache)
	if got := Ready(found, cache); len(made) != 1 || got != made[0] {
		t.Fatalf("%v were made, %q is ready", made, got)
	}
	// A copy of another name is used if the record names it: the weights were not read.
	other := filepath.Join(cache, strings.Repeat("ab", 16)+Suffix)
	path := recordPath(cache, found.FileStates().Files)
	record := hosttest.Must(os.ReadFile(path))(t)
	name := strings.TrimSuffix(filepath.Base(made[0]), Suffix)
	hosttest.Check(t, os.Rename(made[0], other))
	if got := Ready(found, cache); got != "" {
		t.Errorf("%s is ready, which is not there", got)
	}
	hosttest.Check(t, os.WriteFile(path, bytes.Replace(record, []byte(name),
		[]byte(strings.Repeat("ab", 16)), 1), 0o644))
	start(t, found, cache)
	if got := copies(t, cache); len(got) != 1 || got[0] != other {
		t.Errorf("with a record of another name there are %v", got)
	}
	hosttest.Check(t, os.Rename(other, made[0]))
	hosttest.Check(t, os.WriteFile(path, record, 0o644))
	scribble(t, found)
	if got := Ready(found, cache); got != "" {
		t.Errorf("%s is ready for weights that were changed", got)
	}
	if second := start(t, found, cache); bytes.Equal(first, second) {
		t.Error("the copy of changed weights is that of the others")
	}
	if got := copies(t, cache); len(got) != 1 || got[0] == made[0] ||
		Ready(found, cache) != got[0] {
		t.Errorf("after the change there are %v, before it %v", got, made)
	}
	for _, text := range []string{"", "nonsense", string(record[:len(record)/2]),
		strings.Replace(string(record), name, "../../x", 1), strings.Replace(string(record), "2",
			"1", 1)} {
		hosttest.Check(t, os.WriteFile(path, []byte(text), 0o644))
		if got := Ready(found, cache); got != "" {
			t.Errorf("by a record %q, %s is ready", text, got)
		}
	}
}

// TestTouched: files that were touched or are in two places have one copy, which stays while one of
// them is its source.
func TestTouched(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	one, two := placed(t, filepath.Join(root, "one")), placed(t, filepath.Join(root, "two"))
	start(t, one, cache)
	made := copies(t, cache)
	stat := hosttest.Must(os.Stat(made[0]))(t)
	change(t, one, func() {
		hosttest.Check(t, os.Chtimes(one.FileStates().Files[0].Path, time.Now(), time.Now()))
	})
	if got := Ready(one, cache); got != "" {
		t.Errorf("%s is ready for a file that was touched", got)
	}
	start(t, one, cache)
	start(t, two, cache)
	after, err := os.Stat(made[0])
	if got := copies(t, cache); err != nil || len(got) != 1 ||
		!after.ModTime().Equal(stat.ModTime()) || Ready(one, cache) != got[0] ||
		Ready(two, cache) != got[0] {
		t.Errorf("two places of the same weights have %v, %v", got, err)
	}
	Forget(cache)
	if Ready(one, cache) == "" || Ready(two, cache) == "" {
		t.Error("a copy went whose weights are there")
	}
	scribble(t, one)
	start(t, one, cache)
	if got := copies(t, cache); len(got) != 2 || Ready(two, cache) != made[0] {
		t.Errorf("after one of two was changed there are %v", got)
	}
	scribble(t, two)
	start(t, two, cache)
	if got := copies(t, cache); len(got) != 1 || Ready(one, cache) != got[0] ||
		Ready(two, cache) != got[0] {
		t.Errorf("after both were changed there are %v", got)
	}
	for i, folder := range []string{"one", "two"} {
		hosttest.Check(t, os.RemoveAll(filepath.Join(root, folder)))
		Forget(cache)
		if got := copies(t, cache); len(got) != 1-i {
			t.Errorf("with %s deleted there are %v", folder, got)
		}
	}
}

// TestOlder: copies of older formats are removed when one is made; other files in the folder stay.
// Just written files get no record.
func TestOlder(t *testing.T) {
	root := t.TempDir()
	cache := filepath.Join(root, "dense")
	found := placed(t, filepath.Join(root, "it"))
	checkpoint.Settling = time.Hour
	hosttest.Check(t, os.MkdirAll(cache, 0o755))
	var stay []string
	for name, text := range map[string]string{"old": "weights" + formatName +
		"1: 97 matrices, 7 bytes\n", "new": "weights" + formatName + "99: 97 matrices, 7 bytes\n",
		"none": "weights", "half": formatName + "1: 9", "empty": ""} {
		path := filepath.Join(cache, name+Suffix)
		hosttest.Check(t, os.WriteFile(path, []byte(text), 0o644))
		if name != "old" {
			stay = append(stay, path)
		}
	}
	start(t, found, cache)
	got := copies(t, cache)
	if len(got) != len(stay)+1 || slices.Contains(got, filepath.Join(cache, "old"+Suffix)) {
		t.Errorf("there are %v, of the others %v should stay", got, stay)
	}
	if got := Ready(found, cache); got != "" {
		t.Errorf("%s is ready for files that were changed a moment ago", got)
	}
}

package checkpoint_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// ordering gives the test its own cache, in which files count as settled at once.
func ordering(t *testing.T) {
	t.Helper()
	t.Cleanup(xdg.Reload) // once the variable is what it was
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	xdg.Reload()
	before := checkpoint.Settling
	checkpoint.Settling = -time.Hour
	t.Cleanup(func() { checkpoint.Settling = before })
}

// written makes a GGUF file of T1 in its own folder.
func written(t *testing.T, style modeltest.GGUFStyle, files int) (path string) {
	t.Helper()
	return hosttest.Must(modeltest.WriteGGUF(golden(t, "T1"), t.TempDir(), "tune", style,
		files))(t)
}

func found(t *testing.T, path string) checkpoint.Model {
	t.Helper()
	f := hosttest.Must(checkpoint.Resolve(path))(t)
	if len(f.FileStates().Files) == 0 {
		t.Skip("this system does not tell when a file was changed")
	}
	return f
}

func opened(t *testing.T, path string) *checkpoint.Checkpoint {
	t.Helper()
	c := hosttest.Must(found(t, path).Open())(t)
	t.Cleanup(func() { c.Close() })
	return c
}

func always() error { return nil }

// order writes the ordered weights of a GGUF file and returns their path.
func order(t *testing.T, path string) string {
	t.Helper()
	c := opened(t, path)
	hosttest.Check(t, c.WriteOrdered(always))
	hosttest.Check(t, c.Close())
	return found(t, path).Ordered()
}

// TestOrdered: the next start maps the first one's file, and every tensor has the GGUF file's
// bytes; so have those that are read ahead, with some of them replaced.
func TestOrdered(t *testing.T) {
	for _, style := range []modeltest.GGUFStyle{modeltest.LlamaBF16, modeltest.LlamaQ8,
		modeltest.Ollama} {
		ordering(t)
		path := written(t, style, 2)
		first, rests := openGGUF(t, path), 0
		if first.Mapped() {
			t.Fatal("it is mapped before it was written")
		}
		if err := first.WriteOrdered(func() error { rests++; return nil }); err != nil {
			t.Fatal(err)
		}
		if rests < len(first.Spec.Tensors()) {
			t.Errorf("%d rests", rests)
		}
		f, again := found(t, path), opened(t, path)
		if !again.Mapped() || again.Path != first.Path || again.Spec.Name != first.Spec.Name ||
			again.Bytes() != first.Bytes() ||
			!slices.Equal(again.FileStates().Files, first.FileStates().Files) {
			t.Errorf("%+v", again)
		}
		for _, tensor := range first.Spec.Tensors() {
			if !bytes.Equal(dataOf(t, first, tensor.Name), dataOf(t, again, tensor.Name)) {
				t.Errorf("style %v: tensor %s differs", style, tensor.Name)
			}
		}
		parts, _, err := f.Ahead(checkpoint.Replaced{File: path,
			Covers: func(tensor string) bool { return tensor == "lm_head.weight" }})
		if err != nil || len(parts) != 2 || parts[0].Path != f.Ordered() ||
			len(parts[0].Without) != 1 {
			t.Errorf("%+v, %v", parts, err)
		}
	}
}

// TestOrderedIsOfTheseFiles: a file for another state of the GGUF file, or a damaged one, is not
// used.
func TestOrderedIsOfTheseFiles(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path, ordered string){
		"the GGUF file was written to": func(t *testing.T, path, _ string) {
			now := time.Now()
			hosttest.Check(t, os.Chtimes(path, now, now))
		},
		"another one has its place": func(t *testing.T, path, _ string) {
			hosttest.Check(t, os.Rename(written(t, modeltest.LlamaQ8, 1), path))
		},
		"it is of another model": func(t *testing.T, _, ordered string) {
			head, _ := models.FileHeader([]models.TensorSpec{{Name: "x", DType: models.U8,
				Shape: []int{0}}}, nil)
			hosttest.Check(t, os.WriteFile(ordered, head, 0o644))
		},
		"it may not be read": func(t *testing.T, _, ordered string) {
			if os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			hosttest.Check(t, os.Chmod(ordered, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ordering(t)
			path := written(t, modeltest.LlamaBF16, 1)
			ordered := order(t, path)
			if ordered == "" {
				t.Fatal("it is not there")
			}
			spoil(t, path, ordered)
			if c := opened(t, path); c.Mapped() {
				t.Error("it is used")
			}
			checkpoint.ForgetOrdered(checkpoint.MaxOrdered)
			if _, err := os.Stat(ordered); err == nil {
				t.Error("it stays")
			}
		})
	}
}

// TestOrderedIsBounded: the last used files of existing GGUF files stay, those of deleted ones are
// removed; files in use stay.
func TestOrderedIsBounded(t *testing.T) {
	ordering(t)
	var paths, ordered []string
	for i := range 3 {
		paths = append(paths, written(t, modeltest.LlamaBF16, 1))
		ordered = append(ordered, order(t, paths[i]))
		past := time.Now().Add(time.Duration(i-10) * time.Hour)
		hosttest.Check(t, os.Chtimes(ordered[i], past, past))
		if i == 1 {
			if err := opened(t, paths[0]).Close(); err != nil { // the older one is used
				t.Fatal(err)
			}
		}
	}
	there := func() (list []bool) {
		for _, path := range ordered {
			_, err := os.Stat(path)
			list = append(list, err == nil)
		}
		return list
	}
	if got := there(); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("%v stay", got)
	}
	use := opened(t, paths[0])
	for _, path := range paths {
		os.Remove(path)
	}
	half := filepath.Join(checkpoint.OrderedFolder(), ".making-7")
	hosttest.Check(t, os.WriteFile(half, []byte("a dead process's"), 0o644))
	checkpoint.ForgetOrdered(checkpoint.MaxOrdered)
	if got := there(); !slices.Equal(got, []bool{true, false, false}) {
		t.Errorf("%v stay where the first is in use", got)
	}
	hosttest.Check(t, use.Close())
	checkpoint.ForgetOrdered(checkpoint.MaxOrdered)
	left, _ := filepath.Glob(filepath.Join(checkpoint.OrderedFolder(), "*"))
	dotted, _ := filepath.Glob(filepath.Join(checkpoint.OrderedFolder(), ".*"))
	if len(left)+len(dotted) != 0 {
		t.Errorf("%v, %v are left", left, dotted)
	}
}

// TestOrderEnds: stopping at any piece, a file that changes meanwhile or was just changed leave no
// file.
func TestOrderEnds(t *testing.T) {
	ordering(t)
	path := written(t, modeltest.LlamaBF16, 1)
	c, stopped := opened(t, path), errors.New("stopped")
	all := 0
	if err := c.WriteOrdered(func() error { all++; return nil }); err != nil {
		t.Fatal(err)
	}
	store.RemoveUnused(found(t, path).Ordered())
	for at := 1; at <= all; at += max(1, all/7) {
		left := at
		err := c.WriteOrdered(func() error {
			if left--; left == 0 {
				return stopped
			}
			return nil
		})
		if !errors.Is(err, stopped) {
			t.Errorf("at piece %d of %d: %v", at, all, err)
		}
	}
	touched := false
	if err := c.WriteOrdered(func() error {
		if !touched {
			touched = true
			now := time.Now()
			return os.Chtimes(path, now, now)
		}
		return nil
	}); err == nil {
		t.Error("a file that changed is kept")
	}
	if err := opened(t, path).WriteOrdered(always); err != nil { // which a new start may keep
		t.Fatal(err)
	}
	store.RemoveUnused(found(t, path).Ordered())
	c = opened(t, path)
	checkpoint.Settling = time.Hour
	if err := c.WriteOrdered(always); err == nil {
		t.Error("a file that was just changed is kept")
	}
	checkpoint.Settling = -time.Hour
	hosttest.Check(t, os.Rename(written(t, modeltest.LlamaQ8, 1), path))
	if err := c.WriteOrdered(always); err == nil {
		t.Error("the weights of a file are kept as those of the one that replaced it")
	}
	list, err := os.ReadDir(checkpoint.OrderedFolder())
	if err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

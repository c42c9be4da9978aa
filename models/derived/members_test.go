package derived_test

// Every kind of derived file against the same faults: it is made again with the same bytes, and
// nothing else is left in its folder.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/convert"
	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// member is one kind of file.
type member struct {
	name    string
	folder  string                  // of its files, in a root
	pattern string                  // of the file that is looked at
	source  string                  // a file that it is made of; "" if its name is its content's
	make    func(root string) error // uses the file as the product does, or makes it
	used    func(root string) bool  // whether an existing one would be used
}

func always() error { return nil }

func members(t *testing.T) []member {
	t.Helper()
	sources := t.TempDir()
	before := checkpoint.Settling
	checkpoint.Settling = -time.Hour // files count as settled at once
	t.Cleanup(func() { checkpoint.Settling = before })
	path := filepath.Join("..", "..", "testdata", "model", "T1", "checkpoint")
	golden := hosttest.Must(checkpoint.Open(path))(t)
	t.Cleanup(func() { golden.Close() })

	small := filepath.Join(sources, "small")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 2).Write(small))
	gguf := hosttest.Must(modeltest.WriteGGUF(golden, sources, "tune", modeltest.LlamaQ8, 1))(t)
	var config map[string]any
	text := hosttest.Must(os.ReadFile(filepath.Join(path, "config.json")))(t)
	hosttest.Check(t, json.Unmarshal(text, &config))
	merged := filepath.Join(sources, "merged")
	hosttest.Check(t, hosttest.Must(modeltest.Merged(golden, config, 1))(t).Write(merged))

	dense := hosttest.Must(checkpoint.Resolve(small))(t)
	if len(dense.FileStates().Files) == 0 {
		t.Skip("this system does not tell when a file was changed")
	}
	tune := hosttest.Must(checkpoint.Resolve(gguf))(t)
	ordered := func(root string) checkpoint.Model {
		if xdg.CacheHome != root {
			t.Setenv("XDG_CACHE_HOME", root)
			xdg.Reload()
		}
		return tune
	}
	t.Cleanup(xdg.Reload)
	parts := golden.Spec.Layers + 2
	last := fmt.Sprintf("model-%05d-of-%05d.safetensors", parts, parts)
	imported := func(root string) error { // up to its last part, which has no place
		out := filepath.Join(root, "out")
		if err := os.MkdirAll(filepath.Join(out, last, "taken"), 0o755); err != nil {
			return err
		}
		_, err := convert.Run(t.Context(), merged, convert.Options{Out: out})
		if err != nil && strings.HasPrefix(err.Error(), last) {
			err = nil
		}
		return err
	}
	page := bytes.Repeat([]byte("page"), 25000)
	return []member{
		{"8-bit copy", "dense", "*.q8", filepath.Join(small, "model-00001-of-00001.safetensors"),
			func(root string) error {
				folder := filepath.Join(root, "dense")
				_ = q8.Check(q8.Ready(dense, folder), always)
				ckpt, err := dense.Open()
				if err != nil {
					return err
				}
				defer ckpt.Close()
				return q8.Make(ckpt, folder, always)
			},
			func(root string) bool { return q8.Ready(dense, filepath.Join(root, "dense")) != "" }},
		{"GGUF weights in order", filepath.Join("ossrun", "gguf"), "*.safetensors", gguf,
			func(root string) error {
				_ = ordered(root).CheckOrdered(always)
				c, err := tune.Open()
				if err != nil {
					return err
				}
				defer c.Close()
				if c.Mapped() {
					return nil
				}
				return c.WriteOrdered(always)
			},
			func(root string) bool { return ordered(root).Ordered() != "" }},
		{"part of an import", "out", strings.Replace(last, fmt.Sprintf("%05d", parts), "00002", 1),
			filepath.Join(merged, "model.safetensors"), imported,
			func(root string) bool {
				err := imported(root)
				return err == nil || !strings.Contains(err.Error(), "something else")
			}},
		{"KV page", "kv", "*.full", "",
			func(root string) error {
				s, err := kv.OpenSpill(kv.SpillOptions{HostBytes: 1 << 20,
					Folder: filepath.Join(root, "kv"), DiskBytes: 1 << 20})
				if err != nil {
					return err
				}
				if have := make([]byte, len(page)); s.Get(kv.Hash{7}, false, have) != nil {
					s.Put(kv.Hash{7}, false, false, page)
				} else if !bytes.Equal(have, page) {
					t.Error("another page")
				}
				return s.Close()
			}, nil},
	}
}

// one returns the member's only file and its content.
func (m member) one(t *testing.T, root string) (path string, data []byte) {
	t.Helper()
	all := hosttest.Must(filepath.Glob(filepath.Join(root, m.folder, m.pattern)))(t)
	if len(all) != 1 {
		t.Fatalf("there are %q", all)
	}
	return all[0], hosttest.Must(os.ReadFile(all[0]))(t)
}

func (m member) temps(t *testing.T, root string) []string {
	t.Helper()
	return hosttest.Must(filepath.Glob(filepath.Join(root, m.folder, store.TempPrefix+"*")))(t)
}

func TestMembers(t *testing.T) {
	for _, m := range members(t) {
		t.Run(m.name, func(t *testing.T) {
			root := t.TempDir()
			hosttest.Check(t, m.make(root))
			path, want := m.one(t, root)
			again := func(fault string) {
				t.Helper()
				hosttest.Check(t, m.make(root))
				if is, have := m.one(t, root); is != path || !bytes.Equal(have, want) {
					t.Errorf("%s: %s is not made again", fault, path)
				}
			}
			again("none")
			replace := func(data []byte) { // as a disk does: the old file may be mapped
				hosttest.Check(t, os.WriteFile(path+".new", data, 0o644))
				hosttest.Check(t, os.Rename(path+".new", path))
			}
			for _, n := range []int{0, 1, len(want) / 2, len(want) - 1} {
				replace(want[:n])
				again(fmt.Sprint("truncated to ", n))
			}
			for _, at := range []int{0, len(want) / 2, len(want) * 3 / 4, len(want) - 1} {
				bad := bytes.Clone(want)
				bad[at] ^= 1
				replace(bad)
				again(fmt.Sprint("a bit of byte ", at))
			}
			key := []byte(`"crc32c":`)
			earlier := bytes.Replace(want, key, []byte(`"crc32x":`), 1)
			if bytes.Contains(want, key) {
				replace(earlier) // as releases without checksums wrote it
				hosttest.Check(t, m.make(root))
				if _, have := m.one(t, root); !bytes.Equal(have, earlier) {
					t.Error("an earlier release's file is not used")
				}
			}

			hosttest.Check(t, os.Remove(path))
			live := filepath.Join(root, m.folder, store.TempPrefix+"live")
			for _, temp := range []string{live, live + "dead", path + ".part"} {
				hosttest.Check(t, os.WriteFile(temp, []byte("half"), 0o600))
			}
			mark := hosttest.Must(store.Use(live))(t)
			again("killed")
			if left := m.temps(t, root); len(left) != 1 || left[0] != live {
				t.Errorf("of a live and a dead process's files there is %q", left)
			}
			if _, err := os.Stat(path + ".part"); err == nil &&
				(m.folder == "out" || m.folder == "kv") { // an earlier release's name
				t.Error("what an earlier release left is still there")
			}
			hosttest.Check(t, mark.Close())
			hosttest.Check(t, os.RemoveAll(filepath.Join(root, m.folder)))

			var both sync.WaitGroup
			var errs [2]error
			for i := range errs {
				both.Go(func() { errs[i] = m.make(root) })
			}
			both.Wait()
			if _, have := m.one(t, root); !bytes.Equal(have, want) || errs[0] != nil &&
				errs[1] != nil || len(m.temps(t, root)) > 0 {
				t.Errorf("two at once: %v, %q", errs, m.temps(t, root))
			}

			deadline := time.Now().Add(2 * time.Minute)
			for m.used != nil && m.used(root) {
				hosttest.Check(t, os.Chtimes(m.source, time.Now(), time.Now()))
				if time.Now().After(deadline) {
					t.Fatal("it is used although its source was changed")
				}
			}
		})
	}
}

// TestSums: the sizes with and without checksums are inverse, around every block's end.
func TestSums(t *testing.T) {
	const block = 4 << 20
	for n := range int64(3*block + 9) {
		if n < 99 || n%block < 9 || n%block > block-9 {
			if got := derived.WithoutSums(derived.WithSums(n)); got != n {
				t.Fatalf("%d bytes are %d again", n, got)
			}
		}
	}
}

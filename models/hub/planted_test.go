//go:build unix

package hub_test

// Links that another user of a shared cache has placed where a pull writes and a removal deletes.

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// precious is a folder with a file that must not change, under every name of a cache.
func precious(t *testing.T, names ...string) (folder string, unchanged func() bool) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range append(names, "notes") {
		path := filepath.Join(folder, name)
		hosttest.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		hosttest.Check(t, os.WriteFile(path, []byte("precious"), 0o600))
	}
	list := func() string {
		var all strings.Builder
		_ = filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
			text, _ := os.ReadFile(path)
			all.WriteString(path + " " + e.Type().String() + " " + string(text) + "\n")
			return err
		})
		return all.String()
	}
	before := list()
	return folder, func() bool { return list() == before }
}

// SECURITY.md: Links that lead out of the cache, pipes and devices in it are not followed,
// headers are read within bounds, and a stale lock is given up.
func TestPullWritesThroughNoPlantedLink(t *testing.T) {
	t.Parallel()
	r := sample(100_000)
	blob := "models--someone--tune/blobs/" + r.Files["model-00000-of-00001.safetensors"].ETag()
	for _, place := range []string{
		blob + ".ossrun.incomplete", blob + ".ossrun.journal.new", ".locks/" +
			strings.Replace(blob, "/blobs", "", 1) + ".lock",
		"models--someone--tune/blobs", "models--someone--tune/snapshots",
		"models--someone--tune/snapshots/" + r.Commit, "models--someone--tune/refs",
	} {
		for _, kind := range []string{"link", "pipe"} {
			_, client, o := serve(t, r)
			folder, unchanged := precious(t, "config.json", "main")
			target := filepath.Join(folder, "notes")
			if strings.Count(place, ".") == 0 {
				target = folder
			}
			path := filepath.Join(o.Root, filepath.FromSlash(place))
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if err == nil && kind == "link" {
				err = os.Symlink(target, path)
			} else if err == nil {
				err = unix.Mkfifo(path, 0o600)
			}
			hosttest.Check(t, err)
			_, err = client.Pull(t.Context(), o)
			if !unchanged() {
				t.Errorf("a %s at %s: the pull wrote through it (%v)", kind, place, err)
			}
			if err == nil {
				t.Errorf("a %s at %s: the pull ends without a word", kind, place)
			} else if kind == "link" && !strings.Contains(err.Error(), "remove ") {
				t.Errorf("a link at %s: %v", place, err)
			}
		}
	}
}

func TestRemovalStaysInTheCache(t *testing.T) {
	for name, plant := range map[string]func(repo, outside string) error{
		"a snapshot's link to another folder named blobs": func(repo, outside string) error {
			return os.Symlink(filepath.Join(outside, "blobs/photo"),
				filepath.Join(repo, "snapshots", strings.Repeat("a", 40), "photo"))
		},
		"the folder of blobs": func(repo, outside string) error {
			err := os.RemoveAll(filepath.Join(repo, "blobs"))
			return errors.Join(err, os.Symlink(filepath.Join(outside, "blobs"),
				filepath.Join(repo, "blobs")))
		},
		"the folder of snapshots": func(repo, outside string) error {
			err := os.RemoveAll(filepath.Join(repo, "snapshots"))
			return errors.Join(err, os.Symlink(filepath.Join(outside, "snapshots"),
				filepath.Join(repo, "snapshots")))
		},
		"the repository": func(repo, outside string) error {
			return errors.Join(os.RemoveAll(repo), os.Symlink(outside, repo))
		},
		"the cache's own blobs": func(repo, outside string) error {
			root := filepath.Dir(repo)
			return errors.Join(os.Symlink(filepath.Join(outside, "blobs"), filepath.Join(root, "blobs")),
				os.Symlink("../../blobs/photo", filepath.Join(repo, "blobs", "shared")))
		},
		"the locks": func(repo, outside string) error {
			return os.Symlink(outside, filepath.Join(filepath.Dir(repo), ".locks"))
		},
	} {
		for _, revision := range []string{"", strings.Repeat("a", 40)} {
			root := t.TempDir()
			repo := filepath.Join(root, "models--someone--tune")
			outside, unchanged := precious(t, "blobs/photo", "snapshots/"+
				strings.Repeat("a", 40)+"/photo", "models--someone--tune/lock")
			for _, commit := range []string{"a", "b"} {
				path := filepath.Join(repo, "snapshots", strings.Repeat(commit, 40))
				hosttest.Check(t, os.MkdirAll(path, 0o755))
			}
			hosttest.Check(t, os.MkdirAll(filepath.Join(repo, "blobs"), 0o755))
			hosttest.Check(t, plant(repo, outside))
			removal, err := store.PlanRemoval(root, tune, revision)
			if err == nil && removal != nil {
				err = removal.Run()
			}
			if !unchanged() {
				t.Errorf("%s is a link: rm %q deleted outside the cache (%v)", name, revision, err)
			}
		}
	}
}

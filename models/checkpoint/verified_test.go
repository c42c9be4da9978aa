package checkpoint_test

import (
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// snapshot makes a complete snapshot of a repository, whose files have been hashed to sums.
func snapshot(t *testing.T, repo store.Repo, sums map[string]string) checkpoint.Model {
	t.Helper()
	root, commit := t.TempDir(), strings.Repeat("c", 40)
	for name, sum := range sums {
		blob := store.BlobPath(root, repo, sum)
		hosttest.Check(t, os.MkdirAll(filepath.Dir(blob), 0o755))
		hosttest.Check(t, os.WriteFile(blob, []byte(name), 0o644))
		raw, err := hex.DecodeString(sum)
		if err == nil {
			err = store.WriteStamp(blob, raw)
		}
		if err == nil {
			err = store.Link(root, repo, commit, name, sum)
		}
		hosttest.Check(t, err)
	}
	return checkpoint.Model{Repo: repo.ID(), Path: store.SnapshotPath(root, repo, commit),
		Complete: true}
}

func TestWhoVouchesForWeights(t *testing.T) {
	openai := store.Repo{Owner: "openai", Name: "gpt-oss-20b"}
	sums := models.Published(openai.ID())
	names := slices.Sorted(maps.Keys(sums))
	expect := func(what string, f checkpoint.Model, want checkpoint.Verification) {
		t.Helper()
		if got := f.Verification(); got != want || got.Sentence() == "" {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	expect("the published files", snapshot(t, openai, sums), checkpoint.Verified)
	expect("a tune of them", snapshot(t, store.Repo{Owner: "someone", Name: "tune"}, sums),
		checkpoint.Pulled)
	another := maps.Clone(sums)
	another[names[1]] = strings.Repeat("ab", 32)
	expect("one other file", snapshot(t, openai, another), checkpoint.Mismatched)
	more := maps.Clone(sums)
	more["model.safetensors"] = strings.Repeat("ab", 32)
	expect("one file more", snapshot(t, openai, more), checkpoint.Mismatched)
	fewer := maps.Clone(sums)
	delete(fewer, names[2])
	expect("one file fewer", snapshot(t, openai, fewer), checkpoint.Mismatched)

	changed := snapshot(t, openai, sums)
	blob := hosttest.Must(filepath.EvalSymlinks(filepath.Join(changed.Path, names[0])))(t)
	later := time.Now().Add(time.Hour)
	hosttest.Check(t, os.Chtimes(blob, later, later))
	expect("written to since", changed, checkpoint.Unverified)
	hosttest.Check(t, os.Remove(blob+store.StampSuffix))
	expect("never hashed", changed, checkpoint.Unverified)
	part := snapshot(t, openai, sums)
	part.Complete = false
	expect("half a pull", part, checkpoint.Unverified)
	expect("a folder", checkpoint.Model{Path: t.TempDir(), Complete: true}, checkpoint.Unverified)
}

// SECURITY.md: `pull` hashes every file and compares it with the SHA-256 that the hub names;
// the weights of 20b and 120b are also compared with the published hashes, which the program
// contains.
func TestPublishedSums(t *testing.T) {
	for id, want := range map[string]int{"20b": 3, "120b": 15} {
		e, _ := models.Lookup(id)
		sums, seen := models.Published(e.HF), map[string]bool{}
		for name, sum := range sums {
			if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 || seen[sum] {
				t.Errorf("%s of %s has the sum %s", name, id, sum)
			}
			seen[sum] = true
		}
		if len(sums) != want {
			t.Errorf("%s has %d files", id, len(sums))
		}
	}
}

package records

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What one owner puts no other finds, by any way to find it, in memory or in a file.
func TestOwnersHaveTheirOwn(t *testing.T) {
	disk, err := Open(Options{File: filepath.Join(t.TempDir(), "kept.db"), TTL: time.Hour})
	hosttest.Check(t, err)
	defer disk.Close()
	for name, s := range map[string]Store{"memory": NewStore(), "file": disk} {
		t.Run(name, func(t *testing.T) {
			views := map[string]Store{"": s, "a": Owned(s, "a"), "b": Owned(s, "b")}
			for owner, own := range views {
				put := func(c *Change) error {
					return c.Put(Record{Kind: KindResponse, Key: "id", Also: []string{"item"},
						Value: []byte(`"` + owner + `"`)})
				}
				hosttest.Check(t, own.Change(put))
			}
			for owner, own := range views {
				for _, key := range []string{"id", "item"} {
					r, ok := own.Get(KindResponse, key)
					if want := `"` + owner + `"`; !ok || string(r.Value) != want || r.Key != "id" {
						t.Errorf("%q finds %s by %s, key %q", owner, r.Value, key, r.Key)
					}
				}
				all := own.List(KindResponse)
				if owner == "" { // the store itself
					all = Owned(s, "").List(KindResponse)
				}
				if len(all) != 1 || all[0].Key != "id" {
					t.Errorf("%q lists %v", owner, all)
				}
			}
			nobody := Owned(s, "")
			if _, ok := nobody.Get(KindResponse, "a/id"); ok {
				t.Error("nobody's records have a's by the key in the store itself")
			}
			if ok, err := nobody.Delete(KindResponse, "a/id"); ok || err != nil {
				t.Error("nobody deletes what is a's", err)
			}
			if ok, err := views["a"].Delete(KindResponse, "id"); !ok || err != nil {
				t.Error(ok, err)
			}
			if err := views["a"].Change(func(c *Change) error {
				if _, ok := c.Get(KindResponse, "id"); ok || c.Delete(KindResponse, "id") {
					t.Error("it is still there, or another's")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			for _, owner := range []string{"", "b"} {
				if _, ok := views[owner].Get(KindResponse, "id"); !ok {
					t.Errorf("what %q has was deleted by another", owner)
				}
			}
			if len(s.List(KindResponse)) != 2 {
				t.Error("a deleted record is there, or another is gone")
			}
			if owner, key := OwnerOf(OwnedKey("a", "id")); owner != "a" || key != "id" {
				t.Error(owner, key)
			}
			if owner, key := OwnerOf("id"); owner != "" || key != "id" {
				t.Error(owner, key)
			}
		})
	}
}

// The records of an owner are deleted or moved with all their keys; those of others, and the usage,
// stay.
func TestRecordsOfAnOwnerGo(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) Store{
		"memory": func(*testing.T) Store { return NewStore() },
		"file": func(t *testing.T) Store {
			s := hosttest.Must(Open(Options{File: filepath.Join(t.TempDir(), "kept.db"),
				TTL: time.Hour}))(t)
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		for _, move := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " move ", move), func(t *testing.T) { ownerGoes(t, open(t), move) })
		}
	}
}

func ownerGoes(t *testing.T, s Store, move bool) {
	kinds := []Kind{KindRunning, KindResponse, KindConversation, KindTurn, KindFile, KindContent,
		KindBatch, KindCompletion}
	for _, owner := range []string{"gone", "other"} {
		for _, kind := range kinds {
			hosttest.Check(t, Owned(s, owner).Put(Record{Kind: kind, Key: "of " + owner,
				Also: []string{"item of " + owner}, Value: []byte(`1`)}))
		}
	}
	hosttest.Check(t, s.Put(Record{Kind: KindUsage, Key: "gone 2026-11-29", Value: []byte(`1`)}))
	work := DeleteOwned
	if move {
		work = func(s Store, owner string) (int, error) { return MoveOwned(s, owner, "") }
	}
	if n, err := work(s, "gone"); n != len(kinds) || err != nil {
		t.Errorf("%d records of %d, %v", n, len(kinds), err)
	}
	for _, kind := range kinds {
		for _, key := range []string{"of gone", "item of gone"} {
			if _, ok := Owned(s, "gone").Get(kind, key); ok {
				t.Errorf("%s: %q is still its owner's", kind, key)
			}
			if r, ok := s.Get(kind, key); ok != move || ok && r.Key != "of gone" {
				t.Errorf("%s: %q leads to %q, %v", kind, key, r.Key, ok)
			}
		}
		if _, ok := Owned(s, "other").Get(kind, "item of other"); !ok {
			t.Errorf("%s: another owner's is gone", kind)
		}
	}
	if len(s.List(KindUsage)) != 1 {
		t.Error("the usage is gone")
	}
}

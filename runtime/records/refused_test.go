package records

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// An acknowledged record is found again, whatever the disk has refused before or after it.
func TestWhatIsAcknowledgedIsKeptOnAFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	s, notes := openFile(t, file, nil)
	random := rand.New(rand.NewPCG(1, 2))
	put := func(id int) {
		s.Put(Record{Kind: KindResponse, Key: fmt.Sprint(id),
			Value: bytes.Repeat([]byte{'1'}, random.IntN(9000))})
	}
	var acknowledged []int
	for id := range 1000 {
		most := 1 << 30
		if random.IntN(4) == 0 {
			most = 1 // the file must not grow: SQLITE_FULL
		}
		hosttest.Must(s.db.Exec(fmt.Sprint("PRAGMA max_page_count = ", most)))(t)
		before := s.Refused()
		put(id)
		if s.Refused() == before {
			acknowledged = append(acknowledged, id)
		}
		if _, ok := s.Get(KindResponse, fmt.Sprint(id)); !ok {
			t.Fatalf("response %d is not even in memory", id)
		}
	}
	s.Close()
	if s.Refused() < 100 || len(acknowledged) < 500 || len(*notes) != 1 {
		t.Fatalf("%d of %d were acknowledged, %q", len(acknowledged), 1000, *notes)
	}
	s, _ = openFile(t, file, nil)
	for _, id := range acknowledged {
		if _, ok := s.Get(KindResponse, fmt.Sprint(id)); !ok {
			t.Errorf("response %d was acknowledged and is lost", id)
		}
	}
}

// Records that are only in memory when the program ends are counted, with the reason; those written
// by then are not.
func TestWhatIsLostAtTheEndIsSaid(t *testing.T) {
	for _, room := range []int{1, 1 << 30} {
		s, _ := openFile(t, filepath.Join(t.TempDir(), "kept.db"), nil)
		limit := func(pages int) {
			hosttest.Must(s.db.Exec(fmt.Sprint("PRAGMA max_page_count = ", pages)))(t)
		}
		limit(1)
		for id := range 3 {
			_ = s.Put(Record{Kind: KindResponse, Key: fmt.Sprint(id), Value: make([]byte, 20000)})
		}
		limit(room)
		err := s.Close()
		const lost = "3 stored turns, responses or conversations are lost: the disk is full"
		if said := err != nil && strings.Contains(err.Error(), lost); said != (room == 1) {
			t.Errorf("with room for %d pages: %v", room, err)
		}
	}
}

// The latest version of a refused record is written after the next successful write, or when the
// store is closed; records deleted or written again meanwhile are not.
func TestRefusedRecordsAreWrittenWhenThereIsRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	s, _ := openFile(t, file, nil)
	other, _ := openFile(t, file, nil)
	room := func(pages int) {
		t.Helper()
		hosttest.Must(s.db.Exec(fmt.Sprint("PRAGMA max_page_count = ", pages)))(t)
	}
	put := func(s Store, key, value string) {
		s.Put(Record{Kind: KindResponse, Key: key, Also: []string{"item of " + key},
			Value: []byte(value + strings.Repeat(" ", 20000))})
	}
	find := func(s Store, key string) string {
		r, _ := s.Get(KindResponse, key)
		return strings.TrimSpace(string(r.Value))
	}
	s.Put(Record{Kind: KindResponse, Key: "a", Value: []byte("old")}) // and no pages to be reused
	room(1)
	for _, key := range []string{"a", "deleted", "another's"} {
		put(s, key, "first")
		put(s, key, "second")
	}
	for i := range 2 * flushBatch {
		put(s, fmt.Sprint(i), "many")
	}
	if n := s.Refused(); n != 6+2*flushBatch {
		t.Fatalf("%d were refused", n)
	}
	if got := find(other, "a"); got != "old" {
		t.Errorf("the disk has %q", got)
	}
	s.Delete(KindResponse, "deleted")
	put(other, "another's", "newer")
	room(1 << 30)
	put(s, "b", "room")
	if a, b := find(other, "item of a"), find(other, "b"); a != "second" || b != "room" {
		t.Errorf("behind a record that was taken there are %q and %q", a, b)
	}
	if got := find(other, fmt.Sprint(2*flushBatch-1)); got != "" {
		t.Errorf("more than %d were written at once", flushBatch)
	}
	hosttest.Check(t, s.Close())
	for i := range 2 * flushBatch {
		if got := find(other, fmt.Sprint(i)); got != "many" {
			t.Errorf("record %d is %q", i, got)
		}
	}
	if d, o := find(other, "deleted"), find(other, "another's"); d != "" || o != "newer" {
		t.Errorf("deleted is %q, the other's is %q", d, o)
	}
}

// What several processes add to one record is added or refused, never both kept in two memories:
// a process that is alone keeps it.
func TestTwoProcessesAddOnAFullDisk(t *testing.T) {
	for _, kind := range []Kind{KindConversation, KindUsage} {
		file := filepath.Join(t.TempDir(), "kept.db")
		a, _ := openFile(t, file, nil)
		add := func(s Store, what string) error {
			return s.Change(func(c *Change) error {
				r, _ := c.Get(kind, "a")
				return c.Put(Record{Kind: kind, Key: "a", Value: append(bytes.Clone(r.Value),
					what+strings.Repeat(" ", 20000)...)})
			})
		}
		room := func(s *diskStore, pages int) {
			hosttest.Must(s.db.Exec(fmt.Sprint("PRAGMA max_page_count = ", pages)))(t)
		}
		hosttest.Check(t, add(a, "first "))
		room(a, 1)
		if err := add(a, "alone "); err != nil {
			t.Errorf("%s: one process keeps nothing: %v", kind, err)
		}
		room(a, 1<<30)
		if err := add(a, "later "); err != nil {
			t.Error(err)
		}
		b, _ := openFile(t, file, nil)
		added := []string{"first", "alone", "later"}
		for i, s := range []*diskStore{a, b} {
			room(s, 1)
			if err := add(s, fmt.Sprint(i, " ")); err == nil {
				added = append(added, fmt.Sprint(i))
			}
		}
		for _, s := range []*diskStore{a, b} {
			room(s, 1<<30)
			if err := add(s, "room "); err != nil {
				t.Error(err)
			}
			added = append(added, "room")
		}
		r, _ := b.Get(kind, "a")
		if got := strings.Fields(string(r.Value)); !slices.Equal(got, added) {
			t.Errorf("%s: %q is there, %q was acknowledged", kind, got, added)
		}
	}
}

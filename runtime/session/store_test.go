package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/store"
)

func call(id int) (key string, t sampledTurn) {
	return callKey(fmt.Sprint("call_", id)), sampledTurn{arguments: fmt.Sprintf(`{"n":%d}`, id),
		segments: []segment{
			{reasoning: true, tokens: encode(fmt.Sprintf("<|channel|>analysis<|message|>Thought "+
				"%d.<|end|>", id))},
			{tokens: encode(fmt.Sprintf(
				`<|channel|>commentary to=functions.f<|message|>{"n":%d}<|call|>`, id))},
		}}
}

func keep(s Store, id int) {
	key, t := call(id)
	remember(s, key, t)
}

// known tells whether s has a call as it was put.
func known(t *testing.T, s Store, id int) bool {
	t.Helper()
	key, want := call(id)
	got := recall(s, key)
	if got == nil {
		return false
	}
	if got.arguments != want.arguments || len(got.segments) != 2 || !got.segments[0].reasoning ||
		got.segments[1].reasoning ||
		text(got.segments[0].tokens) != text(want.segments[0].tokens) ||
		text(got.segments[1].tokens) != text(want.segments[1].tokens) {
		t.Fatalf("call %d came back as %+v", id, got)
	}
	return true
}

func openIn(t *testing.T, folder string, bytes int) *memoryStore {
	t.Helper()
	s, err := OpenStore(StoreOptions{Folder: folder, TTL: time.Hour,
		Bounds: map[Kind]Bound{KindTurn: {Bytes: bytes}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*memoryStore)
}

func TestSampledTurnsOutliveTheProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	m := openIn(t, folder, 1<<20)
	for id := range 5 {
		keep(m, id)
	}
	if _, err := OpenStore(StoreOptions{Folder: folder}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("two have one log: %v", err)
	}
	// as after kill -9: never closed, and nobody holds the lock
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	m = openIn(t, killed, 1<<20)
	for id := range 5 {
		if !known(t, m, id) {
			t.Errorf("call %d is forgotten", id)
		}
	}
	m.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if known(t, m, 1) {
		t.Error("a call is remembered beyond its time")
	}
}

// Cut off anywhere, or damaged anywhere, the log gives what stands before that, and takes new
// records.
func TestTornLog(t *testing.T) {
	folder := t.TempDir()
	m := openIn(t, folder, 1<<20)
	for id := range 3 {
		keep(m, id)
	}
	m.Close()
	whole, err := os.ReadFile(filepath.Join(folder, journalName))
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= len(whole); cut += 7 {
		for _, damaged := range [][]byte{whole[:cut], append(bytes.Clone(whole[:cut]),
			"\x00garbage\n\xff"...)} {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, journalName), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			m := openIn(t, folder, 1<<20)
			for id, records := 0, bytes.Count(whole[:cut], []byte("\n")); id < 3; id++ {
				if got := known(t, m, id); got != (id < records) && cut != len(whole) {
					t.Fatalf("cut at %d of %d: call %d known: %v", cut, len(whole), id, got)
				}
			}
			keep(m, 9)
			m.Close()
			if m = openIn(t, folder, 1<<20); !known(t, m, 9) {
				t.Fatalf("cut at %d: what came later is not in the log", cut)
			}
			m.Close()
		}
	}
}

func TestLogIsBounded(t *testing.T) {
	folder := t.TempDir()
	m := openIn(t, folder, 10_000)
	for id := range 20000 {
		keep(m, id)
	}
	info, err := os.Stat(filepath.Join(folder, journalName))
	if err != nil || info.Size() > 3<<20 {
		t.Errorf("%d bytes for 10,000 of values, %v", info.Size(), err)
	}
	m.Close()
	if m = openIn(t, folder, 10_000); !known(t, m, 19999) || known(t, m, 10) ||
		m.bytes[KindTurn] > 10_000 {
		t.Errorf("%d bytes are remembered", m.bytes[KindTurn])
	}
}

// The same answer was given in two conversations, one of them with words before it: each gets its
// own.
func TestAnswersOfOtherConversationsAreNotMixedUp(t *testing.T) {
	m, s := scripted("<|channel|>commentary<|message|>One "+
		"moment.<|end|><|start|>assistant<|channel|>final<|message|>Ok.<|return|>",
		"<|channel|>final<|message|>Fine.<|return|>", "<|channel|>final<|message|>Fine.<|return|>")
	run(t, m, Request{Messages: []Message{User("a")}})
	run(t, m, Request{Messages: []Message{User("b"), AssistantAnswer("Ok."), User("c")}})
	if p := text(s.prompts[1]); strings.Contains(p, "One moment") {
		t.Errorf("another conversation's words are in %s", p)
	}
	run(t, m, Request{Messages: []Message{User("a"), AssistantCommentary("One moment."),
		AssistantAnswer("Ok."), User("c")}})
	if p := text(s.prompts[2]); !strings.Contains(p,
		"commentary<|message|>One "+
			"moment.<|end|><|start|>assistant<|channel|>final<|message|>Ok.<|end|>") {
		t.Errorf("%s", p)
	}
}

// The least recently used go first, and with a record all of its keys go.
func TestTheStoreIsBounded(t *testing.T) {
	s := newStore(StoreOptions{TTL: time.Hour, Bounds: map[Kind]Bound{KindResponse: {Count: 3,
		Bytes: 10_000}}})
	put := func(id string, size int) {
		s.Put(Record{Kind: KindResponse, Key: id, Also: []string{"item_" + id},
			Value: []byte(strings.Repeat("x", size))})
	}
	for _, id := range []string{"a", "b", "c"} {
		put(id, 100)
	}
	if r, ok := s.Get(KindResponse, "item_a"); !ok || r.Key != "a" { // the most recently used now
		t.Fatal("a is gone")
	}
	put("d", 100)
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, r := range s.List(KindResponse) {
			got = append(got, r.Key)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("kept %v, want %v", got, want)
		}
		if len(s.byKey) != 2*len(want) {
			t.Errorf("%d keys of %d records", len(s.byKey), len(want))
		}
	}
	check("a", "c", "d")
	put("e", 9_850)
	check("d", "e")
	put("f", 10_001) // larger than everything
	check("d", "e")
	if s.Delete(KindResponse, "item_d") || !s.Delete(KindResponse, "d") || !s.Delete(KindResponse,
		"e") {
		t.Error("a record is deleted by its key and by no other")
	}
	check()
	if s.bytes[KindResponse] != 0 {
		t.Errorf("%d bytes of nothing", s.bytes[KindResponse])
	}
}

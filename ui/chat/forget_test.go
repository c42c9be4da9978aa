package chat

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

// holds tells which files of a folder have a text somewhere, in a free page or a log too.
func holds(t *testing.T, folder, text string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) || strings.Contains(path, text) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A deleted conversation is in no file any more: not its words, typed lines, sampled turns or
// pictures; no other one changes. Another process has the file open all the time.
func TestDeleted(t *testing.T) {
	folder := t.TempDir()
	open := func() records.Store {
		store, err := records.Open(records.Options{TTL: time.Hour,
			File: filepath.Join(folder, "kept.db")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	store, other := open(), open()
	picture := filepath.Join(t.TempDir(), "figure-secret.png")
	painted(t, picture, 4, 4)
	var taken sync.Map
	o := Options{Store: store, HistoryPath: filepath.Join(folder, "history"),
		Pictures: filepath.Join(folder, "pictures"),
		Claim: func(id string) (func(), bool) {
			if _, is := taken.Load(id); is {
				return nil, false
			}
			return func() {}, true
		},
		Tools: []session.Tool{&scriptTool{result: session.ToolResult{Text: "drawn",
			Files: []string{picture}}}}}
	long := strings.Repeat("a secret answer of some length ", 500)
	say := func(s *stage, question string) (id string) {
		s.ask(question)
		s.play(0, step)
		s.m.background.Wait()
		return s.m.record.id
	}
	gone := func(when string) {
		t.Helper()
		if left := holds(t, folder, "secret"); len(left) > 0 {
			t.Errorf("%s: still in %v", when, left)
		}
		if len(holds(t, folder, "the public question")) < 2 { // the store, the history
			t.Errorf("%s: another conversation was touched", when)
		}
	}
	one := fine("public")
	secret := fine(long)
	s := newStage(t, 80, 24, o, append([][]session.Event{one}, append(calling(secret), secret,
		secret, secret)...)...)
	run := func(cmd tea.Cmd) {
		for cmd != nil {
			cmd = s.send(cmd())
		}
	}
	public := say(s, "the public question")
	s.command("/new")
	say(s, "the secret question")
	other.Put(records.Record{Kind: records.KindTurn, Key: "call:c1",
		Value: []byte(`{"Arguments":"secret arguments"}`)})
	if left := holds(t, folder, "secret"); len(left) < 3 {
		t.Fatalf("there is nothing to delete but in %v", left)
	}

	s.command("/delete")
	if !strings.Contains(s.text(), "Delete this conversation for good?") {
		t.Fatalf("/delete does not ask:\n%s", s.text())
	}
	s.typing("n")
	s.m.background.Wait()
	if _, err := find(store, s.m.record.id); err != nil {
		t.Fatal("it was deleted without a yes")
	}
	s.command("/delete")
	run(s.send(key("y")))
	gone("/delete")
	s.keys("home") // the note goes
	if text := s.text(); strings.Contains(text, "secret question") {
		t.Errorf("it is still on the screen:\n%s", text)
	}
	s.m.save()
	s.m.background.Wait()
	gone("/delete, and what was still to be kept")

	// in the list, where d is a letter of the search until a row is chosen
	secretID := say(s, "the secret question again")
	s.command("/new")
	s.choose("/sessions")
	s.typing("d")
	if s.m.modes.confirmation() != nil || s.m.input.editor.text != "/sessions d" {
		t.Fatalf("a search begins to delete:\n%s", s.text())
	}
	s.keys("backspace", "down", "up")
	taken.Store(secretID, true)
	run(s.send(key("d")))
	run(s.send(key("y")))
	if !strings.Contains(s.text(), "Close that chat first.") {
		t.Errorf("what another chat writes is deleted:\n%s", s.text())
	}
	taken.Delete(secretID)
	run(s.send(key("d")))
	if !strings.Contains(s.text(), `Delete "the secret question again" (`) {
		t.Fatalf("d does not ask:\n%s", s.text())
	}
	run(s.send(key("y")))
	gone("d in the list")
	s.keys("up")
	if text := s.text(); strings.Contains(text, secretID) || !strings.Contains(text, public) {
		t.Errorf("the list after it:\n%s", text)
	}
	s.keys("ctrl+u")
	secretID = say(s, "a secret third time")
	s.command("/new")
	s.command("/delete " + secretID)
	run(s.send(key("y")))
	gone("/delete ID")
}

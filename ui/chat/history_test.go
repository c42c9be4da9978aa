package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestHistoryAcrossChats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history")
	s := newStage(t, 60, 20, Options{HistoryPath: path})
	for _, q := range []string{"/help", "two\nlines", "two\nlines", "日本 \"quoted\" <b>"} {
		s.m.input.editor.set(q)
		if name, _, ok := parseCommand(q); ok && name == "help" {
			s.keys("enter")
			continue
		}
		s.m.remember(q)
		s.m.input.editor.set("")
	}
	s.m.background.Wait()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("history file: %v, %v", info, err)
	}
	s = newStage(t, 60, 20, Options{HistoryPath: path})
	s.typing("draft")
	for _, want := range []string{"日本 \"quoted\" <b>", "two\nlines", "two\nlines", "/help",
		"/help"} {
		s.keys("up")
		if got := s.m.input.editor.text; got != want {
			t.Errorf("Up shows %q, want %q", got, want)
		}
	}
	s.keys("down", "down", "down", "down")
	if got := s.m.input.editor.text; got != "draft" {
		t.Errorf("Down ends at %q, want the draft", got)
	}
}

func write(f *historyFile, text string) error {
	f.queue(text)
	return f.flush()
}

func TestHistoryFileIsBounded(t *testing.T) {
	f := &historyFile{path: filepath.Join(t.TempDir(), "h")}
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "\"question %d\"\n", i)
	}
	if err := os.WriteFile(f.path, []byte(many.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(f, "last"); err != nil {
		t.Fatal(err)
	}
	got := f.read()
	if len(got) != historyEntries || got[0] != "question 2001" || got[len(got)-1] != "last" {
		t.Errorf("%d entries from %q to %q", len(got), got[0], got[len(got)-1])
	}
	if err := write(f, strings.Repeat("x", historyEntry+1)); err != nil ||
		len(f.read()) != historyEntries {
		t.Errorf("a question that is too long was kept: %v", err)
	}
	for range 30 {
		if err := write(f, strings.Repeat("y", historyEntry)); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(f.path); err != nil || info.Size() > historyBytes+historyEntries*3 {
		t.Errorf("history of %d bytes, %v", info.Size(), err)
	}
	if left, _ := filepath.Glob(f.path + ".*"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestHistoryIgnoresWhatItCannotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	if err := os.WriteFile(path, []byte("\x00\xff\n\"good\"\n{\"no\":1}\n\"half"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got := newHistory(path).entries; len(got) != 1 || got[0] != "good" {
		t.Errorf("entries %q", got)
	}
	if got := newHistory(t.TempDir()).entries; got != nil {
		t.Errorf("a folder gives %q", got)
	}
}

// A file of the release before versions is read, and that release reads ours; a file of a newer
// release is reported and stays unchanged.
func TestHistoryOfOtherReleases(t *testing.T) {
	path := earlier(t, "history-0")
	want := []string{"first question", "second question", "first question", "two\nlines",
		"日本 \"quoted\" <b>"}
	h := newHistory(path)
	if !slices.Equal(h.entries, want) {
		t.Errorf("%q", h.entries)
	}
	if err := write(&h.file, "mine"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var read []string // as that release read it
	for line := range strings.Lines(string(text)) {
		var s string
		if json.Unmarshal([]byte(line), &s) == nil && s != "" {
			read = append(read, s)
		}
	}
	if want = append(want, "mine"); !slices.Equal(read, want) ||
		!slices.Equal(newHistory(path).entries, want) {
		t.Errorf("%q", read)
	}
	const newer = "{\"ossrun history\":2}\n[\"in another form\"]\n\"first question\"\n"
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, 200, 20, Options{HistoryPath: path})
	if !strings.Contains(s.text(), "a newer ossrun wrote") || !strings.Contains(s.text(),
		"in version 2, and this one knows version 1") || len(s.m.input.history.entries) > 0 {
		t.Error(s.text())
	}
	s.m.remember("a question")
	s.m.background.Wait()
	if text, err := os.ReadFile(path); err != nil || string(text) != newer {
		t.Errorf("%v: %q", err, text)
	}
}

func TestHistoryOfTwoChats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	one, two := newHistory(path), newHistory(path)
	for i := range 5 {
		for _, h := range []*history{one, two} {
			if err := write(&h.file, fmt.Sprintf("%p %d", h, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(newHistory(path).entries); n != 10 {
		t.Errorf("%d entries, want those of both", n)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := write(&one.file, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(newHistory(path).entries); n != 18 {
		t.Errorf("%d entries after eight at once, want 18", n)
	}
}

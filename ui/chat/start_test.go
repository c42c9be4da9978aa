package chat

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Recent conversations can be opened with a key, and never disturb a person who just types.
func TestRecent(t *testing.T) {
	store := earlierChats(t)
	begin := func() *stage {
		s := newStage(t, 80, 24, Options{Store: store}, fine("Yes."))
		s.keys("enter") // before they are read
		if s.m.record.id == "0123abc4" || s.m.talk.live != nil {
			t.Fatal("Enter opens what is not on the screen")
		}
		s.send(s.m.readRecent()())
		if !strings.Contains(s.text(), "❯ Parse a CSV in Go") {
			t.Fatalf("the start:\n%s", s.text())
		}
		return s
	}
	// opening and leaving one is no change: the order stays
	for want, keys := range map[string][]string{"0123abc4": nil, "0123abc3": {"down"},
		"0123abc0": {"down", "down", "down", "down", "down", "down"},
		"0123abc2": {"down", "down", "down", "up"},
		"0123abc1": {"down", "down", "x", "backspace", "down"}} {
		s := begin()
		s.keys(keys...)
		s.send(s.send(key("enter"))())
		if s.m.record.id != want || s.m.input.editor.text != "" || strings.Contains(s.text(), "Recent") {
			t.Errorf("%v and Enter open %s, not %s:\n%s", keys, s.m.record.id, want, s.text())
		}
		if s.keys("up"); strings.Contains(s.m.input.editor.text, "/resume") {
			t.Errorf("nobody typed %q", s.m.input.editor.text)
		}
		s.keys("ctrl+u")
		s.command("/new")
		if s.keys("enter"); s.m.talk.live != nil || len(s.m.talk.conversation.first) > 0 {
			t.Error("Enter opens a conversation that is not on the screen")
		}
	}
	s := begin()
	s.m.input.history.add("an earlier question")
	if s.keys("up"); s.m.input.editor.text != "an earlier question" {
		t.Errorf("Up over the first row gives %q", s.m.input.editor.text)
	}
	if s.keys("down"); s.m.input.editor.text != "" || !strings.Contains(s.text(), "❯ Parse") {
		t.Errorf("Down gives %q:\n%s", s.m.input.editor.text, s.text())
	}
	if s.typing("2"); strings.Contains(s.text(), "Recent") {
		t.Errorf("it stays behind what is typed:\n%s", s.text())
	}
	s.ask(" and 2?")
	s.play(0, step)
	if text := s.text(); !strings.Contains(text, "❯ 2 and 2?") || !strings.Contains(text, "Yes.") ||
		strings.Contains(text, "Recent") {
		t.Errorf("a new conversation:\n%s", text)
	}
	store = earlierChats(t)
	s = begin()
	s.m.input.editor.set("/delete 0123abc4")
	for cmd := s.send(key("enter")); cmd != nil; {
		msg := cmd()
		cmd = s.send(msg)
		if s.m.modes.confirmation() != nil {
			cmd = s.send(key("y"))
		}
	}
	if text := s.text(); !strings.Contains(text, "❯ Refactor the parser") ||
		strings.Contains(text, "Parse a CSV in Go  ") {
		t.Errorf("what was deleted can be opened:\n%s", text)
	}
}

// The program reads them by itself.
func TestRecentIsRead(t *testing.T) {
	m := newModel(t.Context(), Options{Model: script(), Store: earlierChats(t)})
	defer m.background.Wait()
	all := m.Init()().(tea.BatchMsg)
	messages := make(chan tea.Msg, len(all)) // some never arrive
	for _, cmd := range all {
		if cmd != nil {
			go func() { messages <- cmd() }()
		}
	}
	hosttest.Until(t, "the start has conversations", func() bool {
		m.Update(<-messages)
		return len(m.input.recent) > 0
	})
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{"just now": 59 * time.Second,
		"1 minute ago": time.Minute, "59 minutes ago": time.Hour - time.Second,
		"1 hour ago": time.Hour, "9 hours ago": 9 * time.Hour, "yesterday": 10 * time.Hour,
		"28 Feb": 34 * time.Hour, "1 Jan": 60 * 24 * time.Hour, "31 Dec 2025": 61 * 24 * time.Hour} {
		if got := ago(now.Add(-d), now); got != want {
			t.Errorf("%v is %q, not %q", d, got, want)
		}
	}
	if got := ago(now.Add(time.Hour), now); got != "just now" { // of a machine whose clock is ahead
		t.Errorf("later is %q", got)
	}
}

package chat

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
)

func TestEditAndBranches(t *testing.T) {
	s := newStage(t, 80, 24, Options{}, fine("red"), fine("blue"), fine("green"))
	s.ask("first?")
	s.play(0, step)
	s.ask("second?")
	s.play(0, step)
	s.ask("/edit 1")
	if s.m.input.editor.text != "first?" {
		t.Fatalf("the editor has %q", s.m.input.editor.text)
	}
	s.m.input.editor.set("changed?")
	s.keys("enter")
	s.play(0, step)
	if text := s.text(); strings.Contains(text, "first?") || strings.Contains(text, "blue") ||
		!strings.Contains(text, "changed?") || !strings.Contains(text, "green") ||
		len(s.runner.Requests[2].Messages) != 1 {
		t.Errorf("edited:\n%s", text)
	}
	s.ask("/branch")
	if text := s.text(); !strings.Contains(text, "second?") || !strings.Contains(text, "blue") ||
		strings.Contains(text, "green") {
		t.Errorf("the other branch:\n%s", text)
	}
	s.golden("branch")
	s.ask("/branch 2")
	if !strings.Contains(s.text(), "green") {
		t.Errorf("and back:\n%s", s.text())
	}
	s.ask("/branch 7")
	if !strings.Contains(s.text(), "There are 2 branches") {
		t.Errorf("no such branch:\n%s", s.text())
	}
	s.ask("/edit")
	s.keys("esc")
	if s.m.input.editor.text != "" || s.m.talk.editing != nil {
		t.Error("Esc does not leave the question as it was")
	}
}

func TestCompact(t *testing.T) {
	s := newStage(t, 80, 24, Options{}, fine("red"), fine("They spoke of red."), fine("yes"))
	s.ask("first?")
	s.play(0, step)
	s.command("/compact")
	s.golden("compacted")
	s.ask("and now?")
	s.play(0, step)
	said := s.runner.Requests[2].Messages
	if len(said) != 2 || !strings.Contains(said[0].Text(), "They spoke of red.") {
		t.Errorf("the model is given %d messages: %q", len(said), said[0].Text())
	}
	k := s.m.snapshot()
	again := newStage(t, 80, 24, Options{})
	again.m.restore(claimedChat{chat: k})
	if !strings.Contains(again.text(), "They spoke of red.") ||
		len(again.m.talk.conversation.messages()) != 3 {
		t.Errorf("restored:\n%s", again.text())
	}
}

func TestContextColours(t *testing.T) {
	s := newStage(t, 80, 24, Options{})
	for used, want := range map[int]string{1000: "\x1b[2mcontext 1 %", 100_000: "\x1b[33mcontext 76 %",
		120_000: "\x1b[1;31mcontext 92 %"} {
		s.m.talk.context = used
		if !strings.Contains(s.m.View(), want) {
			t.Errorf("%d tokens: no %q in %q", used, want, s.m.View())
		}
	}
}

func TestAttachments(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(path, []byte("the secret is 42\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, 120, 24, Options{}, fine("a"), fine("b"), fine("c"))
	s.m.input.editor.set("read @" + filepath.Join(folder, "no"))
	s.send(s.send(key("tab"))())
	if s.m.input.editor.text != "read @"+path {
		t.Fatalf("Tab makes %q", s.m.input.editor.text)
	}
	s.send(s.send(key("enter"))())
	s.play(0, step)
	if got := s.runner.Requests[0].Messages[0].Text(); !strings.HasSuffix(got,
		"\n\nFile "+path+":\n```\nthe secret is 42\n```") ||
		!strings.Contains(s.text(), ", 5 tokens") {
		t.Errorf("sent %q:\n%s", got, s.text())
	}
	long := strings.Repeat("a line\n", 99) + "the end"
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(long), Paste: true})
	if !strings.Contains(s.text(), "[paste 1: 100 lines, 700 characters]") {
		t.Errorf("a long paste:\n%s", s.text())
	}
	s.keys("enter")
	s.play(0, step)
	if got := s.runner.Requests[1].Messages[2].Text(); !strings.Contains(got, long) {
		t.Errorf("sent %q", got)
	}
	s.m.input.editor.set("mail me@example.com or @nobody")
	s.send(s.send(key("enter"))())
	s.play(0, step)
	if got := s.runner.Requests[2].Messages[4].Text(); got != "mail me@example.com or @nobody" {
		t.Errorf("sent %q", got)
	}
	if !strings.Contains(s.text(), "@nobody is not a file, so it was sent as text.") ||
		strings.Contains(s.text(), "example.com is not") {
		t.Errorf("a name of no file is sent in silence:\n%s", s.text())
	}
	s.command("look at @" + folder)
	if !strings.Contains(s.text(), "is a folder. ") || s.m.input.editor.text == "" {
		t.Errorf("a folder:\n%s", s.text())
	}
}

func TestHistorySearch(t *testing.T) {
	s := newStage(t, 80, 24, Options{})
	for _, q := range []string{"the capital of France", "a poem", "the capital of Peru"} {
		s.m.input.history.add(q)
	}
	s.typing("draft")
	s.keys("ctrl+r")
	s.typing("CAPITAL")
	if s.m.input.editor.text != "the capital of Peru" {
		t.Errorf("found %q", s.m.input.editor.text)
	}
	s.golden("history-search")
	s.keys("ctrl+r")
	if s.m.input.editor.text != "the capital of France" {
		t.Errorf("the older one: %q", s.m.input.editor.text)
	}
	s.keys("esc")
	if s.m.input.editor.text != "draft" || s.m.modes[searchRank] != nil {
		t.Errorf("left with %q", s.m.input.editor.text)
	}
}

func TestSwitchModel(t *testing.T) {
	other := script(fine("from the other"))
	s := newStage(t, 80, 24, Options{Switch: func(_ context.Context,
		name string) (session.Runner, error) {
		if name != "120b" {
			return nil, errors.New("unknown model")
		}
		return other, nil
	}})
	s.command("/model 7b")
	if text := s.text(); !strings.Contains(text, "unknown model") {
		t.Errorf("/model 7b:\n%s", text)
	}
	s.command("/model 120b")
	s.ask("who?")
	s.play(0, step)
	if text := s.text(); !strings.Contains(text, "from the other") {
		t.Errorf("/model:\n%s", text)
	}
}

// TestRestoredModels: a conversation that is opened in the chat gets its model back, or a sentence
// with who answers now and a way to another.
func TestRestoredModels(t *testing.T) {
	var opened []string
	open := func(_ context.Context, name string) (session.Runner, error) {
		if opened = append(opened, name); name == "absent" {
			return nil, errors.New("it is not downloaded")
		}
		m := script()
		m.Name = name
		return m, nil
	}
	for _, c := range []struct {
		model, at, now string
		shown          []string
		opens          int
	}{
		{"other", "", "", []string{"The next answers come from other."}, 1},
		{"absent", "", "", []string{"was with absent: it is not downloaded.", "/model NAME"}, 1},
		{"other", "http://a:1", "", []string{"was with other at http://a:1.", "--resume 1234"}, 0},
		{"other", "", "http://a:1", []string{"was with other on this computer", "--resume 1234"}, 0},
		{"other", "http://a:1", "http://a:1", []string{"The next answers come from other."}, 1},
	} {
		opened = nil
		s := newStage(t, 80, 24, Options{Switch: open, Endpoint: c.now})
		s.run(claimedChat{chat: &savedChat{ID: "1234", Model: c.model, Endpoint: c.at}})
		text := strings.Join(strings.Fields(s.text()), " ")
		for _, want := range c.shown {
			if !strings.Contains(text, want) {
				t.Errorf("%+v: no %q in %s", c, want, text)
			}
		}
		if len(opened) != c.opens {
			t.Errorf("%+v opens %q", c, opened)
		}
		// saved without a further answer it stays that model's, so that --resume returns to it
		if k := s.m.snapshot(); k.Model != c.model || k.Endpoint != c.at {
			t.Errorf("%+v is saved as of %s at %q", c, k.Model, k.Endpoint)
		}
		s.ask("Hello?")
		s.play(0, step)
		if k := s.m.snapshot(); k.Model != s.m.options.Model.ID() || k.Endpoint != c.now {
			t.Errorf("%+v: after an answer it is saved as of %s at %q", c, k.Model, k.Endpoint)
		}
	}
	s := newStage(t, 80, 24, Options{Switch: open})
	same := &savedChat{ID: "1234", Model: s.m.options.Model.ID()}
	if cmd := s.send(claimedChat{chat: same}); cmd != nil {
		t.Error("the same model is opened again")
	}
}

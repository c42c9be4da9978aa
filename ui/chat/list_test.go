package chat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
)

// run sends a message and carries out what follows from it.
func (s *stage) run(msg tea.Msg) {
	s.t.Helper()
	if all, ok := msg.(tea.BatchMsg); ok {
		for _, cmd := range all {
			s.run(cmd())
		}
		return
	}
	if cmd := s.send(msg); cmd != nil {
		s.run(cmd())
	}
}

// The list is opened and searched, and a chosen conversation renamed and exported.
func TestTheListsKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	store, taken := earlierChats(t), ""
	s := newStage(t, 80, 24, Options{Store: store, Claim: func(id string) (func(), bool) {
		return func() {}, id != taken
	}})
	s.m.background.Wait()
	press := func(names ...string) {
		t.Helper()
		for _, n := range names {
			s.run(key(n))
		}
	}
	shows := func(when, want, not string) {
		t.Helper()
		if text := s.text(); !strings.Contains(text, want) ||
			not != "" && strings.Contains(text, not) {
			t.Errorf("%s: not %q without %q:\n%s", when, want, not, text)
		}
	}
	s.typing("a draft")
	press("ctrl+s")
	shows("Ctrl+S", "Type to search · Down chooses · Enter opens · Esc closes · 1 of 5", "a draft")
	press("p", "a", "r", "s", "e", "r")
	shows("a search", "❯ Refactor the parser", "Trip to")
	press("x")
	press("esc")
	shows("Esc where nothing is found", "Ask something", "parserx")
	press("up")
	shows("Up", "❯ a draft", "")
	press("ctrl+u", "ctrl+s", "down")
	shows("a chosen row", "Enter opens · r renames · d deletes · e exports · Esc closes · 2 of 5", "")

	press("r")
	shows("r", "── New name: Enter renames, Esc keeps the old one ──", "12 questions")
	press("esc")
	shows("Esc", "❯ Refactor the parser  ", "New name")
	press("r", "ctrl+u", "n", "e", "w")
	press("enter")
	shows("renamed", `It is called "new" now.`, "Refactor")
	shows("renamed", "❯ new  ", "")
	if k, err := find(store, "0123abc3"); err != nil || k.Name != "new" || len(k.Exchanges) != 12 {
		t.Errorf("kept is %+v: %v", k, err)
	}
	if k, err := find(store, ""); err != nil || k.ID != "0123abc4" {
		t.Errorf("the latest is %+v since one was renamed: %v", k, err)
	}
	taken = "0123abc3"
	press("r", "x", "enter")
	shows("what another chat has open", `not renamed: "new" is open in another chat. Close that`, "newx")
	taken = ""

	press("down", "up", "e")
	shows("e", "── Export to a .md, .txt or .json file: Enter writes it, Esc does not ──", "")
	shows("e", "❯ new.md", "")
	press("enter")
	shows("exported", "Saved to new.md.", "")
	if text := read(t, "new.md"); strings.Count(text, "Refactor the parser") != 12 {
		t.Errorf("exported is\n%s", text)
	}
	press("e", "backspace", "backspace", "j", "s", "o", "n", "enter")
	if text := read(t, "new.json"); !strings.Contains(text, `"name": "new"`) {
		t.Errorf("exported is\n%s", text)
	}
	if err := os.WriteFile("mine.md", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	press("e", "ctrl+u", "m", "i", "n", "e", ".", "m", "d", "enter")
	shows("what is there", "mine.md exists", "")
	if text := read(t, filepath.Join(".", "mine.md")); text != "mine" {
		t.Errorf("it was overwritten with %s", text)
	}
	press("enter")
	if s.m.record.id != "0123abc3" || s.m.record.name != "new" {
		t.Errorf("Enter opens %s", s.m.record.id)
	}
}

// What work outside Update ends with has a name, which a log can show.
func TestOutcomesHaveNames(t *testing.T) {
	s := newStage(t, 80, 24, Options{Store: earlierChats(t), Tools: []session.Tool{&scriptTool{}},
		Switch: func(context.Context, string) (session.Runner, error) { return script(), nil }},
		fine("Four."))
	for _, c := range [][2]string{{"/tools", "pageRows"}, {"/model other", "modelOpened"},
		{"/resume nothing", "failure"}, {"/delete 0123abc3", "deletionFound"}, {"n", "<nil>"},
		{"/resume 0123abc4", "claimedChat"}, {"@/no/file", "prepared"}} {
		s.typing(c[0])
		var msg tea.Msg
		if cmd := s.send(key("enter")); cmd != nil {
			msg = cmd()
		}
		if got := strings.TrimPrefix(fmt.Sprintf("%T", msg), "chat."); got != c[1] {
			t.Errorf("%s ends with %s, not %s", c[0], got, c[1])
		}
		s.send(msg)
	}
}

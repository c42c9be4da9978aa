package chat

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/tools/pdf/pdftest"
)

// /undo takes back one exchange after the other; a question after it begins a branch.
func TestUndo(t *testing.T) {
	s := newStage(t, 80, 24, Options{}, fine("red"), fine("blue"), fine("green"))
	for _, question := range []string{"first?", "second?"} {
		s.ask(question)
		s.play(0, step)
	}
	s.ask("/undo")
	if text := s.text(); strings.Contains(text, "blue") || !strings.Contains(text, "red") {
		t.Errorf("undone:\n%s", text)
	}
	s.keys("up")
	if got := s.m.input.editor.text; got != "second?" {
		t.Errorf("Up brings back %q", got)
	}
	s.m.input.editor.set("third?")
	s.keys("enter")
	s.play(0, step)
	if n := len(s.runner.Requests[2].Messages); n != 3 {
		t.Errorf("the model sees %d messages", n)
	}
	if text := s.text(); !strings.Contains(text, "green") || !strings.Contains(text, "2 of 2") {
		t.Errorf("after it:\n%s", text)
	}
	s.ask("/undo")
	s.ask("/undo")
	s.ask("/undo")
	if text := s.text(); strings.Contains(text, "red") || !strings.Contains(text, "Nothing to undo") {
		t.Errorf("all undone:\n%s", text)
	}
}

// !command asks once, runs in a shell, and its output is what the model sees and the person too.
func TestShellCommand(t *testing.T) {
	s := newStage(t, 80, 30, Options{}, fine("I see."), fine("Again."), fine("No."))
	marker := filepath.Join(t.TempDir(), "ran")
	s.ask("!echo out; echo err >&2; touch " + marker + "; exit 3")
	if _, err := os.Stat(marker); err == nil || s.m.modes.confirmation() == nil {
		t.Fatalf("it did not ask:\n%s", s.text())
	}
	s.keys("n")
	if s.m.modes.confirmation() != nil || !strings.HasPrefix(s.m.input.editor.text, "!echo") {
		t.Fatalf("refused:\n%s", s.text())
	}
	s.send(key("enter"))
	s.send(s.send(key("y"))())
	s.play(0, step)
	sent := s.runner.Requests[0].Messages[0].Text()
	if !strings.Contains(sent, "\n```\nout\nerr\n```\n(exit status 3)") {
		t.Errorf("the model sees %q", sent)
	}
	if text := s.text(); !strings.Contains(text, "   out\n   err\n   (exit status 3)\n") {
		t.Errorf("the person sees\n%s", text)
	}
	s.ask("!echo twice")
	if s.m.modes.confirmation() != nil {
		t.Error("it asks again")
	}
	s.play(0, step)
	s.ask(" !important")
	s.play(0, step)
	if sent := s.runner.Requests[2].Messages[4].Text(); sent != "!important" {
		t.Errorf("a text that begins with a blank is sent as %q", sent)
	}
	s.ask("/edit")
	if got := s.m.input.editor.text; got != " !important" {
		t.Errorf("to edit it, the editor has %q", got)
	}
	s.m.input.editor.set("")
	s.ask(" !see @" + marker + "#90-95") // fails, and comes back
	if got := s.m.input.editor.text; !strings.HasPrefix(got, " !see @") {
		t.Errorf("what failed comes back as %q", got)
	}
}

// Esc ends a command with its children and gives it back; an endless one is ended.
func TestShellCommandEnds(t *testing.T) {
	s := newStage(t, 80, 24, Options{})
	s.m.talk.shellAllowed = true
	s.typing("!sleep 1000 & sleep 1000")
	cmd := s.send(key("enter"))
	s.keys("esc")
	cmd() // hangs unless the command was ended
	if got := s.m.input.editor.text; got != "!sleep 1000 & sleep 1000" {
		t.Errorf("the editor has %q", got)
	}
	text, err := runShell(t.Context(), "yes")
	if err != nil || len(text) < maxCommandOutput || len(text) > maxCommandOutput+200 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// The names of files have a narrow terminal's whole width.
func TestNamesAloneAreWhole(t *testing.T) {
	rows := choiceRows([]choice{{name: "gpu/kernels/kerneltest/run.sh"}}, nil, 38)
	if got := rows[0][0].Text; got != "  gpu/kernels/kerneltest/run.sh" {
		t.Errorf("%q", got)
	}
}

// @ lists git's files, and what is typed finds them.
func TestFilesAreFound(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for _, name := range []string{"main.go", "ui/chat/menu.go", "ui/chat/my notes.md", "secret.key"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("text of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(".gitignore", []byte("*.key\n.gitignore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("git: %v: %s", err, out)
	}
	for typed, want := range map[string][]string{
		"see @":      {"main.go", "ui/chat/menu.go", "ui/chat/my notes.md"},
		"see @menu":  {"ui/chat/menu.go"},
		"@ucm":       {"ui/chat/menu.go", "ui/chat/my notes.md"},
		`@"my n`:     {"ui/chat/my notes.md"},
		"@secret":    nil,
		"a@b":        nil,
		"@main.go x": nil,
		"@/etc":      nil,
	} {
		s := newStage(t, 80, 24, Options{}, fine("I see."))
		if cmd := s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(typed)}); cmd != nil {
			s.send(cmd())
		}
		var got []string
		for _, c := range s.m.choices() {
			got = append(got, c.name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q lists %q, want %q", typed, got, want)
		}
		if len(want) == 0 {
			continue
		}
		if n := testing.AllocsPerRun(5, func() { s.m.input.fileChoices() }); n > 0 {
			t.Errorf("%q: each view ranks the files again (%v allocations)", typed, n)
		}
		s.keys("tab")
		if text := s.m.input.editor.text; !strings.HasSuffix(text, " ") || len(s.m.choices()) > 0 {
			t.Errorf("%q: Tab makes %q", typed, text)
		}
		s.typing("please")
		s.send(s.send(key("enter"))())
		s.play(0, step)
		if sent := s.runner.Requests[0].Messages[0].Text(); !strings.Contains(sent, "\ntext of ") {
			t.Errorf("%q sends %q", typed, sent)
		}
	}
	s := newStage(t, 80, 24, Options{})
	s.send(s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("keep this @ma")})())
	s.keys("esc")
	if got := s.m.input.editor.text; got != "keep this @ma" || len(s.m.choices()) > 0 {
		t.Errorf("Esc: %q with %d rows", got, len(s.m.choices()))
	}
}

// A range of lines, a quoted name and a PDF are attached.
func TestMentions(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.txt": "one\ntwo\nthree\nfour\n", "a b.txt": "blank\n",
		"c#1.txt": "odd\n", "d.pdf": string(pdftest.Document("Porto in June"))} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for typed, want := range map[string]string{
		"@a.txt#2-3":       "File a.txt#2-3:\n```\ntwo\nthree\n```",
		"@a.txt#4, why?":   "File a.txt#4:\n```\nfour\n```",
		"@a.txt#3-99":      "File a.txt#3-99:\n```\nthree\nfour\n```",
		`@"a b.txt"#1 why`: "File a b.txt#1:\n```\nblank\n```",
		`@"a b.txt", why`:  "File a b.txt:\n```\nblank\n```",
		"@c#1.txt":         "File c#1.txt:\n```\nodd\n```",
		"@d.pdf":           "Porto in June",
		"@a.txt#9":         "error",
		"@a.txt#3-2":       "error",
	} {
		files, _, missing, err := attachments(t.Context(), typed)
		if (err != nil) != (want == "error") || len(missing) > 0 ||
			err == nil && !strings.Contains(files, want) {
			t.Errorf("%s: %q, %q, %v", typed, files, missing, err)
		}
	}
}

// Ctrl+P lists every command, words search names and help, and what was typed comes back with Up.
func TestPalette(t *testing.T) {
	s := newStage(t, 100, 40, Options{})
	s.typing("a draft")
	s.keys("ctrl+p")
	if n := len(s.m.choices()); n != len(commands)-1 {
		t.Errorf("%d of %d commands", n, len(commands)-1)
	}
	for _, c := range commands {
		if c.name != "commands" && !strings.Contains(s.text(), c.usage()) {
			t.Errorf("%s is not on the screen:\n%s", c.name, s.text())
		}
	}
	s.typing("thinks")
	s.keys("enter")
	if got := s.m.input.editor.text; got != "/effort " {
		t.Errorf("Enter takes %q", got)
	}
	s.m.input.editor.set("")
	s.keys("up")
	if got := s.m.input.editor.text; got != "a draft" {
		t.Errorf("Up brings back %q", got)
	}
}

// A long answer's end gives a sign only while the window is not in front.
func TestAnnounce(t *testing.T) {
	for _, c := range []struct {
		name      string
		blurred   bool
		took      time.Duration
		off, sign bool
	}{{"a window behind", true, 11 * time.Second, false, true},
		{"in front", false, 11 * time.Second, false, false},
		{"a short answer", true, 9 * time.Second, false, false},
		{"off", true, 11 * time.Second, true, false}} {
		t.Setenv("TERM", "xterm-kitty")
		var out strings.Builder
		s := newStage(t, 80, 24, Options{NoNotify: c.off}, fine("Four."))
		s.m.clipboard = &out
		s.ask("why?")
		if c.blurred {
			s.send(tea.BlurMsg{})
		}
		s.clock.advance(c.took)
		if cmd := s.play(0, step); cmd != nil {
			cmd()
		}
		want := ""
		if c.sign {
			want = "\x1b]9;The answer is done.\x1b\\\a"
		}
		if out.String() != want {
			t.Errorf("%s: %q", c.name, out.String())
		}
	}
	for name, want := range map[string]string{"foot": "\x1b]777;", "xterm-256colorWezTerm": "\x1b]9;",
		"screentmux": "\a", "linux": "\a"} {
		if got := notification(name); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\a") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestListingRunsNoProgram: a folder's git settings may name a program, which an @ does not run.
func TestListingRunsNoProgram(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for _, f := range [][2]string{{"a.txt", ""}, {"monitor.sh", "#!/bin/sh\ntouch ran\n"}} {
		if err := os.WriteFile(f[0], []byte(f[1]), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"init", "-q"},
		{"config", "core.fsmonitor", "./monitor.sh"}} {
		if out, err := exec.Command("git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if names := listFiles(t.Context()); !slices.Contains(names, "a.txt") {
		t.Errorf("the files are %q", names)
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("the folder's program ran")
	}
}

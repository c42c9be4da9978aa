package chat

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
)

// leaves reports that a command ends the program.
func leaves(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	_, quits := cmd().(tea.QuitMsg)
	return quits
}

func TestEffort(t *testing.T) {
	s := newStage(t, 80, 20, Options{}, fine("a"))
	for _, want := range []string{"high", "low", "medium", "high"} {
		s.keys("shift+tab")
		if !strings.Contains(s.text(), want+" effort") {
			t.Errorf("after Shift+Tab the status lacks %q:\n%s", want, s.text())
		}
	}
	s.typing("/effort low")
	s.keys("enter")
	s.typing("/effort absurd")
	s.keys("enter")
	if !strings.Contains(s.text(), `Unknown effort "absurd". Use low, medium or high.`) {
		t.Errorf("a wrong effort is not refused:\n%s", s.text())
	}
	s.ask("q")
	s.play(0, step)
	if got := s.runner.Requests[0].Effort; got != "low" {
		t.Errorf("the turn was asked with effort %q", got)
	}
}

func TestSystem(t *testing.T) {
	s := newStage(t, 80, 20, Options{Request: session.Request{Instructions: "be brief"}},
		turn([]session.Event{stopped(9, 2)}),
		turn([]session.Event{stopped(9, 2)}))
	s.ask("q")
	s.play(0, step)
	s.ask("/system speak French\nand English")
	s.ask("q")
	s.play(0, step)
	s.ask("/system off")
	for i, want := range []string{"be brief", "speak French\nand English"} {
		if got := s.runner.Requests[i].Instructions; got != want {
			t.Errorf("turn %d had instructions %q, want %q", i, got, want)
		}
	}
	if s.m.talk.system != "" {
		t.Errorf("/system off leaves %q", s.m.talk.system)
	}
}

func TestInterrupt(t *testing.T) {
	waiting := turn(answering("never ends "), []session.Event{nil})
	s := newStage(t, 80, 20, Options{}, waiting, waiting)
	s.ask("q")
	s.play(2, step)
	if leaves(s.send(key("ctrl+c"))) {
		t.Fatal("the first Ctrl+C left although an answer was being written")
	}
	s.play(0, step)
	if s.m.talk.live != nil || !strings.Contains(s.text(), "stopped") {
		t.Fatalf("Ctrl+C did not stop the answer:\n%s", s.text())
	}
	s.clock.advance(2 * time.Second)
	s.ask("again")
	s.play(2, step)
	if leaves(s.send(key("ctrl+c"))) {
		t.Fatal("left at once")
	}
	s.clock.advance(doublePress / 2)
	if !leaves(s.send(key("ctrl+c"))) {
		t.Error("Ctrl+C twice does not leave")
	}
	idle := newStage(t, 80, 20, Options{})
	if !leaves(idle.send(key("ctrl+c"))) {
		t.Error("Ctrl+C does not leave an idle chat")
	}
	idle = newStage(t, 80, 20, Options{})
	idle.typing("a long draft")
	if leaves(idle.send(key("ctrl+c"))) || idle.m.input.editor.text != "" {
		t.Error("Ctrl+C over a draft must put it away and stay")
	}
	idle.keys("up")
	if idle.m.input.editor.text != "a long draft" {
		t.Errorf("Up brings back %q", idle.m.input.editor.text)
	}
	if !leaves(idle.send(key("ctrl+c"))) {
		t.Error("Ctrl+C twice does not leave")
	}
	idle = newStage(t, 80, 20, Options{})
	idle.typing("x")
	idle.keys("home")
	if leaves(idle.send(key("ctrl+d"))) || idle.m.input.editor.text != "" {
		t.Error("Ctrl+D on text must delete and not leave")
	}
	if !leaves(idle.send(key("ctrl+d"))) {
		t.Error("Ctrl+D on an empty editor does not leave")
	}
}

func TestRegenerateAndNew(t *testing.T) {
	s := newStage(t, 80, 20, Options{},
		fine("first answer"),
		fine("second answer"),
		turn([]session.Event{nil}))
	s.ask("the question")
	s.play(0, step)
	s.ask("/regenerate")
	s.play(0, step)
	text := s.text()
	if strings.Contains(text, "first answer") || !strings.Contains(text, "second answer") ||
		strings.Count(text, "the question") != 1 {
		t.Errorf("regenerated:\n%s", text)
	}
	if n := len(s.runner.Requests[1].Messages); n != 1 {
		t.Errorf("the second try was given %d messages, want the question alone", n)
	}
	s.ask("/help")
	s.ask("to be forgotten")
	s.ask("/new")
	text = s.text()
	if s.m.talk.live != nil || len(s.m.talk.conversation.messages()) != 0 ||
		strings.Contains(text, "second answer") || !strings.Contains(text, "context 0 %") {
		t.Errorf("after /new:\n%s", text)
	}
}

func TestOtherNames(t *testing.T) {
	for _, name := range []string{"/exit", "/bye", "/quit", "/q"} {
		s := newStage(t, 80, 20, Options{})
		s.m.input.editor.set(name)
		if !leaves(s.send(key("enter"))) {
			t.Errorf("%s does not leave", name)
		}
	}
	s := newStage(t, 80, 20, Options{}, fine("a"))
	s.ask("q")
	s.play(0, step)
	s.ask("/clear")
	if n := len(s.m.talk.conversation.messages()); n != 0 {
		t.Errorf("/clear leaves %d messages", n)
	}
}

// An answer stays until something of the one that takes its place has come.
func TestARefusedRegenerateLosesNothing(t *testing.T) {
	s := newStage(t, 80, 20, Options{},
		fine("the whole answer"),
		turn([]session.Event{session.Done{Finish: session.FinishError,
			Err: errors.New("the server is gone")}}),
		turn([]session.Event{nil}),
		fine("another"))
	s.ask("the question")
	s.play(0, step)
	kept := func(why string) {
		t.Helper()
		if text := s.text(); !strings.Contains(text, "the whole answer") ||
			!strings.Contains(text, why) || strings.Count(text, "❯ the question") != 1 {
			t.Errorf("want the answer and %q:\n%s", why, text)
		}
		if n := len(s.m.talk.conversation.messages()); n != 2 || s.m.talk.context != 11 {
			t.Errorf("%d messages, want 2; context %d, want 11", n, s.m.talk.context)
		}
	}
	s.runner.Refuse = errors.New("no such file")
	s.ask("/regenerate")
	s.play(0, step)
	kept("✗ No such file. Type /regenerate to retry.")
	s.runner.Refuse = nil
	s.ask("/regenerate")
	if !strings.Contains(s.text(), "the whole answer") {
		t.Errorf("the answer is gone before another has begun:\n%s", s.text())
	}
	s.play(0, step)
	kept("✗ The server is gone. Type /regenerate to retry.")
	s.ask("/regenerate")
	s.keys("esc")
	s.play(0, step)
	kept("· Stopped before it began.")
	s.ask("/regenerate")
	s.play(0, step)
	if text := s.text(); strings.Contains(text, "the whole") || !strings.Contains(text, "another") {
		t.Errorf("regenerated:\n%s", text)
	}
}

func TestCommandLines(t *testing.T) {
	s := newStage(t, 100, 24, Options{}, turn([]session.Event{stopped(9, 2)}))
	for line, want := range map[string]string{
		"/nosuch":  "Unknown command /nosuch.",
		"/s":       "/s is not complete. Type /system or /show or /sessions.",
		"/eff":     "Effort is medium",
		"/save":    "/export needs a file",
		"/copy":    "Nothing to copy yet.",
		"/sys":     "No instructions are set.",
		"/regen  ": "Nothing to regenerate yet.",
	} {
		s.m.input.editor.set(line)
		s.keys("enter")
		if !strings.Contains(s.text(), want) {
			t.Errorf("%s does not say %q:\n%s", line, want, s.text())
		}
		s.m.input.editor.set("")
		s.ask("/new")
	}
	s.m.input.editor.set("/usr/bin/env is what?")
	s.keys("enter")
	s.play(0, step)
	if len(s.runner.Requests) != 1 {
		t.Error("a path was taken for a command")
	}
	for in, want := range map[string]string{
		"/h": "/help", "/ef": "/effort ", "/effort m": "/effort medium", "/effort x": "/effort x",
		"hello": "hello", "/exp": "/export ", "/export x": "/export x",
	} {
		s.m.input.editor.set(in)
		s.keys("tab")
		if got := s.m.input.editor.text; got != want {
			t.Errorf("Tab makes %q of %q, want %q", got, in, want)
		}
	}
}

func TestSendWhileBusy(t *testing.T) {
	s := newStage(t, 80, 20, Options{}, turn([]session.Event{nil}))
	s.ask("one")
	s.ask("two")
	if s.m.input.editor.text != "" || !strings.Contains(s.text(), " next: two") {
		t.Errorf("a second question while the first is answered:\n%s", s.text())
	}
	s.keys("esc")
	s.play(0, step)
	if s.m.input.editor.text != "two" || s.m.talk.live != nil {
		t.Errorf("after Esc the editor has %q:\n%s", s.m.input.editor.text, s.text())
	}
	s = newStage(t, 80, 20, Options{}, fine("first"), fine("second"))
	s.ask("one")
	s.ask("two")
	s.play(0, step)
	s.play(0, step)
	if len(s.runner.Requests) != 2 || s.runner.Requests[1].Messages[2].Text() != "two" {
		t.Errorf("what was queued is not sent:\n%s", s.text())
	}
}

func TestScroll(t *testing.T) {
	s := newStage(t, 60, 14, Options{}, turn(answering(strings.Repeat("- item\n", 60)),
		[]session.Event{stopped(9, 90)}), turn(answering(strings.Repeat("more \n\n", 20)),
		[]session.Event{nil}))
	s.ask("list")
	s.play(0, step)
	s.keys("pgup")
	if s.m.transcript.follow || !strings.Contains(s.text(), "more rows, PgDn") {
		t.Errorf("PgUp:\n%s", s.text())
	}
	s.send(tea.MouseMsg{Button: tea.MouseButtonWheelUp})
	s.ask("again")
	if !s.m.transcript.follow {
		t.Error("a question does not bring the end into sight")
	}
	s.play(3, step)
	s.send(tea.MouseMsg{Button: tea.MouseButtonWheelUp})
	before := strings.Split(s.text(), "\n")[0]
	s.play(5, step)
	if after := strings.Split(s.text(), "\n")[0]; after != before {
		t.Errorf("what is being read moves from %q to %q while the answer grows", before, after)
	}
	for range 40 {
		s.keys("pgdown")
	}
	if !s.m.transcript.follow {
		t.Error("PgDn to the end does not follow again")
	}
	for range 90 {
		s.keys("pgup")
	}
	if !strings.HasPrefix(s.text(), " ossrun") {
		t.Errorf("PgUp does not reach the beginning:\n%s", s.text())
	}
}

func TestSaveAndCopy(t *testing.T) {
	s := newStage(t, 100, 30, Options{Request: session.Request{Instructions: "be kind"}},
		turn(reasoning("Let me think."),
			answering("An **answer**."), []session.Event{stopped(9, 9)}))
	var clip bytes.Buffer
	s.m.clipboard = &clip
	s.ask("a question")
	s.play(0, step)
	path := filepath.Join(t.TempDir(), "chat.md")
	save := func() {
		s.m.input.editor.set("/save " + path)
		s.send(s.send(key("enter"))())
	}
	save()
	compare(t, "saved.md", read(t, path))
	save()
	if strings.Contains(s.text(), "does not overwrite") {
		t.Errorf("a file of its own is not saved again:\n%s", s.text())
	}
	path = filepath.Join(t.TempDir(), "theirs")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	save()
	if read(t, path) != "precious" || !strings.Contains(s.text(), "does not overwrite") {
		t.Errorf("another's file was overwritten:\n%s", s.text())
	}
	s.m.input.editor.set("/copy")
	s.send(s.send(key("enter"))())
	if want := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("An **answer**.")) +
		"\a"; clip.String() != want {
		t.Errorf("clipboard %q, want %q", clip.String(), want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An answer that is lost with the process that wrote it is asked for again.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	lost := session.Done{Finish: session.FinishError,
		Err: fmt.Errorf("%w: EOF", session.ErrGone)}
	s := newStage(t, 80, 24, Options{}, turn(answering("Half an "), []session.Event{lost}),
		fine("A whole answer."),
		fine("And the next."))
	s.ask("question")
	s.ask("queued")
	s.play(0, step)
	if text := s.text(); !strings.Contains(text, "Retrying") || !strings.Contains(text, "Half") {
		t.Errorf("the lost answer:\n%s", text)
	}
	s.play(0, step)
	s.play(0, step)
	if text := s.text(); strings.Contains(text, "Half") || !strings.Contains(text, "A whole answer.") ||
		!strings.Contains(text, "And the next.") {
		t.Errorf("asked again:\n%s", text)
	}
}

// While the model is loaded the chat says how far it is, and takes questions.
func TestLoading(t *testing.T) {
	l := &Loading{}
	l.Begin("loading gpt-oss-20b")
	s := newStage(t, 80, 24, Options{Loading: l},
		fine("Here I am."))
	show, done := l.Progress("reading gpt-oss-20b")
	show(4_100_000_000, 13_800_000_000)
	if text := s.text(); !strings.Contains(text, "reading gpt-oss-20b, 4.1 of 13.8 GB") ||
		!strings.Contains(text, "You can type already") {
		t.Errorf("while it loads:\n%s", text)
	}
	s.ask("hello?")
	s.ask("and this is queued")
	if text := s.text(); !strings.Contains(text, "⠋ reading gpt-oss-20b, 4.1 of") ||
		!strings.Contains(text, "next: and this is queued") {
		t.Errorf("a question while it loads:\n%s", text)
	}
	done()
	l.End(nil)
	s.send(tick(s.clock.read()))
	s.play(0, step)
	if text := s.text(); strings.Contains(text, "loading") || strings.Contains(text, "type already") ||
		!strings.Contains(text, "CPU · 131,072 tokens of context") || !strings.Contains(text, "Here I am.") {
		t.Errorf("loaded:\n%s", text)
	}
	l = &Loading{}
	l.Begin("loading gpt-oss-20b")
	s = newStage(t, 80, 24, Options{Loading: l})
	l.End(errors.New("12.8 GB of memory are needed and 4.0 GB are free"))
	s.send(tick(s.clock.read()))
	if text := s.text(); !strings.Contains(text, "the model is not loaded: 12.8 GB of memory") {
		t.Errorf("a load that failed:\n%s", text)
	}
}

package chat

import (
	"context"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// The menu is gone through with the arrow keys, taken with Enter and left with Esc.
func TestMenu(t *testing.T) {
	s := newStage(t, 80, 24, Options{},
		fine("one\n```go\nx\n```"),
		turn(answering("two"), []session.Event{stopped(20, 2)}),
		turn(answering("three"), []session.Event{stopped(30, 2)}))
	s.typing("/effort ")
	s.keys("down", "down", "enter")
	if s.m.talk.effort != "medium" || s.m.input.editor.text != "" {
		t.Errorf("the second row of /effort is %s, %q is typed", s.m.talk.effort, s.m.input.editor.text)
	}
	s.typing("/e")
	s.keys("up") // from below: the last that begins so
	s.keys("enter")
	if s.m.input.editor.text != "/export " {
		t.Errorf("the row of a command with an argument gives %q", s.m.input.editor.text)
	}
	s.keys("esc")
	if s.m.input.editor.text != "" || s.m.quitting {
		t.Errorf("Esc leaves %q", s.m.input.editor.text)
	}
	s.ask("first")
	s.play(0, step)
	s.ask("second")
	s.play(0, step)
	s.typing("/edit ")
	if text := s.text(); !strings.Contains(text, " 1  first") ||
		!strings.Contains(text, " 2  second") {
		t.Errorf("/edit lists no questions:\n%s", text)
	}
	s.keys("down", "enter")
	if s.m.input.editor.text != "first" {
		t.Fatalf("/edit 1 gives %q", s.m.input.editor.text)
	}
	s.keys("enter")
	s.play(0, step)
	if s.m.talk.context != 32 {
		t.Errorf("context %d", s.m.talk.context)
	}
	s.typing("/branch ")
	s.keys("down", "enter")
	if text := s.text(); !strings.Contains(text, "two") || s.m.talk.context != 22 {
		t.Errorf("branch 1, whose context is %d, is\n%s", s.m.talk.context, text)
	}
	s.keys("up", "up", "up") // sent lines are walked through, not the menus of commands in them
	if s.m.input.editor.text != "/edit 1" {
		t.Errorf("Up gives %q", s.m.input.editor.text)
	}
}

func TestModelMenu(t *testing.T) {
	s := newStage(t, 80, 24, Options{Models: func(context.Context) []session.ModelInfo {
		return []session.ModelInfo{{ID: "gpt-oss-20b", ContextLength: 8192},
			{ID: "gpt-oss-120b", ContextLength: 4096}}
	}, Switch: func(_ context.Context, name string) (session.Runner, error) {
		m := script()
		m.Name = name
		return m, nil
	}})
	s.choose("/model")
	if text := s.text(); !strings.Contains(text, "gpt-oss-120b  4,096 tokens of context") {
		t.Errorf("/model:\n%s", text)
	}
	s.typing("120")
	s.keys("tab")
	s.send(s.send(key("enter"))())
	if got := s.m.options.Model.ID(); got != "gpt-oss-120b" {
		t.Errorf("the model is %s", got)
	}
}

package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

// What the chat itself says goes: with the next thing that it says, with the next message, and a
// notice after a time too. The conversation stays in sight.
func TestNoticesGo(t *testing.T) {
	s := newStage(t, 80, 24, Options{}, fine("An answer."), fine("Another."))
	shows := func(when string, want, not string) {
		t.Helper()
		if text := s.text(); !strings.Contains(text, want) ||
			not != "" && strings.Contains(text, not) {
			t.Errorf("%s: not %q without %q:\n%s", when, want, not, text)
		}
	}
	s.ask("A question?")
	s.play(0, step)
	before := strings.Count(s.text(), "\n\n")
	for n := range 11 {
		s.command(fmt.Sprintf("/%s", strings.Repeat("x", n+1)))
		s.keys("ctrl+u")
	}
	shows("after eleven mistakes", "A question?", "command /xxxxxxxxxx.")
	shows("after eleven mistakes", "Unknown command /xxxxxxxxxxx.", "")
	s.clock.advance(time.Hour)
	s.keys("left")
	shows("an error after an hour", "Unknown command /xxxxxxxxxxx.", "")
	s.command("/effort")
	shows("a notice", "Effort is medium", "/xxx")
	s.clock.advance(noticeDuration - time.Second)
	s.send(noticeExpired{})
	shows("a notice, before its time", "Effort is medium", "")
	s.clock.advance(time.Second)
	s.send(noticeExpired{})
	shows("a notice, after its time", "An answer.", "Effort is")
	if after := strings.Count(s.text(), "\n\n"); after != before {
		t.Errorf("it leaves blank rows:\n%s", s.text())
	}
	s.command("/effort none")
	s.command("/effort low")
	shows("a command without a notice", "Effort: low", `"none"`)
	s.send(notice("one of the program"))
	s.send(notice("and one more"))
	s.clock.advance(time.Hour)
	s.send(noticeExpired{})
	shows("what nobody has seen yet", "one of the program", "")
	s.command("/xyz")
	s.keys("ctrl+u")
	s.ask("Another question?")
	s.play(0, step)
	shows("after a message", "Another.", "/xyz")
	shows("after a message", "Another.", "of the program")
}

// In the program a notice goes by itself.
func TestANoticeIsPassed(t *testing.T) {
	m := newModel(t.Context(), Options{Model: script()})
	m.clock = func() time.Time { return time.Now().Add(-noticeDuration) }
	m.showNotice("the first")
	m.showNotice("the second")
	if msg := m.nextExpiry()(); msg != (noticeExpired{}) {
		t.Errorf("a notice whose time is over gives %v", msg)
	}
	m.background.Wait()
}

// A refused message returns to the editor before the text typed meanwhile, with a notice; it is not
// in the conversation too, and Enter sends it once.
func TestARefusedMessageComesBack(t *testing.T) {
	for _, c := range []struct {
		name      string
		err       error
		meanwhile func(s *stage)
		editor    string
		says      string
	}{
		{"a fault", errors.New("the engine fell over"), func(*stage) {}, "the message",
			"✗ The engine fell over.\n   Your message is back in the editor. Enter tries again."},
		{"too long", &sched.ContextLengthError{Max: 131072, Needed: 140000}, func(*stage) {},
			"the message", "/new one.\n   Your message is back in the editor.\n"},
		{"with a draft", errors.New("No."), func(s *stage) { s.typing("a draft") },
			"the message\na draft", "✗ No.\n   Your message is back"},
		{"with one that waits", errors.New("no"), func(s *stage) { s.ask("the next"); s.typing("x") },
			"the message\nthe next\nx", "✗ No.\n   Your message is back"},
	} {
		s := newStage(t, 80, 24, Options{}, fine("Fine."))
		s.runner.Refuse = c.err
		s.ask("the message")
		c.meanwhile(s)
		s.play(0, step)
		if text := s.text(); s.m.input.editor.text != c.editor || !strings.Contains(text, c.says) ||
			strings.Count(text, "❯ the message") != 1 || len(s.m.talk.conversation.first) > 0 {
			t.Errorf("%s: the editor has %q:\n%s", c.name, s.m.input.editor.text, text)
		}
		s.runner.Refuse = nil
		s.keys("enter")
		s.play(0, step)
		if text := s.text(); strings.Count(text, "❯ the message") != 1 || strings.Contains(text, "✗") ||
			!strings.Contains(text, "Fine.") {
			t.Errorf("%s, sent again:\n%s", c.name, text)
		}
	}
}

// The status labels its numbers, with little room too.
func TestStatusHasLabels(t *testing.T) {
	for _, c := range []struct {
		width, prompt int
		want          string
	}{
		{130, 12_305, "12,288 tokens from cache · 20.0 tok/s · context 12,345 of 131,072, 9 %"},
		{110, 12_305, "20.0 tok/s · context 12,345 of 131,072, 9 %"},
		{80, 12_305, "gpt-oss-20b · CPU · medium effort"}, {80, 12_305, "20.0 tok/s · context 9 %"},
		{40, 12_305, "gpt-oss-20b · medium effort  context 9 %"}, {30, 12_305, "context 9 %"},
		{80, 10, "context <1 %"}, {80, 124_000, "context 95 %"},
	} {
		s := newStage(t, c.width, 24, Options{Tools: []session.Tool{&scriptTool{}}}, turn(
			answering(strings.Repeat("word ", 40)), []session.Event{session.Done{
				Finish: session.FinishStop, Timing: sched.Timing{Decode: 39 * step},
				Usage: session.Usage{Prompt: c.prompt, Cached: 12_288, Completion: 40}}}))
		s.ask("how full?")
		s.play(0, step)
		rows := strings.Split(strings.TrimSpace(s.text()), "\n")
		if last := rows[len(rows)-1]; !strings.Contains(last, c.want) {
			t.Errorf("%d columns: %q without %q", c.width, last, c.want)
		}
	}
}

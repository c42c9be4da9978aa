package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// What the chat itself says goes: with the next thing that it says, with the next message, and a
// notice after a time too. The conversation stays in sight.
func TestNoticesGo(t *testing.T) {
	s := newStage(t, 80, 24, Options{}, turn(answering("An answer."),
		[]session.Event{stopped(9, 2)}), turn(answering("Another."), []session.Event{stopped(9, 2)}))
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
	shows("after eleven mistakes", "A question?", "/xxxxxxxxxx is")
	shows("after eleven mistakes", "/xxxxxxxxxxx is not a command", "")
	s.clock.advance(time.Hour)
	s.keys("left")
	shows("an error after an hour", "/xxxxxxxxxxx is not a command", "")
	s.command("/effort")
	shows("a notice", "effort is medium", "/xxx")
	s.clock.advance(noticeStays - time.Second)
	s.send(passed{})
	shows("a notice, before its time", "effort is medium", "")
	s.clock.advance(time.Second)
	s.send(passed{})
	shows("a notice, after its time", "An answer.", "effort is")
	if after := strings.Count(s.text(), "\n\n"); after != before {
		t.Errorf("it leaves blank rows:\n%s", s.text())
	}
	s.send(notice("one of the program"))
	s.send(notice("and one more"))
	s.clock.advance(time.Hour)
	s.send(passed{})
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
	m := newModel(t.Context(), Options{Model: &script{}})
	m.clock = func() time.Time { return time.Now().Add(-noticeStays) }
	m.showNotice("the first")
	m.showNotice("the second")
	if msg := m.nextPassed()(); msg != (passed{}) {
		t.Errorf("a notice whose time is over gives %v", msg)
	}
	m.background.Wait()
}

// What a reader gets of a log while it grows.

package responses

import "testing"

// An event of a background response is sent only after it is stored, so that a client that returns
// after kill -9 finds the same events.
func TestEventsAreHeldUntilTheyAreStored(t *testing.T) {
	l := newEventLog()
	l.hideUnstored()
	shown := func(want int) (more <-chan struct{}) {
		t.Helper()
		list, more := l.eventsAfter(-1)
		if len(list) != want {
			t.Errorf("%d events are shown, not %d", len(list), want)
		}
		return more
	}
	for n := range 3 {
		l.add(&streamEvent{Type: "response.in_progress", Sequence: n})
	}
	waiting := shown(0)
	l.release(1)
	<-waiting
	shown(2)
	l.end()
	if shown(3) != nil {
		t.Error("an ended log has more events")
	}
}

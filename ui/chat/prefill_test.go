package chat

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// While a prompt is read, its percent and the time left are shown, once they are known.
func TestPrefillIsShown(t *testing.T) {
	began, palette := time.Unix(0, 0), term.Palette{NoColor: true}
	for _, c := range []struct {
		p    session.Prefill
		want string
	}{
		{session.Prefill{}, "reading the prompt, 2.0 s"},
		{session.Prefill{Done: 300, Total: 1200, Cached: 100, Took: 2 * time.Second},
			"reading the prompt, 25 %, 9.0 s left"},
		{session.Prefill{Done: 300, Total: 1200, Cached: 100, Took: time.Millisecond},
			"reading the prompt, 25 %"},
		{session.Prefill{Done: 100, Total: 1200, Cached: 100, Took: 2 * time.Second},
			"reading the prompt, 8 %"},
		{session.Prefill{Done: 1200, Total: 1200, Took: time.Second}, "reading the prompt, 2.0 s"},
	} {
		a := newAnswer(palette, began, 0)
		if a.take(c.p, began) {
			t.Errorf("%+v is a token", c.p)
		}
		l := layout{palette: palette, width: 80, wide: 80, now: began.Add(2 * time.Second)}
		rows := a.runs(l)[0].rows
		if got := strings.TrimLeft(ansi.Strip(rows[0]), " ⠋⠙⠹⠸"); got != c.want {
			t.Errorf("%+v: %q, not %q", c.p, got, c.want)
		}
	}
}

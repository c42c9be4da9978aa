package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkScreen: rate and remaining time by the test's own clock, and no bar without a terminal.
func TestWorkScreen(t *testing.T) {
	synctest.Test(t, testWorkScreen)
}

func testWorkScreen(t *testing.T) {
	var out bytes.Buffer
	s := &workScreen{terminal: Terminal{Err: &out}, what: "reading it", start: time.Now()}
	time.Sleep(4 * time.Second)
	for _, test := range []struct {
		done int64
		want string
	}{
		{0, "reading it  0.00 of 14.00 GB  0.0 GB/s"},
		{2e9, "reading it  2.00 of 14.00 GB  0.5 GB/s  24 s left"},
		{14e9, "reading it  14.00 of 14.00 GB  3.5 GB/s  0 s left"},
	} {
		if got := s.line(test.done, 14e9); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		s.progress(test.done, 14e9)
	}
	resumed := &workScreen{terminal: s.terminal, what: "importing", start: time.Now()}
	resumed.progress(7e9, 14e9) // an earlier run's
	time.Sleep(4 * time.Second)
	const want = "importing  9.00 of 14.00 GB  0.5 GB/s  10 s left"
	if got := resumed.line(9e9, 14e9); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.clear(); out.Len() > 0 {
		t.Errorf("no terminal is there, and it gets %q", out.String())
	}
}

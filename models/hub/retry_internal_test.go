package hub

import (
	"errors"
	"testing"
	"time"
)

// TestWait: waits double, differ between two programs that were refused at once, are bounded, and a
// server's request has priority.
func TestWait(t *testing.T) {
	p := backoff{client: &Client{Backoff: 500 * time.Millisecond}}
	cut, seen := errors.New("cut"), map[time.Duration]bool{}
	for try, most := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second,
		4 * time.Second, 8 * time.Second, 16 * time.Second, maxBackoff, maxBackoff} {
		p.attempts = try + 1
		for range 20 {
			wait := p.wait(cut)
			if wait < most/2 || wait > most {
				t.Errorf("before try %d it waits %v, want %v to %v", try+2, wait, most/2, most)
			}
			seen[wait] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("160 waits have %d lengths", len(seen))
	}
	p.attempts = 60 // no shift runs over
	if wait := p.wait(cut); wait < maxBackoff/2 || wait > maxBackoff {
		t.Errorf("after 60 tries it waits %v", wait)
	}
	for asked, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second,
		time.Hour: maxRetryAfter} {
		if wait := p.wait(&statusError{code: 429, retryAfter: asked}); wait != want {
			t.Errorf("asked to wait %v it waits %v", asked, wait)
		}
	}
}

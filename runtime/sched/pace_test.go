package sched

import (
	"github.com/ossrun/ossrun/runtime/engine"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// A refused client's retry time is when the waiting ones will have run, at the pace of late.
func TestRetryAfter(t *testing.T) {
	var p pace
	at := time.Unix(0, 0)
	if got := p.wait(100); got != 0 {
		t.Errorf("before anything ran: %v", got)
	}
	p.step(at, 0, false)
	for range 600 { // a request ends every half second
		at = at.Add(100 * time.Millisecond)
		n := 0
		if at.UnixMilli()%500 == 0 {
			n = 1
		}
		p.step(at, n, true)
	}
	if got := p.wait(20); got < 9*time.Second || got > 11*time.Second {
		t.Errorf("20 requests at two a second: %v", got)
	}
	before := p.wait(20)
	at = at.Add(10 * time.Hour) // a quiet night
	p.step(at, 0, false)
	if got := p.wait(20); got != before {
		t.Errorf("after a night in which nothing ran: %v, before %v", got, before)
	}
	for range 1200 { // then ten a second
		at = at.Add(100 * time.Millisecond)
		p.step(at, 1, true)
	}
	if got := p.wait(20); got < 1900*time.Millisecond || got > 2200*time.Millisecond {
		t.Errorf("20 requests at ten a second: %v", got)
	}
	if got := p.wait(1 << 30); got != retryLatest {
		t.Errorf("a queue without end: %v", got)
	}
}

// The scheduler's own: bounded, whole seconds, from the time it is given.
func TestRetryAfterOfAScheduler(t *testing.T) {
	clock := &timed{Engine: new(simtest.Engine), costs: costs{step: 2 * time.Second},
		clock: time.Unix(0, 0),
		step:  func(time.Time) {}}
	var s *Scheduler
	var asked []time.Duration
	all := make(chan struct{})
	clock.step = func(time.Time) {
		<-all // wait
		asked = append(asked, s.RetryAfter())
	}
	s = New(clock, Options{Settings: engine.Settings{MaxNumSeqs: 1, MaxWaiting: 40},
		now: clock.now})
	if got := s.RetryAfter(); got != time.Second {
		t.Errorf("idle: %v", got)
	}
	var streams []*Stream
	for range 20 {
		streams = append(streams, submit(t, s, t.Context(), TokenRequest{Prompt: []int32{1},
			MaxTokens: 2}))
	}
	close(all)
	for _, st := range streams {
		drain(t, st)
	}
	s.Close()
	// A request takes two steps of two seconds, so with ten waiting it is some forty seconds; with
	// none left it is one.
	if got := asked[20]; got < 30*time.Second || got > 50*time.Second {
		t.Errorf("with half of them waiting: %v of %v", got, asked)
	}
	if got := asked[len(asked)-1]; got != time.Second {
		t.Errorf("with none waiting: %v", got)
	}
	for _, d := range asked {
		if d < time.Second || d > time.Minute || d%time.Second != 0 {
			t.Errorf("%v", d)
		}
	}
}

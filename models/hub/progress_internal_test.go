package hub

import (
	"testing"
	"time"
)

// reportEvery is the time between two samples of a pull.
const reportEvery = 200 * time.Millisecond

// TestRate: a line of 10 MB/s that stalls and then gives 40 MB/s, with the test's own clock.
func TestRate(t *testing.T) {
	var m meter
	now, fetched := time.Unix(1000, 0), int64(5e6) // what was there before counts for nothing
	m.add(now, fetched)
	if m.rate() != 0 || timeLeft(1e9, m.rate()) != 0 {
		t.Errorf("after one sample the rate is %v", m.rate())
	}
	tick := func(n int, perSecond float64) {
		for range n {
			now = now.Add(reportEvery)
			fetched += int64(perSecond * reportEvery.Seconds())
			m.add(now, fetched)
		}
	}
	expect := func(when string, rate float64, rest int64, left time.Duration) {
		t.Helper()
		got := m.rate()
		if got < 0.999*rate || got > 1.001*rate {
			t.Errorf("%s the rate is %.0f, want %.0f", when, got, rate)
		}
		if l := timeLeft(rest, got); l < left*999/1000 || l > left*1001/1000 {
			t.Errorf("%s %v are left, want %v", when, l, left)
		}
	}
	tick(3, 10e6)
	expect("after 0.6 s", 10e6, 100e6, 10*time.Second)
	tick(100, 10e6)
	expect("after 20 s", 10e6, 13e9, 1300*time.Second)
	tick((rateSamples-1)/2, 0)
	expect("in a stall of half the samples", 5e6, 100e6, 20*time.Second)
	tick(rateSamples, 0)
	expect("in a long stall", 0, 100e6, 0)
	tick(rateSamples-1, 40e6)
	expect("when it goes on", 40e6, 100e6, 2500*time.Millisecond)
}

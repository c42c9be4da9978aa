package hub

import (
	"time"

	"github.com/ossrun/ossrun/models/mapping"
)

// The progress of a pull, reported several times a second.

// rateSamples makes the rate that of the last five seconds.
const rateSamples = 25

// report starts to report progress; the returned function reports once more and stops.
func (p *pull) report(files int, bytes int64) (stop func()) {
	if p.Progress == nil {
		return func() {}
	}
	var speed meter
	speed.add(time.Now(), p.count.fetched.Load())
	return mapping.ReportProgress(&p.count.done, bytes, func(done, bytes int64) {
		state := Progress{Files: files, FilesDone: int(p.count.files.Load()), Bytes: bytes,
			Done: done, Fetched: p.count.fetched.Load()}
		speed.add(time.Now(), state.Fetched)
		state.Rate = speed.rate()
		state.Remaining = timeLeft(bytes-done, state.Rate)
		p.Progress(state)
	})
}

// meter is the rate of the last samples.
type meter struct{ samples []sample }

// sample is the number of bytes received at a time.
type sample struct {
	when    time.Time
	fetched int64
}

func (m *meter) add(now time.Time, fetched int64) {
	m.samples = append(m.samples, sample{now, fetched})
	if len(m.samples) > rateSamples {
		m.samples = m.samples[1:]
	}
}

// rate is in bytes a second; 0 if unknown.
func (m *meter) rate() float64 {
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	if d := last.when.Sub(first.when).Seconds(); d > 0 {
		return float64(last.fetched-first.fetched) / d
	}
	return 0
}

// timeLeft is the time for the rest at a rate; 0 without a rate.
func timeLeft(rest int64, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(rest) / rate * float64(time.Second))
}

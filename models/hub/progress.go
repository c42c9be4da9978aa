package hub

import "time"

// How far a pull is, told several times a second.

const (
	reportEvery = 200 * time.Millisecond
	rateSamples = 25 // the rate is that of the last five seconds
)

// report starts telling; the function it gives tells once more and stops.
func (p *pull) report(files int, bytes int64) (stop func()) {
	if p.Progress == nil {
		return func() {}
	}
	start := p.count.fetched.Load()
	samples := []sample{{time.Now(), start}}
	tell := func() {
		now := sample{time.Now(), p.count.fetched.Load()}
		samples = append(samples, now)
		if len(samples) > rateSamples {
			samples = samples[1:]
		}
		state := Progress{Files: files, FilesDone: int(p.count.files.Load()), Bytes: bytes, Done: p.count.done.Load(), Fetched: now.fetched}
		if d := now.at.Sub(samples[0].at).Seconds(); d > 0 {
			state.Rate = float64(now.fetched-samples[0].fetched) / d
		}
		if state.Rate > 0 {
			state.Left = time.Duration(float64(bytes-state.Done) / state.Rate * float64(time.Second))
		}
		p.Progress(state)
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell()
			case <-ended:
				tell()
				return
			}
		}
	}()
	return func() { close(ended); <-done }
}

// sample is how much had come at a time.
type sample struct {
	at      time.Time
	fetched int64
}

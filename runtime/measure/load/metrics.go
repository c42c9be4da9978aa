// The figures of a run, each as vLLM's benchmark defines it.

package load

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
)

type Result struct {
	Completed, Failed int
	Duration          float64 // seconds
	InputTokens       int
	OutputTokens      int // as the server counts them
	Retokenized       int // as their text is tokenized again
	RequestsPerS      float64
	InputPerS         float64 // tokens
	OutputPerS        float64
	TotalPerS         float64
	GoodPerS          *float64 // requests that met Goals; nil without goals
	PeakOutputPerS    int      // tokens in the best second
	PeakConcurrency   int
	TTFT, TPOT        Latency
	ITL, E2EL         Latency
	Errors            map[string]int // messages of failed requests, with their counts
}

// Latency is the distribution of a time, in milliseconds.
type Latency struct {
	Mean, Median, Std float64
	sorted            []float64
}

// Percentile interpolates between two samples as numpy does; 0 without samples.
func (l Latency) Percentile(p float64) float64 {
	n := len(l.sorted)
	if n == 0 {
		return 0
	}
	pos := p / 100 * float64(n-1)
	low := int(pos)
	if low >= n-1 {
		return l.sorted[n-1]
	}
	return l.sorted[low] + (pos-float64(low))*(l.sorted[low+1]-l.sorted[low])
}

func latency(samples []float64) Latency {
	slices.Sort(samples)
	l := Latency{sorted: samples}
	if len(samples) == 0 {
		return l
	}
	for _, s := range samples {
		l.Mean += s
	}
	l.Mean /= float64(len(samples))
	for _, s := range samples {
		l.Std += (s - l.Mean) * (s - l.Mean)
	}
	l.Std = math.Sqrt(l.Std / float64(len(samples)))
	l.Median = l.Percentile(50)
	return l
}

// Goals are times that a good request stays within; zero is no goal.
type Goals struct{ TTFT, TPOT, E2EL time.Duration }

func (g Goals) met(o *Outcome) bool {
	return (g.TTFT == 0 || o.TTFT <= g.TTFT) && (g.TPOT == 0 || o.tpot() <= g.TPOT) &&
		(g.E2EL == 0 || o.Latency <= g.E2EL)
}

// tpot is the time per output token but the first.
func (o *Outcome) tpot() time.Duration {
	if o.OutputTokens < 2 {
		return 0
	}
	return (o.Latency - o.TTFT) / time.Duration(o.OutputTokens-1)
}

// Measure computes the figures of a run that took duration.
func Measure(outcomes []Outcome, duration time.Duration, goals Goals) Result {
	r := Result{Duration: duration.Seconds(), Errors: map[string]int{}}
	var ttft, tpot, itl, e2el []float64
	var complete []*Outcome // with all events
	good := 0
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case o.Err != nil:
			r.Failed++
			line, _, _ := strings.Cut(o.Err.Error(), "\n")
			r.Errors[line]++
			continue
		case o.Sent.IsZero(): // never sent: the run was interrupted
			continue
		}
		complete = append(complete, o)
		r.InputTokens += o.InputTokens
		r.OutputTokens += o.OutputTokens
		r.Retokenized += len(token.Get().Encode(nil, o.Text))
		ttft = append(ttft, milliseconds(o.TTFT))
		e2el = append(e2el, milliseconds(o.Latency))
		if o.OutputTokens > 1 {
			tpot = append(tpot, milliseconds(o.tpot()))
		}
		for _, gap := range o.Gaps {
			itl = append(itl, milliseconds(gap))
		}
		if goals.met(o) {
			good++
		}
	}
	r.Completed = len(complete)
	r.TTFT, r.TPOT, r.ITL, r.E2EL = latency(ttft), latency(tpot), latency(itl), latency(e2el)
	r.RequestsPerS = float64(r.Completed) / r.Duration
	r.InputPerS = float64(r.InputTokens) / r.Duration
	r.OutputPerS = float64(r.OutputTokens) / r.Duration
	r.TotalPerS = r.InputPerS + r.OutputPerS
	if goals != (Goals{}) {
		r.GoodPerS = new(float64(good) / r.Duration)
	}
	r.peaks(complete)
	return r
}

// peaks finds the best second and the most requests at once. An event's tokens count when it
// arrives; each event of a request has the same share of its tokens.
func (r *Result) peaks(complete []*Outcome) {
	var start time.Time
	for _, o := range complete {
		if start.IsZero() || o.Sent.Before(start) {
			start = o.Sent
		}
	}
	opens := map[time.Duration]int{} // by how many requests more run from then on
	for _, o := range complete {
		opens[o.Sent.Sub(start)]++
		opens[o.Sent.Sub(start)+o.Latency]--
	}
	open := 0
	for _, offset := range slices.Sorted(maps.Keys(opens)) {
		open += opens[offset]
		r.PeakConcurrency = max(r.PeakConcurrency, open)
	}
	seconds := map[time.Duration]float64{}
	for _, o := range complete {
		share := float64(o.OutputTokens) / float64(len(o.Gaps)+1)
		offset := o.Sent.Sub(start) + o.TTFT
		for _, gap := range append([]time.Duration{0}, o.Gaps...) {
			offset += gap
			seconds[offset/time.Second] += share
		}
	}
	for _, tokens := range seconds {
		r.PeakOutputPerS = max(r.PeakOutputPerS, int(math.Round(tokens)))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

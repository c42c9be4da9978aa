// How many rows of prompts a step has while others wait for its end: those that decode want their
// next token, another client its first. Shorter steps compute fewer rows a second, since each has
// costs of its own, the weights above all.
//
// What must stay true: it costs prompts at most 3 % of their speed on any machine; until steps have
// been measured, they are as long as they may be.

package sched

import (
	"time"

	"github.com/ossrun/ossrun/runtime/kv"
)

const (
	// patience is how long a step with prompts should be at most.
	patience = 60 * time.Millisecond
	// cheap is the part of its speed that a prompt keeps in shorter steps.
	cheap = 0.97
)

// withinPatience is how many of budget rows of prompts a step has with decode rows: so many
// that it ends within patience or, if that costs too much, as few as are cheap.
func (s *Scheduler) withinPatience(decode, budget int) (rows int) {
	fixed, token, row := max(0, s.costs.step), max(0, s.costs.token), s.costs.row
	if row <= 0 {
		return budget
	}
	n := (patience.Seconds() - fixed - token*float64(decode)) / row
	// n/(fixed+row*n) >= cheap*all/(fixed+row*all)
	all := float64(budget)
	n = max(n, cheap*all*fixed/(fixed+(1-cheap)*row*all))
	return min(budget, max(kv.PageTokens, int(min(n, all))))
}

// stepCosts is the seconds that a step takes, and each row of it: one that gives a token, and one
// of a prompt. They are learned from every step by recursive least squares, in which an error
// counts by its part of the time.
type stepCosts struct {
	step, token, row float64
	// The covariance of the three is U D transposed U: the diagonal here is D, the part above it is
	// that of the unit triangle U. Kept as one matrix it turns negative within an hour.
	doubt [3][3]float64
}

func (c *stepCosts) observe(tokens, rows int, took time.Duration) {
	const recent, most = 0.98, 1
	y := took.Seconds()
	if y <= 0 {
		return
	}
	p := &c.doubt
	if p[0][0] == 0 {
		*p = [3][3]float64{{most}, {0, most}, {0, 0, most}}
	}
	x := [3]float64{1 / y, float64(tokens) / y, float64(rows) / y}
	forgets := recent
	for i := range p {
		variance := p[i][i]
		for j := i + 1; j < len(p); j++ {
			variance += p[i][j] * p[i][j] * p[j][j]
		}
		if variance > most { // what steps do not tell any more stays as it was
			forgets = 1
		}
	}
	wrong := 1 - (c.step*x[0] + c.token*x[1] + c.row*x[2])
	var gain [3]float64 // times all, by Bierman's update
	all := forgets
	for j := range p {
		f := x[j]
		for i := range j {
			f += p[i][j] * x[i]
		}
		previous, v := all, p[j][j]*f
		all += f * v
		p[j][j] *= previous / all / forgets
		for i := range j {
			u := p[i][j]
			p[i][j] = u - gain[i]*f/previous
			gain[i] += u * v
		}
		gain[j] = v
	}
	c.step += gain[0] / all * wrong
	c.token += gain[1] / all * wrong
	c.row += gain[2] / all * wrong
}

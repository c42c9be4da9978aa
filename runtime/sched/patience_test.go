package sched

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// What steps cost is still learned after an hour of them, with tokens or without, with odd times
// between them, and what none tells for long stays as it was.
func TestCostsStayLearned(t *testing.T) {
	const many = 300_000
	for _, c := range []costs{h200, fast, {time.Millisecond, 30 * time.Millisecond,
		10 * time.Millisecond}, {20 * time.Microsecond, 5 * time.Microsecond,
		3 * time.Microsecond}} {
		for name, noise := range map[string]float64{"exact": 0, "noisy": 0.1} {
			random, learned := rand.New(rand.NewPCG(1, 2)), stepCosts{}
			step := func(tokens, rows int) {
				took := c.step + time.Duration(tokens)*c.decode + time.Duration(rows)*c.prefill
				took = time.Duration(float64(took) * max(0.5, 1+noise*random.NormFloat64()))
				if random.IntN(1000) == 0 {
					took *= 1000
				}
				learned.observe(tokens, rows, took)
			}
			for range many {
				tokens, rows := random.IntN(65), 0
				if tokens == 0 || random.IntN(4) == 0 {
					rows = 1 + random.IntN(8000)
				}
				step(tokens, rows)
			}
			near := func() bool {
				row := c.prefill.Seconds()
				return math.Abs(learned.row-row) < row/5 && !math.IsNaN(learned.step+learned.token)
			}
			if !near() {
				t.Errorf("%v, %s: learned %+v", c, name, learned)
			}
			for range many {
				step(16, 0)
			}
			if !near() {
				t.Errorf("%v, %s, then 16 tokens in each step: learned %+v", c, name, learned)
			}
		}
	}
}
